package gotemplate_test

import (
	"context"
	"errors"
	"fmt"
	"testing/fstest"
	"time"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/gotemplate"
)

// A set of templates is parsed once, and executed often.
func ExampleSet() {
	set, err := gotemplate.Parse(map[string]string{
		"_labels":     `{{ define "labels" }}app: {{ .name }}{{ end }}`,
		"config.yaml": "labels: {{- include \"labels\" . | nindent 2 }}\nsize: {{ .size | default \"small\" }}",
	}, gotemplate.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(set.Execute(context.Background(), "config.yaml", map[string]any{"name": "shop"}, nil))
	// Output:
	// labels:
	//   app: shop
	// size: small <nil>
}

// A template that does not end is stopped.
func ExampleLimits() {
	options := gotemplate.Options{Limits: gotemplate.Limits{Time: time.Minute, Size: 1 << 20}}
	set, err := gotemplate.Parse(map[string]string{"loop.yaml": `{{ range 1000000000 }}- item{{ end }}`}, options)
	if err != nil {
		panic(err)
	}
	_, err = set.Execute(context.Background(), "loop.yaml", nil, nil)
	fmt.Println(errors.Is(err, gotemplate.ErrLimit), err)
	// Output:
	// true limit of a template: size: template "loop.yaml" computes more than 1048576 bytes
}

func ExampleNewParameterTransformer() {
	folder := fstest.MapFS{"parameters.yaml": {Data: []byte(`
host: {{ .Name }}.{{ .domain }}
replicas: {{ .replicas | default 2 }}
`)}}
	transformer, err := gotemplate.NewParameterTransformer(folder, "parameters.yaml", gotemplate.Options{})
	if err != nil {
		panic(err)
	}
	made, err := transformer.TransformParameters("garden", "shop", generator.UnstructurableMap{"domain": "example.com"})
	fmt.Println(made, err)
	// Output:
	// map[host:shop.example.com replicas:2] <nil>
}

// Instrument prepares a template that something else executes. Here it would be executed with the functions of a guard.
func ExampleInstrument() {
	fmt.Println(gotemplate.Instrument("list.yaml", "{{ range .items }}- {{ . }}\n{{ end }}", "", ""))
	// Output:
	// {{ espalierGuardEnter 0 }}{{ range .items }}{{ espalierGuardRound 3 }}- {{ . | espalierGuardCount }}
	// {{ end }} <nil>
}

// A generator keeps the lookups of an execution, and later finds out whether it would see the same.
func ExampleLookups() {
	clients := newClusters()
	ctx := clients.context()
	var lookups gotemplate.Lookups
	set, err := gotemplate.Parse(map[string]string{
		"a": `{{ (lookup "v1" "Secret" "shop" "a").metadata.name }}`,
	}, gotemplate.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(set.Execute(gotemplate.WithLookups(ctx, &lookups), "a", nil, nil))
	fmt.Println(lookups.List()[0])

	before, err := lookups.Identity(ctx)
	if err != nil {
		panic(err)
	}
	if err := clients.target.Delete(ctx, secret("shop", "a", nil)); err != nil {
		panic(err)
	}
	after, err := lookups.Identity(ctx)
	fmt.Println(before == after, err)
	// Output:
	// a <nil>
	// v1 Secret a in namespace shop
	// false <nil>
}

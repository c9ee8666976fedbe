package kustomize_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/kustomize"
)

// A kustomization with a template and a base, and a transformer that adds a label. An operator would embed the files.
func Example() {
	files := fstest.MapFS{
		"app/kustomization.yaml":  {Data: []byte("namePrefix: my-\nresources: [settings.yaml, ../base]\n")},
		"app/settings.yaml.tpl":   {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {size: '{{ .size }}'}\n")},
		"base/kustomization.yaml": {Data: []byte("resources: [account.yaml]\n")},
		"base/account.yaml":       {Data: []byte("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: runner}\n")},
	}
	folder, err := kustomize.NewGenerator(files, "app", kustomize.Options{Bases: []string{"../base"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	made := generator.NewGenerator(folder).
		WithObjectTransformer(&kustomize.ObjectTransformer{Labels: map[string]string{"team": "a"}})

	parameters := generator.UnstructurableMap{"size": 3}
	objects, err := made.Generate(context.Background(), "default", "app", parameters)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, object := range objects {
		fmt.Println(object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), object.GetLabels())
	}

	// Output:
	// ConfigMap my-settings map[team:a]
	// ServiceAccount my-runner map[team:a]
}

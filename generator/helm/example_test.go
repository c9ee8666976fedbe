package helm_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/helm"
)

func Example() {
	// An operator embeds the folder: //go:embed all:chart
	folder := fstest.MapFS{
		"chart/Chart.yaml":  {Data: []byte("apiVersion: v2\nname: greeting\nversion: 1.0.0\n")},
		"chart/values.yaml": {Data: []byte("text: hello\ncolors: {front: black, back: white}\n")},
		"chart/templates/configmap.yaml": {Data: []byte(`apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  text: {{ .Values.text }}
  colors: {{ .Values.colors | toJson | quote }}
  revision: "{{ .Release.Revision }}"
`)},
	}
	made, err := helm.NewGenerator(folder, "chart", helm.Options{})
	if err != nil {
		panic(err)
	}

	// A reconciler makes this context, and the parameters are the spec of the component.
	ctx := generator.NewContext(context.Background()).WithReconcilerName("greetings.example.com").WithComponentRevision(2)
	parameters := generator.UnstructurableMap{"text": "good morning", "colors": map[string]any{"back": nil}}
	objects, err := made.Generate(ctx, "north", "corner", parameters)
	if err != nil {
		panic(err)
	}
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			panic(err)
		}
		fmt.Print(string(text))
	}
	// Output:
	// apiVersion: v1
	// data:
	//   colors: '{"front":"black"}'
	//   revision: "2"
	//   text: good morning
	// kind: ConfigMap
	// metadata:
	//   name: corner
}

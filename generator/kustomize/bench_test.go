package kustomize_test

import (
	"fmt"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/kustomize"
)

// hundred is a kustomization of 100 objects, of which one is a template.
func hundred() map[string]string {
	contents := map[string]string{"app/made.yaml.tpl": dataTemplate(`"{{ .size }}"`)}
	list := "namePrefix: a-\nlabels: [{pairs: {a: b}}]\nimages: [{name: nginx, newTag: '2'}]\nresources:\n- made.yaml\n"
	for i := range 99 {
		name := fmt.Sprintf("d%d", i)
		contents["app/"+name+".yaml"] = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + "}\n" +
			"spec: {template: {spec: {containers: [{name: a, image: nginx}], volumes: [{name: v, configMap: {name: made}}]}}}\n"
		list += "- " + name + ".yaml\n"
	}
	contents["app/kustomization.yaml"] = list
	return contents
}

// BenchmarkBuild compares a build of 100 objects with that of kustomize itself, and with one without templates.
func BenchmarkBuild(b *testing.B) {
	contents := hundred()
	parameters := generator.UnstructurableMap{"size": "1"}
	made, err := kustomize.NewGenerator(inMemory(contents), "app", kustomize.Options{})
	must(b, err)
	contents["app/made.yaml"] = dataTemplate(`"1"`)
	delete(contents, "app/made.yaml.tpl")
	plain, err := kustomize.NewGenerator(inMemory(contents), "app", kustomize.Options{})
	must(b, err)
	run := func(name string, build func() (int, error)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n, err := build(); err != nil || n != 100 {
					b.Fatalf("there are %d objects (%v), want 100", n, err)
				}
			}
		})
	}
	ctx := contextOf(b)
	run("espalier", func() (int, error) {
		objects, err := made.Generate(ctx, "default", "app", parameters)
		return len(objects), err
	})
	run("krusty", func() (int, error) {
		memory := filesys.MakeFsInMemory()
		for name, content := range contents {
			if err := memory.WriteFile("/"+name, []byte(content)); err != nil {
				return 0, err
			}
		}
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, "/app")
		if err != nil {
			return 0, err
		}
		for _, resource := range built.Resources() {
			text, err := resource.MarshalJSON()
			if err != nil {
				return 0, err
			}
			var object map[string]any
			if err := utiljson.Unmarshal(text, &object); err != nil {
				return 0, err
			}
		}
		return built.Size(), nil
	})
	run("espalier without templates", func() (int, error) {
		objects, err := plain.Generate(b.Context(), "default", "app", parameters)
		return len(objects), err
	})
}

package fieldmanager_test

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/internal/testenv/fieldmanager"
)

// contents are objects as operators write them.
func contents() map[string]object {
	labels := object{"app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop"}
	env := list(object{"name": "A", "value": "1"}, object{"name": "B", "valueFrom": object{
		"secretKeyRef": object{"name": "web", "key": "b"},
	}})
	limits := object{"limits": object{"cpu": "1", "memory": "1Gi"}}
	return map[string]object{
		"ConfigMap": {"data": object{"count": "0", "name": "web"}, "metadata": object{"labels": labels}},
		"Gadget":    {"spec": object{"size": int64(3), "users": list("a", "b")}, "metadata": object{"labels": labels}},
		"Deployment": {
			"metadata": object{"labels": labels},
			"spec": object{
				"replicas": int64(2), "selector": object{"matchLabels": labels},
				"template": object{"metadata": object{"labels": labels}, "spec": object{
					"serviceAccountName": "web",
					"containers": list(
						object{
							"name": "web", "image": "example.com/web:1", "env": env, "resources": limits,
							"ports": list(object{"name": "http", "containerPort": int64(80), "protocol": "TCP"}),
						},
						object{"name": "side", "image": "example.com/side:1", "env": env},
					),
				}},
			},
		},
	}
}

func (k testKind) config(content object, count int) *unstructured.Unstructured {
	config := k.identity()
	for name, value := range runtime.DeepCopyJSON(content) {
		if name == "metadata" {
			set(config, "metadata.labels", value.(object)["labels"])
			continue
		}
		config[name] = value
	}
	set(config, "metadata.annotations.count", strconv.Itoa(count))
	return &unstructured.Unstructured{Object: config}
}

// BenchmarkApply measures an apply by one of two managers, beside that of an API server's field manager.
func BenchmarkApply(b *testing.B) {
	for _, name := range []string{"ConfigMap", "Gadget", "Deployment"} {
		kind, content := testKinds[name], contents()[name]
		m := fieldmanager.New(kind.GroupVersionKind, kind.converter, kind.create)
		other := &unstructured.Unstructured{Object: kind.identity()}
		set(other.Object, "metadata.annotations.other", "1")
		create := func(b *testing.B) (obj, managed step) {
			b.Helper()
			return step{config: kind.config(content, 0), write: fieldmanager.Write{Manager: "a", Time: time.Now()}},
				step{config: other, write: fieldmanager.Write{Manager: "b", Time: time.Now()}}
		}
		b.Run(name, func(b *testing.B) {
			for _, change := range []string{"create", "change", "nothing"} {
				b.Run(change, func(b *testing.B) {
					first, second := create(b)
					live, fields, err := writeOurs(m, nil, nil, first)
					if err != nil {
						b.Fatal(err)
					}
					if live, fields, err = writeOurs(m, live, fields, second); err != nil {
						b.Fatal(err)
					}
					configs := []*unstructured.Unstructured{kind.config(content, 0), kind.config(content, 1)}
					for i := 0; b.Loop(); i++ {
						switch change {
						case "create":
							_, _, err = m.Applied(nil, nil, configs[0], false, first.write)
						case "change":
							live, fields, err = m.Applied(live, fields, configs[i%2], false, first.write)
						case "nothing":
							_, _, err = m.Applied(live, fields, configs[0], false, first.write)
						}
						if err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			b.Run("change, reference", func(b *testing.B) {
				theirs := newReference(kind)
				first, second := create(b)
				live, err := theirs.write(nil, first)
				if err != nil {
					b.Fatal(err)
				}
				if live, err = theirs.write(live, second); err != nil {
					b.Fatal(err)
				}
				configs := []*unstructured.Unstructured{kind.config(content, 0), kind.config(content, 1)}
				for i := 0; b.Loop(); i++ {
					first.config = configs[i%2]
					if live, err = theirs.write(live, first); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkUpdate measures an update whose managed fields nobody asks for, and one whose managed fields are wanted.
func BenchmarkUpdate(b *testing.B) {
	kind := testKinds["Deployment"]
	m := fieldmanager.New(kind.GroupVersionKind, kind.converter, kind.create)
	w := fieldmanager.Write{Manager: "a", Time: time.Now()}
	live := kind.asObject(kind.config(contents()["Deployment"], 0).Object)
	next := kind.asObject(kind.config(contents()["Deployment"], 1).Object)
	created := m.Updated(nil, live, nil, w)
	b.Run("pending", func(b *testing.B) {
		for b.Loop() {
			m.Updated(live, next, created, w)
		}
	})
	b.Run("computed", func(b *testing.B) {
		for b.Loop() {
			m.Updated(live, next, created, w).Entries()
		}
	})
}

package fieldmanager_test

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/fieldmanager"
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

// twoManagers returns the writes of two managers.
func (k testKind) twoManagers(content object) (first, second step) {
	other := k.identity()
	set(other, "metadata.annotations.other", "1")
	return step{config: k.config(content, 0), write: fieldmanager.Write{Manager: "a", Time: time.Now()}},
		step{config: &unstructured.Unstructured{Object: other}, write: fieldmanager.Write{Manager: "b", Time: time.Now()}}
}

// BenchmarkApply measures an apply by the first of two managers.
func BenchmarkApply(b *testing.B) {
	for _, name := range []string{"ConfigMap", "Gadget", "Deployment"} {
		kind, content := testKinds[name], contents()[name]
		m := fieldmanager.New(kind.GroupVersionKind, kind.converter, kind.create)
		first, second := kind.twoManagers(content)
		configs := []*unstructured.Unstructured{kind.config(content, 0), kind.config(content, 1)}
		apply := func(
			b *testing.B, live client.Object, fields *fieldmanager.Fields, s step,
		) (client.Object, *fieldmanager.Fields) {
			b.Helper()
			live, fields, err := writeOurs(m, live, fields, s)
			if err != nil {
				b.Fatal(err)
			}
			return live, fields
		}
		b.Run(name+"/create", func(b *testing.B) {
			s := first
			for b.Loop() {
				s.write.Time = s.write.Time.Add(time.Second) // An apply that is not known.
				apply(b, nil, nil, s)
			}
		})
		b.Run(name+"/change", func(b *testing.B) {
			live, fields := apply(b, nil, nil, first)
			live, fields = apply(b, live, fields, second)
			s := first
			for i := 1; b.Loop(); i++ {
				s.config = configs[i%2]
				live, fields = apply(b, live, fields, s)
			}
		})
		b.Run(name+"/nothing", func(b *testing.B) {
			live, fields := apply(b, nil, nil, first)
			live, fields = apply(b, live, fields, second)
			s := first
			for b.Loop() {
				s.write.Time = s.write.Time.Add(time.Second)
				apply(b, live, fields, s)
			}
		})
		b.Run(name+"/again", func(b *testing.B) {
			live, fields := apply(b, nil, nil, first)
			again, changed := copyOf(live), first
			changed.config = configs[1]
			apply(b, live, fields, changed)
			changed.config = configs[1].DeepCopy()
			for b.Loop() {
				apply(b, again, fields, changed)
			}
		})
	}
}

// BenchmarkReference measures the changes of BenchmarkApply with the field manager of an API server.
func BenchmarkReference(b *testing.B) {
	for _, name := range []string{"ConfigMap", "Gadget", "Deployment"} {
		kind, content := testKinds[name], contents()[name]
		theirs := newReference(kind)
		first, second := kind.twoManagers(content)
		configs := []*unstructured.Unstructured{kind.config(content, 0), kind.config(content, 1)}
		b.Run(name+"/change", func(b *testing.B) {
			var live client.Object
			var err error
			for _, s := range []step{first, second} {
				if live, err = theirs.write(live, s); err != nil {
					b.Fatal(err)
				}
			}
			s := first
			for i := 1; b.Loop(); i++ {
				s.config = configs[i%2]
				if live, err = theirs.write(live, s); err != nil {
					b.Fatal(err)
				}
			}
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

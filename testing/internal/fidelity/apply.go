package fidelity

import (
	"bytes"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// applicable returns a ConfigMap to be applied.
func (p *probe) applicable(name, value string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: fields{"data": fields{"a": value}}}
	u.SetGroupVersionKind(kind("", "v1", "ConfigMap"))
	u.SetNamespace(p.namespace)
	u.SetName(name)
	return u
}

// applied applies an object as a field manager. The answer is in the object.
func (p *probe) applied(u *unstructured.Unstructured, manager string, opts ...client.ApplyOption) error {
	opts = append(opts, client.FieldOwner(manager))
	return p.Apply(p.ctx, client.ApplyConfigurationFromUnstructured(u), opts...)
}

// managers renders the managed fields of an object.
func (p *probe) managers(obj client.Object) string {
	var managers []string
	for _, entry := range p.read(obj).GetManagedFields() {
		set := &fieldpath.Set{}
		p.must(set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())))
		var paths []string
		set.Iterate(func(path fieldpath.Path) { paths = append(paths, path.String()) })
		slices.Sort(paths)
		managers = append(managers, strings.Join(append(
			[]string{entry.Manager, string(entry.Operation), entry.APIVersion, entry.Subresource}, paths...), " "))
	}
	slices.Sort(managers)
	return strings.Join(managers, " | ")
}

// containers returns a Deployment to be applied, of one container.
func (p *probe) containers(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: fields{"spec": fields{"template": fields{"spec": fields{
		"containers": []any{fields{"name": name, "image": "x"}},
	}}}}}
	u.SetGroupVersionKind(kind("apps", "v1", "Deployment"))
	u.SetNamespace(p.namespace)
	u.SetName("a")
	return u
}

package takeover

import (
	"maps"
	"slices"

	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// owner is a component as both engines write it on its objects.
type owner struct {
	// from and to are the texts of the owner annotations. The owner labels are their digests.
	from, to string
}

// ownerOf returns a component. home is the UID of the namespace kube-system of the cluster that it is in, and there
// identifies that cluster for objects in another one. It is empty for objects in the same.
func ownerOf(kind schema.GroupKind, component metav1.Object, home, there string) owner {
	name := types.NamespacedName{Namespace: component.GetNamespace(), Name: component.GetName()}
	return owner{
		from: home + "/" + name.Namespace + "/" + name.Name,
		to:   engine.OwnerText(kind, name, there, component.GetUID()),
	}
}

// marks are what is written of the metadata of an object.
type marks struct {
	labels, annotations map[string]string
	finalizers          []string
}

// marksOf returns a copy of those of an object.
func marksOf(object metav1.Object) marks {
	m := marks{labels: map[string]string{}, annotations: map[string]string{}}
	maps.Copy(m.labels, object.GetLabels())
	maps.Copy(m.annotations, object.GetAnnotations())
	m.finalizers = slices.Clone(object.GetFinalizers())
	return m
}

// operations returns what makes the metadata of an object be m. There are none if they are.
func (m marks) operations(object metav1.Object) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	if !maps.Equal(m.labels, object.GetLabels()) {
		operations = append(operations, jsonpatch.NewOperation("add", "/metadata/labels", m.labels))
	}
	if !maps.Equal(m.annotations, object.GetAnnotations()) {
		operations = append(operations, jsonpatch.NewOperation("add", "/metadata/annotations", m.annotations))
	}
	if !slices.Equal(m.finalizers, object.GetFinalizers()) {
		operations = append(operations, jsonpatch.NewOperation("add", "/metadata/finalizers", m.finalizers))
	}
	return operations
}

// without removes a finalizer.
func (m *marks) without(finalizer string) {
	m.finalizers = slices.DeleteFunc(m.finalizers, func(f string) bool { return f == finalizer })
}

// with adds a finalizer, unless it is there.
func (m *marks) with(finalizer string) {
	if !slices.Contains(m.finalizers, finalizer) {
		m.finalizers = append(m.finalizers, finalizer)
	}
}

// belongs reports whether an object belongs to the component by the marks of one of the operators.
func (n Names) belongs(object metav1.Object, o owner) bool {
	labels := object.GetLabels()
	return labels[n.From.label()] == engine.OwnerID(o.from) || labels[n.To.label()] == engine.OwnerID(o.to)
}

// isGuarded reports whether the old engine puts its finalizer on objects of the kind.
func isGuarded(kind schema.GroupKind) bool {
	return kinds.DefinesTypes(kind)
}

// handOver returns the marks of an object that changes hands: ours beside the old ones. The old finalizer goes at once,
// because our engine has none and would wait for it. There is no digest, unless the object is written once, since ours
// would be one of a manifest that is not known here.
func (n Names) handOver(object metav1.Object, kind schema.GroupKind, digest string, o owner) marks {
	m := marksOf(object)
	m.labels[n.To.label()] = engine.OwnerID(o.to)
	m.annotations[n.To.annotation()] = o.to
	if digest == plan.DigestOnce {
		m.annotations[n.To.digest()] = plan.DigestOnce
	}
	if isGuarded(kind) {
		m.without(n.From.Finalizer)
	}
	return m
}

// giveBack returns the marks of an object that is the old operator's again. What our operator has removed meanwhile is
// written again.
func (n Names) giveBack(object metav1.Object, kind schema.GroupKind, digest string, o owner) marks {
	m := marksOf(object)
	delete(m.labels, n.To.label())
	delete(m.annotations, n.To.annotation())
	delete(m.annotations, n.To.digest())
	m.labels[n.From.label()] = engine.OwnerID(o.from)
	m.annotations[n.From.annotation()] = o.from
	if _, ok := m.annotations[n.From.digest()]; !ok && digest != "" {
		m.annotations[n.From.digest()] = digest
	}
	if isGuarded(kind) {
		m.with(n.From.Finalizer)
	}
	return m
}

// finalize returns the marks of an object without those of the old operator.
func (n Names) finalize(object metav1.Object) marks {
	m := marksOf(object)
	delete(m.labels, n.From.label())
	delete(m.annotations, n.From.annotation())
	delete(m.annotations, n.From.digest())
	return m
}

// swap returns the marks of a component with one finalizer in place of another.
func swap(component metav1.Object, from, to string) marks {
	m := marksOf(component)
	m.without(from)
	m.with(to)
	return m
}

// forget returns the marks of a component without the state.
func forget(component metav1.Object) marks {
	m := marksOf(component)
	delete(m.annotations, Annotation)
	return m
}

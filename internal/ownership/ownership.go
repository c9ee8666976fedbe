// Package ownership reads from the metadata of an object whose it is, and says so in words.
//
// It depends on no package of components, because it is part of each operator. Package generator exports the names of
// the marks.
package ownership

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/message"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A component writes the following keys to its objects, under its own prefix. They are a format in clusters.
const (
	LabelOwnerID      = "owner-id"
	AnnotationOwnerID = "owner-id"
	AnnotationDigest  = "digest"
)

// Marks are what the metadata of an object say about whose it is. The zero value says nothing.
type Marks struct {
	// Manager says which controller or other manager owns the object, such as "is controlled by ReplicaSet web". It is
	// empty if there is none.
	Manager string
	// Component is the value of an owner annotation, in the form of [IsOwner]. It is empty if there is none.
	Component string
	// Writers says who wrote the object, such as "was written by kubectl". It is empty if that is not known.
	Writers string
}

// MarksOf reads the marks of an object, without the writers. It does not read the owner annotation with the prefix
// except, unless that is empty.
func MarksOf(object metav1.Object, except string) Marks {
	annotations := object.GetAnnotations()
	return Marks{
		Manager:   managerOf(object, object.GetLabels(), annotations),
		Component: componentOf(annotations, except),
	}
}

// ReadWriters reads who wrote the object.
func (m *Marks) ReadWriters(object metav1.Object) {
	m.Writers = writersOf(object.GetManagedFields())
}

// ClaimOf says whose an object is, in words that follow "it": who manages it, else who wrote it. It is empty if nothing
// is known. It has at most some hundred bytes, and stays the same as long as the marks do.
func ClaimOf(object metav1.Object) string {
	marks := MarksOf(object, "")
	switch {
	case marks.Manager != "":
		return marks.Manager
	case marks.Component != "":
		return BelongsTo(marks.Component)
	}
	marks.ReadWriters(object)
	return marks.Writers
}

// BelongsTo says that an object belongs to the owner that a component wrote, in words that follow "it". The UID of the
// owner is left out.
func BelongsTo(owner string) string {
	if owner == "" {
		return "belongs to another component"
	}
	return "belongs to " + Name(owner)
}

// managerOf says which controller or other manager than a component owns an object. It reads what these managers write
// on each of their objects. The label app.kubernetes.io/managed-by says nothing: charts have it, whoever installs them.
func managerOf(object metav1.Object, labels, annotations map[string]string) string {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return "is controlled by " + shown(owner.Kind+" "+owner.Name)
	}
	if len(labels) == 0 && len(annotations) == 0 {
		return ""
	}
	application, _, _ := strings.Cut(annotations["argocd.argoproj.io/tracking-id"], ":")
	if application == "" {
		application = labels["argocd.argoproj.io/instance"]
	}
	// Charts have the label, too, whoever installs them.
	if application == "" && isWrittenByArgoCD(object) {
		application = labels["app.kubernetes.io/instance"]
	}
	const kustomize, helm = "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/"
	const objectSet, olm = "objectset.rio.cattle.io/", "olm.owner"
	for _, manager := range []struct{ kind, namespace, name string }{
		{"Flux HelmRelease", labels[helm+"namespace"], labels[helm+"name"]},
		{"Flux Kustomization", labels[kustomize+"namespace"], labels[kustomize+"name"]},
		{"Argo CD application", "", application},
		{"Helm release", annotations["meta.helm.sh/release-namespace"], annotations["meta.helm.sh/release-name"]},
		{"kapp application", "", labels["kapp.k14s.io/app"]},
		{"inventory", "", annotations["config.k8s.io/owning-inventory"]},
		{"ApplySet", "", labels["applyset.kubernetes.io/part-of"]},
		{cmp.Or(labels[olm+".kind"], "OLM owner"), labels[olm+".namespace"], labels[olm]},
		{"Rancher object set", annotations[objectSet+"owner-namespace"],
			cmp.Or(annotations[objectSet+"owner-name"], annotations[objectSet+"id"], labels[objectSet+"hash"])},
		{"addon manager in mode", "", labels["addonmanager.kubernetes.io/mode"]},
	} {
		if manager.name != "" {
			return "belongs to the " + named(manager.kind, manager.namespace, manager.name)
		}
	}
	return ""
}

func isWrittenByArgoCD(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == "argocd-controller"
	})
}

// componentOf returns the first owner annotation, by its key, that does not have the prefix except.
func componentOf(annotations map[string]string, except string) string {
	found, first := "", ""
	for key, value := range annotations {
		prefix, ok := strings.CutSuffix(key, "/"+AnnotationOwnerID)
		if ok && (except == "" || prefix != except) && IsOwner(value) && (first == "" || key < first) {
			found, first = value, key
		}
	}
	return found
}

// IsOwner reports whether a text has the form in which a component names its owner: kind, namespace, name and UID. In a
// cluster that is reached with a kubeconfig, the cluster of the owner stands before the UID.
func IsOwner(text string) bool {
	parts := strings.Split(text, "/")
	return (len(parts) == 4 || len(parts) == 5 && parts[3] != "") &&
		parts[0] != "" && parts[2] != "" && parts[len(parts)-1] != ""
}

// IsWithoutCluster reports whether text is an owner in the form without a cluster, and owner is the same with one.
func IsWithoutCluster(text, owner string) bool {
	if strings.Count(owner, "/") != 4 {
		return false
	}
	uid := strings.LastIndexByte(owner, '/')
	cluster := strings.LastIndexByte(owner[:uid], '/')
	return len(text) == len(owner)-(uid-cluster) &&
		strings.HasPrefix(text, owner[:cluster]) && strings.HasSuffix(text, owner[uid:])
}

// Name names the owner that a component wrote, without the UID.
func Name(owner string) string {
	switch parts := strings.Split(owner, "/"); {
	case len(parts) == 4 && parts[2] != "":
		return named(parts[0], parts[1], parts[2])
	case len(parts) == 5 && parts[2] != "":
		return named(parts[0], parts[1], parts[2]) + " of the cluster " + shown(parts[3])
	}
	return shown(owner)
}

// namedWriters is how many field managers are named.
const namedWriters = 3

// writersOf names the field managers that wrote more than a subresource.
func writersOf(entries []metav1.ManagedFieldsEntry) string {
	writers := map[string]bool{}
	for i := range entries {
		if entries[i].Subresource == "" && entries[i].Manager != "" {
			writers[shown(entries[i].Manager)] = true
		}
	}
	return WrittenBy(slices.Sorted(maps.Keys(writers))...)
}

// WrittenBy says which field managers wrote an object, in words that follow "it". It is empty for none.
func WrittenBy(managers ...string) string {
	if len(managers) == 0 {
		return ""
	}
	return "was written by " + message.List(managers, namedWriters)
}

// named names an object for people: kind, namespace and name.
func named(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return shown(kind + " " + name)
}

// shownLimit is the length of the longest text that is taken from an object, in bytes.
const shownLimit = 100

// shown returns what others wrote as a part of a message.
func shown(text string) string {
	return message.Truncate(strings.Join(strings.Fields(text), " "), shownLimit)
}

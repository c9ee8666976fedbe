package server

import (
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// kind is a built-in kind as it is served.
type kind struct {
	registry.Type
	// versions are served, the newest first. Objects have the Go type of the first one in memory and in the storage.
	versions []registry.Version
	// objectType and listType make empty objects of the first version.
	object, list func() runtime.Object
}

// hub is the version of the Go type that objects have in the server.
func (k kind) hub() schema.GroupVersionKind { return k.Kind.WithVersion(k.versions[0].Name) }

// unserved are the kinds of which there are no objects: bodies of subresources, answers, and reviews.
var unserved = map[string]bool{
	"Binding": true, "ComponentStatus": true, "Eviction": true, "PodStatusResult": true, "RangeAllocation": true,
	"Scale": true, "TokenRequest": true,
	"LocalSubjectAccessReview": true, "SelfSubjectAccessReview": true, "SelfSubjectReview": true,
	"SelfSubjectRulesReview": true, "SubjectAccessReview": true, "TokenReview": true,
	// It is served beside the custom resources.
	"CustomResourceDefinition": true,
	// The kind of the core group serves both.
	"events.k8s.io/Event": true,
}

// published has the types of k8s.io/api. That of k8s.io/client-go is not used, because operators add their kinds to it.
var published = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	return s
})

// kinds returns the built-in kinds of which versions are generally available, by group and name. It is the same for all
// callers.
var kinds = sync.OnceValue(func() []kind {
	var all []kind
	seen := map[schema.GroupKind]bool{}
	for gvk := range published().AllKnownTypes() {
		if seen[gvk.GroupKind()] || unserved[gvk.Kind] || unserved[gvk.Group+"/"+gvk.Kind] {
			continue
		}
		seen[gvk.GroupKind()] = true
		if k, ok := newKind(gvk); ok {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b kind) int { return strings.Compare(a.Kind.String(), b.Kind.String()) })
	return all
})

func newKind(gvk schema.GroupVersionKind) (kind, bool) {
	t, ok := registry.BuiltIn(gvk)
	if !ok {
		return kind{}, false
	}
	k := kind{Type: t}
	for _, v := range t.Versions {
		if !strings.ContainsAny(strings.TrimLeft(v.Name, "v"), "ab") {
			k.versions = append(k.versions, v)
		}
	}
	if len(k.versions) == 0 {
		return kind{}, false
	}
	k.object = func() runtime.Object { return k.versions[0].New() }
	list := k.hub()
	list.Kind += "List"
	if !published().Recognizes(list) {
		return kind{}, false
	}
	k.list = func() runtime.Object {
		l, err := published().New(list)
		utilruntime.Must(err)
		return l
	}
	return k, true
}

// scheme has the built-in kinds, each as an internal version, too: the Go type of the internal version is that of the
// newest one, so that nothing is converted between the two. It is the same for all servers.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(s, unversioned)
	s.AddUnversionedTypes(unversioned, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{},
		&metav1.APIGroup{}, &metav1.APIResourceList{})
	for _, k := range kinds() {
		addInternal(s, k, k.Kind.Group)
		if k.Kind.Kind == "Event" {
			addInternal(s, k, eventsv1.GroupName)
		}
		addFieldLabels(s, k)
	}
	for _, body := range []struct {
		group  string
		object runtime.Object
	}{
		{corev1.GroupName, &corev1.Binding{}}, {policyv1.GroupName, &policyv1.Eviction{}},
		{autoscalingv1.GroupName, &autoscalingv1.Scale{}},
		{authenticationv1.GroupName, &authenticationv1.TokenRequest{}},
		{authenticationv1.GroupName, &authenticationv1.SelfSubjectReview{}},
		{authorizationv1.GroupName, &authorizationv1.SubjectAccessReview{}},
		{authorizationv1.GroupName, &authorizationv1.SelfSubjectRulesReview{}},
		{authorizationv1.GroupName, &authorizationv1.SelfSubjectAccessReview{}},
		{authorizationv1.GroupName, &authorizationv1.LocalSubjectAccessReview{}},
	} {
		s.AddKnownTypes(schema.GroupVersion{Group: body.group, Version: runtime.APIVersionInternal}, body.object)
	}
	addConversions(s)
	return s
})

// addInternal adds the internal version of a kind to a group.
func addInternal(s *runtime.Scheme, k kind, group string) {
	internal := schema.GroupVersionKind{Group: group, Version: runtime.APIVersionInternal, Kind: k.Kind.Kind}
	s.AddKnownTypeWithName(internal, k.object())
	internal.Kind += "List"
	s.AddKnownTypeWithName(internal, k.list())
}

var codecs = sync.OnceValue(func() serializer.CodecFactory {
	return serializer.NewCodecFactory(scheme(),
		serializer.WithStreamingCollectionEncodingToJSON(), serializer.WithStreamingCollectionEncodingToProtobuf())
})

package kubernetes_test

import (
	"context"
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// judge compares what two strategies say of an object of a version of a kind.
type judge struct {
	kind   schema.GroupVersionKind
	ours   registry.Strategy
	theirs rest.RESTCreateUpdateStrategy
}

// newJudge returns false if the kind is not served, or not judged.
func newJudge(kind schema.GroupVersionKind) (judge, bool) {
	theirs, ok := strategies[kind.GroupKind()]
	served, _ := registry.BuiltIn(kind)
	for _, v := range served.Versions {
		if v.Name == kind.Version {
			return judge{kind, v.Strategy, theirs}, ok
		}
	}
	return judge{}, false
}

// difference says that one strategy refuses what the other accepts.
type difference struct {
	kind schema.GroupVersionKind
	verb string
	// by is who refuses, for err, the first of its errors.
	by  string
	err *field.Error
}

// key is the same for differences of one class.
func (d difference) key() string {
	return fmt.Sprintf("%s %s: %s refuses %s (%s)", d.verb, d.kind.Kind+"."+d.kind.Version, d.by,
		positions.ReplaceAllString(d.err.Field, "[]"), d.err.Type)
}

var positions = regexp.MustCompile(`\[[^\]]*\]`)

// leftOut are differences that are not between strategies, or that a user does not meet, each with the reason.
var leftOut = map[string]string{
	"update DaemonSet.v1: Kubernetes refuses <nil> (Internal error)": "its generation is a number in an annotation, " +
		"which the strategy does not see",
	"create PersistentVolume.v1: espalier refuses spec.flexVolume (Forbidden)": "Kubernetes lets it stand beside " +
		"another source",
}

// create returns what the object is completed to, if both accept it, and the difference if only one does.
func (j judge) create(obj client.Object) (client.Object, *difference) {
	ours := obj.DeepCopyObject().(client.Object)
	j.ours.PrepareForCreate(ours)
	errs := j.ours.Validate(ours)
	d := j.compare("create", errs, failed(func() field.ErrorList {
		theirs := j.internal(j.allocated(obj, ours))
		j.theirs.PrepareForCreate(j.context(), theirs)
		return rest.ValidateCreate(j.context(), theirs, j.theirs)
	}))
	if len(errs) > 0 {
		return nil, d
	}
	return ours, d
}

// update returns the difference if only one accepts an update of what is stored as old.
func (j judge) update(obj, old client.Object) *difference {
	ours := obj.DeepCopyObject().(client.Object)
	j.ours.PrepareForUpdate(ours, old, "")
	return j.compare("update", j.ours.ValidateUpdate(ours, old, ""), failed(func() field.ErrorList {
		theirs, was := j.internal(j.allocated(obj, ours)), j.internal(old)
		j.theirs.PrepareForUpdate(j.context(), theirs, was)
		return rest.ValidateUpdate(j.context(), theirs, was, j.theirs)
	}))
}

// failed returns what Kubernetes refuses. It may panic, such as for a Job with a success policy and without
// completions: an API server then answers with an internal error.
func failed(validate func() field.ErrorList) (errs field.ErrorList) {
	defer func() {
		if r := recover(); r != nil {
			errs = field.ErrorList{field.InternalError(nil, fmt.Errorf("%v", r))}
		}
	}()
	return validate()
}

func (j judge) compare(verb string, ours, theirs field.ErrorList) *difference {
	var d *difference
	switch {
	case len(ours) == 0 && len(theirs) > 0:
		d = &difference{j.kind, verb, "Kubernetes", theirs[0]}
	case len(ours) > 0 && len(theirs) == 0:
		d = &difference{j.kind, verb, "espalier", ours[0]}
	}
	if d == nil || leftOut[d.key()] != "" {
		return nil
	}
	return d
}

// allocated returns the object with what only the storage of Kubernetes sets.
func (j judge) allocated(obj, ours client.Object) client.Object {
	obj = obj.DeepCopyObject().(client.Object)
	if filled := registry.FilledIn(j.kind.GroupKind()); filled != nil && j.kind.Kind == "Service" {
		filled(obj, ours)
	}
	return obj
}

// internal returns an object as Kubernetes decodes it: with its defaults, in the internal version.
func (j judge) internal(obj client.Object) runtime.Object {
	obj = obj.DeepCopyObject().(client.Object)
	legacyscheme.Scheme.Default(obj)
	internal, err := legacyscheme.Scheme.ConvertToVersion(obj,
		schema.GroupVersion{Group: j.kind.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		panic(fmt.Sprintf("%s cannot be converted: %v", j.kind, err))
	}
	return internal
}

func (j judge) context() context.Context {
	ctx := request.WithRequestInfo(context.Background(), &request.RequestInfo{
		APIGroup: j.kind.Group, APIVersion: j.kind.Version,
	})
	if j.theirs.NamespaceScoped() {
		return request.WithNamespace(ctx, "ns")
	}
	return request.WithNamespace(ctx, metav1.NamespaceNone)
}

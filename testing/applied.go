package testing

import (
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/testing/internal/check"
	"github.com/espalier-dev/espalier/testing/internal/literal"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// Applied is an apply configuration with the content of a typed object, for an [ApplyRef]. Its kind is the one that the
// scheme of the case has for the Go type. Its content is the content that [NewApplyRefFromObject] expects:
//
//	ExpectApplies: []rtesting.ApplyRef{{
//		ApplyConfiguration: rtesting.Applied(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}),
//		FieldOwner:         "shop",
//	}},
//
// An ApplyRef with such a configuration may leave out Group, Kind, Namespace and Name together: they are those of the
// object.
func Applied(obj client.Object) runtime.ApplyConfiguration {
	return applied{object: objects.Copy(obj)}
}

// applied is what Applied returns. The harness sets the scheme.
type applied struct {
	object client.Object
	scheme *runtime.Scheme
	// sparse leaves out the empty structs that only a Go type has.
	sparse bool
}

var (
	_ runtime.ApplyConfiguration = applied{}
	_ json.Marshaler             = applied{}
	_ literal.Expresser          = applied{}
)

var errNothingApplied = errors.New("Applied has no object")

// IsApplyConfiguration implements [runtime.ApplyConfiguration].
func (applied) IsApplyConfiguration() {}

// MarshalJSON returns the content that is applied.
func (a applied) MarshalJSON() ([]byte, error) {
	ref, err := a.ref()
	if err != nil {
		return nil, err
	}
	if a.sparse {
		members := check.Sent(ref.ApplyConfiguration)
		check.DropEmptyStructs(a.object, members)
		return json.Marshal(members)
	}
	return json.Marshal(ref.ApplyConfiguration)
}

// like returns the configuration in the form that an observed one has: with empty structs, or without them.
func (a applied) like(observed runtime.ApplyConfiguration) applied {
	a.sparse = !equality.Semantic.DeepEqual(check.Sent(a), check.Sent(observed))
	return a
}

// Expression implements [literal.Expresser].
func (a applied) Expression() literal.Call {
	return literal.Call{Package: words.Harness, Func: "Applied", Args: []any{a.object}}
}

// ref returns the expectation that the object is applied.
func (a applied) ref() (ApplyRef, error) {
	scheme := a.scheme
	if scheme == nil {
		scheme = runtime.NewScheme()
	}
	if gotype.IsNil(a.object) {
		return ApplyRef{}, errNothingApplied
	}
	return applyRefOf(a.object, scheme)
}

// resolved returns the ref with the scheme for a configuration by [Applied], and with the name of its object.
func (r ApplyRef) resolved(scheme *runtime.Scheme) ApplyRef {
	a, ok := r.ApplyConfiguration.(applied)
	if !ok {
		return r
	}
	a.scheme = scheme
	r.ApplyConfiguration = a
	if r.Group != "" || r.Kind != "" || r.Namespace != "" || r.Name != "" {
		return r
	}
	if ref, err := a.ref(); err == nil {
		r.Group, r.Kind, r.Namespace, r.Name = ref.Group, ref.Kind, ref.Namespace, ref.Name
	}
	return r
}

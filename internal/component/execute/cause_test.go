package execute

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var jobKind = kschema.GroupKind{Group: "batch", Kind: "Job"}

func TestCauses(t *testing.T) {
	type dumped struct{ Name, Text string }
	large := dumped{"a", strings.Repeat(`x: "}" `, 100)}
	spec := field.NewPath("spec")
	invalid := func(errs ...*field.Error) error { return apierrs.NewInvalid(jobKind, "a", errs) }
	status := func(code int32, reason metav1.StatusReason, text string) error {
		return &apierrs.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: text}}
	}
	roles := kschema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"immutable":       {invalid(field.Invalid(spec.Child("template"), large, "field is immutable")), "spec.template: field is immutable"},
		"short value":     {invalid(field.Invalid(spec.Child("port"), 70000, "must be between 1 and 65535: inclusive")), "spec.port: Invalid value: 70000: must be between 1 and 65535: inclusive"},
		"quoted value":    {invalid(field.Invalid(spec.Child("x"), "a: b", "must be c")), `spec.x: Invalid value: "a: b": must be c`},
		"long text":       {invalid(field.Invalid(spec.Child("x"), strings.Repeat("a: ", 200), "must be short")), "spec.x: must be short"},
		"required":        {invalid(field.Required(spec.Child("x"), "")), "spec.x: Required value"},
		"not supported":   {invalid(field.NotSupported(spec.Child("x"), "c", []string{"a", "b"})), `spec.x: Unsupported value: "c": supported values: "a", "b"`},
		"forbidden field": {invalid(field.Forbidden(spec, "updates to statefulset spec for fields other than 'replicas' are forbidden")), "spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden"},
		"several fields": {invalid(field.Required(spec.Child("a"), ""), field.Required(spec.Child("b"), ""), field.Required(spec.Child("c"), ""), field.Required(spec.Child("d"), "")),
			"spec.a: Required value, spec.b: Required value, spec.c: Required value and 1 more"},
		"forbidden": {apierrs.NewForbidden(roles, "a", errors.New(`User "u" cannot create resource "roles" in API group "rbac.authorization.k8s.io" in the namespace "n"`)),
			`forbidden: User "u" cannot create resource "roles" in API group "rbac.authorization.k8s.io" in the namespace "n"`},
		"forbidden create": {apierrs.NewForbidden(roles, "", errors.New(`User "u" cannot create resource "roles"`)), `forbidden: User "u" cannot create resource "roles"`},
		"by a policy":      {status(422, metav1.StatusReasonInvalid, "ValidatingAdmissionPolicy 'safe-upgrades' with binding 'b' denied request: install a newer version"), "ValidatingAdmissionPolicy 'safe-upgrades' with binding 'b' denied request: install a newer version"},
		"by a webhook":     {status(403, metav1.StatusReasonForbidden, `admission webhook "w.example.com" denied the request: no`), `admission webhook "w.example.com" denied the request: no`},
		"unknown field":    {status(400, metav1.StatusReasonBadRequest, `ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dat"`), `unknown field "dat"`},
		"wrong type":       {status(400, metav1.StatusReasonBadRequest, `Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`), "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"},
		"not typed":        {status(500, metav1.StatusReasonInternalError, "failed to create typed patch object (n/a; apps/v1, Kind=Deployment): errors:\n  .spec.a: field not declared in schema\n  .spec.b: field not declared in schema"), ".spec.a: field not declared in schema .spec.b: field not declared in schema"},
		"dump":             {status(500, metav1.StatusReasonInternalError, "it is v1.Spec{Name:\"a}b\", Other:map[string]string{\"a\":\"b\"}, Third:\"ccccccccc\"} and more"), "it is v1.Spec{…} and more"},
		"dump cut off":     {status(500, metav1.StatusReasonInternalError, "it is v1.Spec{"+strings.Repeat("a", 100)), "it is v1.Spec{…}"},
		"no answer":        {errors.New("boom"), "boom"},
		"without words":    {status(418, "Teapot", ""), "status 418 Teapot"},
		"of this package":  {&StaleError{}, "it does not exist any more"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := causeOf(test.err); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
			if long := causeOf(fmt.Errorf("%s: %w", strings.Repeat("x", 1000), test.err)); len(long) > maxCause {
				t.Errorf("the cause has %d bytes, want at most %d", len(long), maxCause)
			}
		})
	}
}

func FuzzCauses(f *testing.F) {
	f.Add(`Invalid value: core.Spec{A:"}"}: no`, `jobs "a" is invalid: `)
	f.Add(`Invalid value: {`, `{{"`)
	f.Fuzz(func(t *testing.T, cause, text string) {
		err := &apierrs.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Message: text, Details: &metav1.StatusDetails{
			Name: "a", Causes: []metav1.StatusCause{{Field: "f", Message: cause}},
		}}}
		if got := causeOf(err); len(got) > maxCause || got != causeOf(err) {
			t.Errorf("the cause is %q (%d bytes), want the same each time and at most %d bytes", got, len(got),
				maxCause)
		}
	})
}

func TestHints(t *testing.T) {
	immutable := apierrs.NewInvalid(jobKind, "a", field.ErrorList{field.Invalid(field.NewPath("spec"), "a", "field is immutable")})
	other := apierrs.NewInvalid(jobKind, "a", field.ErrorList{field.Required(field.NewPath("spec"), "")})
	key := plan.Key{Group: "batch", Kind: "Job", Name: "a"}
	namespace := plan.Key{Kind: "Namespace", Name: "a"}
	for name, test := range map[string]struct {
		key    plan.Key
		action plan.Action
		policy apis.UpdatePolicy
		err    error
		want   bool
	}{
		"apply":          {key, plan.ActionApply, "", immutable, true},
		"replace":        {key, plan.ActionReplace, apis.UpdateReplace, immutable, true},
		"create":         {key, plan.ActionCreate, "", immutable, false},
		"is recreated":   {key, plan.ActionApply, apis.UpdateRecreate, immutable, false},
		"another reason": {key, plan.ActionApply, "", other, false},
		"a namespace":    {namespace, plan.ActionApply, "", immutable, false},
		"not refused":    {key, plan.ActionApply, "", errors.New("immutable"), false},
	} {
		t.Run(name, func(t *testing.T) {
			e := &Executor{Objects: map[plan.Key]*manifest.Object{test.key: {Desired: plan.Desired{Key: test.key, UpdatePolicy: test.policy}}}}
			err := e.failure(plan.Operation{Action: test.action, Key: test.key, Pattern: -1}, test.err)
			if got := strings.HasSuffix(err.Error(), hintRecreate); got != test.want {
				t.Error(err)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	e := &Executor{}
	fail := func(kind, name string, err error) error {
		return e.failure(plan.Operation{Action: plan.ActionApply, Key: plan.Key{Kind: kind, Name: name}, Pattern: -1}, err)
	}
	no, never := errors.New("no"), errors.New("never")
	var many []error
	for i := range 42 {
		many = append(many, fail("A", fmt.Sprint(i), no))
	}
	for name, test := range map[string]struct {
		err   error
		limit int
		want  string
	}{
		"one":            {fail("A", "a", no), 100, "unable to apply A a: no"},
		"alike":          {errors.Join(fail("A", "a", no), fail("A", "b", never), fail("B", "c", no)), 100, "unable to apply A a, B c: no; unable to apply A b: never"},
		"many":           {errors.Join(many...), 100, "unable to apply A 0, A 1, A 2, A 3, A 4 and 37 more: no"},
		"nested joins":   {errors.Join(errors.Join(fail("A", "a", no)), nil, errors.Join(fail("A", "b", no), no)), 100, "unable to apply A a, A b: no; no"},
		"no join":        {fmt.Errorf("while %w and %w", no, never), 100, "while no and never"},
		"wrapped":        {fmt.Errorf("after all: %w", fail("A", "a", no)), 100, "after all: unable to apply A a: no"},
		"little room":    {errors.Join(many...), 40, "unable to apply A 0, A 1 and 40 more: no"},
		"no room at all": {errors.Join(many...), 20, "unable to apply A…"},
		"an end":         {context.Canceled, 100, "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Summary(test.err, test.limit); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var (
	gaugeKind = schema.GroupKind{Group: "test.espalier.dev", Kind: "gauge"}
	badUnit   = field.NotSupported(field.NewPath("unit"), "furlong", []string{"m"})
	noDial    = field.Required(field.NewPath("dial"), "")
)

// invalidGauge is the answer to a request with those fields.
func invalidGauge(fields ...*field.Error) metav1.Status {
	return apierrs.NewInvalid(gaugeKind, "gadget", fields).Status()
}

func forbidden(message string) metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message}
}

// bareStatus is an error with the status of an API server that says little.
type bareStatus struct{ error }

func (bareStatus) Status() metav1.Status { return metav1.Status{Message: "bare"} }

func TestAdmissionWebhookAdapterErrors(t *testing.T) {
	conflict := apierrs.NewConflict(schema.GroupResource{Resource: "things"}, "thing", errBoom)
	object := &gauge{
		TypeMeta:   metav1.TypeMeta{APIVersion: "test.espalier.dev/v1", Kind: "gauge"},
		ObjectMeta: metav1.ObjectMeta{Name: "gadget"},
	}
	invalid := func(fields ...*field.Error) error {
		return reconcilers.InvalidFields(t.Context(), object, fields)
	}
	boomed := func(text string) metav1.Status {
		return metav1.Status{Code: http.StatusInternalServerError, Message: text}
	}
	tests := map[string]struct {
		err error
		// expected is nil for a request that is allowed.
		expected *metav1.Status
		logged   bool
		// nowhere is set for an error of a type that is not known where it came up.
		nowhere bool
	}{
		"nothing":                {},
		"a halt":                 {err: reconcilers.ErrHaltSubReconcilers},
		"a halt that is wrapped": {err: fmt.Errorf("enough: %w", reconcilers.ErrHaltSubReconcilers)},
		"a quiet error":          {err: reconcilers.ErrQuiet, expected: new(boomed(reconcilers.ErrQuiet.Error()))},
		"a durable error":        {err: reconcilers.ErrDurable, expected: new(boomed(reconcilers.ErrDurable.Error()))},
		"a halt because of something": {
			err:      errors.Join(reconcilers.ErrHaltSubReconcilers, errBoom),
			expected: new(boomed(reconcilers.ErrHaltSubReconcilers.Error() + "\nboom")),
		},
		"any other error":             {err: errBoom, expected: new(boomed("boom")), logged: true},
		"an error that wraps nothing": {err: wrapsNothing{}, expected: new(boomed("wraps nothing")), logged: true},
		"the status is not for webhooks": {
			err: reconcilers.ErrSkipStatusUpdate, expected: new(boomed(reconcilers.ErrSkipStatusUpdate.Error())), logged: true,
		},

		"a conflict":                 {err: conflict, expected: &conflict.ErrStatus, logged: true},
		"a conflict that is wrapped": {err: fmt.Errorf("no: %w", conflict), expected: &conflict.ErrStatus, logged: true},
		"a conflict among others":    {err: errors.Join(errBoom, conflict), expected: &conflict.ErrStatus, logged: true},
		"a conflict in an aggregate": {
			err: utilerrors.NewAggregate([]error{errBoom, conflict}), expected: &conflict.ErrStatus, logged: true, nowhere: true,
		},
		"a quiet conflict": {err: errors.Join(reconcilers.ErrQuiet, conflict), expected: &conflict.ErrStatus},
		"an invalid object elsewhere": {
			err: apierrs.NewInvalid(gaugeKind, "gadget", field.ErrorList{badUnit}), expected: new(invalidGauge(badUnit)), logged: true,
		},
		"a status without a code": {
			err: bareStatus{errBoom}, expected: &metav1.Status{Code: http.StatusInternalServerError, Message: "bare"}, logged: true,
		},

		"a field":                 {err: badUnit, expected: new(invalidGauge(badUnit))},
		"a field that is wrapped": {err: fmt.Errorf("no: %w", badUnit), expected: new(invalidGauge(badUnit))},
		"fields":                  {err: field.ErrorList{badUnit, noDial}.ToAggregate(), expected: new(invalidGauge(badUnit, noDial))},
		"fields that are joined":  {err: errors.Join(badUnit, errors.Join(noDial)), expected: new(invalidGauge(badUnit, noDial))},
		"fields, quietly":         {err: errors.Join(reconcilers.ErrQuiet, badUnit), expected: new(invalidGauge(badUnit))},
		"a field among others": {
			err: errors.Join(badUnit, errBoom), expected: new(invalidGauge(badUnit)), logged: true,
		},

		"a denial":                 {err: reconcilers.Deny("no %s", "way"), expected: new(forbidden("no way"))},
		"a denial that is wrapped": {err: fmt.Errorf("hm: %w", reconcilers.Deny("no")), expected: new(forbidden("no"))},
		"denials": {
			err:      errors.Join(reconcilers.Deny("no"), reconcilers.Deny("never")),
			expected: new(forbidden("no")),
		},
		"a denial among others": {err: errors.Join(errBoom, reconcilers.Deny("no")), expected: new(forbidden("no")), logged: true},
		"a denial after a conflict": {
			err: errors.Join(conflict, reconcilers.Deny("no")), expected: &conflict.ErrStatus, logged: true,
		},
		"a denial and a field": {
			err: errors.Join(badUnit, reconcilers.Deny("no")), expected: new(forbidden("no")),
		},

		"invalid fields":              {err: invalid(badUnit, noDial), expected: new(invalidGauge(badUnit, noDial))},
		"no invalid fields":           {err: invalid()},
		"no invalid fields that are":  {err: invalid(nil, nil)},
		"invalid fields of two nodes": {err: errors.Join(invalid(badUnit), invalid(noDial)), expected: new(invalidGauge(badUnit, noDial))},
		"invalid fields and a field":  {err: errors.Join(invalid(badUnit), noDial), expected: new(invalidGauge(badUnit, noDial))},
		"invalid fields among others": {err: errors.Join(errBoom, invalid(badUnit)), expected: new(invalidGauge(badUnit)), logged: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			hook := gaugeTree(func(_ context.Context, g *gauge) error {
				g.Unit = "km"
				return test.err
			})
			actual, heard := handle(t, hook, gaugeRequest(admissionv1.Create))
			if test.expected == nil {
				if !actual.Allowed || len(actual.Patches) != 1 {
					t.Errorf("answered %v, expected that it is allowed with a patch", actual)
				}
			} else {
				compareAnswers(t, refused(*test.expected), actual)
			}
			if logged := strings.Count(heard, `"error"=`) == 1 && strings.Contains(heard, `"reconcile error"`); logged != test.logged {
				t.Errorf("logged %t, expected %t:\n%s", logged, test.logged, heard)
			}
			if test.logged && !test.nowhere && !strings.Contains(heard, `"error"="gaugeAdmissionWebhookAdapter/Node: `) {
				t.Errorf("the log does not say where the error came up, want gaugeAdmissionWebhookAdapter/Node:\n%s",
					heard)
			}
		})
	}
}

// wrapsNothing is an error that could wrap another one.
type wrapsNothing struct{}

func (wrapsNothing) Error() string { return "wraps nothing" }

func (wrapsNothing) Unwrap() error { return nil }

func TestAdmissionWebhookAdapterKeepsTheResult(t *testing.T) {
	result := metav1.Status{Code: http.StatusTeapot, Message: "short and stout"}
	hook := gaugeTree(func(ctx context.Context, _ *gauge) error {
		reconcilers.RetrieveAdmissionResponse(ctx).Result = &result
		return errBoom
	})
	actual, _ := handle(t, hook, gaugeRequest(admissionv1.Create))
	compareAnswers(t, refused(result), actual)
}

func TestResultsOutsideOfAWebhook(t *testing.T) {
	reconcilers.Warn(t.Context(), "this is not heard")
	if old, err := reconcilers.RetrieveOldResource[*gauge](t.Context()); old != nil || err != nil {
		t.Errorf("the old resource is %v (%v), want none", old, err)
	}
	if reconcilers.IsDryRun(t.Context()) {
		t.Error("it is a dry run, want none")
	}
	invalid := reconcilers.InvalidFields(t.Context(), &gauge{}, field.ErrorList{badUnit})
	for name, test := range map[string]struct {
		err   error
		is    func(error) bool
		class reconcilers.Class
	}{
		"denial":  {reconcilers.Deny("no"), apierrs.IsForbidden, reconcilers.ClassForbidden},
		"invalid": {invalid, apierrs.IsInvalid, reconcilers.ClassTerminal},
	} {
		var status *apierrs.StatusError
		if !test.is(test.err) || !errors.As(test.err, &status) || reconcilers.Classify(test.err) != test.class {
			t.Errorf("%s: the error is %#v, want a StatusError of class %s", name, test.err, test.class)
		}
		node := &gaugeSync{Sync: func(context.Context, *gauge) error { return test.err }}
		if _, err := node.Reconcile(testContext(t, expectWidget().Config()), &gauge{}); err != test.err {
			t.Errorf("%s: the error is %v, want %v", name, err, test.err)
		}
	}
}

func TestInvalidFieldsNamesTheResource(t *testing.T) {
	ctx := testContext(t, expectWidget().Config())
	kind := metav1.TypeMeta{APIVersion: "a/v1", Kind: "K"}
	for name, test := range map[string]struct {
		ctx      context.Context
		resource client.Object
		expected string
	}{
		"by its kind":    {t.Context(), &gauge{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{Name: "n"}}, `K.a "n"`},
		"by the scheme":  {ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, `Secret "n"`},
		"by the Go type": {ctx, &gauge{ObjectMeta: metav1.ObjectMeta{GenerateName: "n-"}}, `gauge "n-*"`},
		"not at all":     {ctx, nil, ` "gadget"`},
		"as nil":         {ctx, (*gauge)(nil), ` "gadget"`},
	} {
		err := reconcilers.InvalidFields(test.ctx, test.resource, field.ErrorList{noDial})
		checkError(t, name, err, test.expected+" is invalid: dial: Required value")
	}
}

func TestWarn(t *testing.T) {
	hook := gaugeTree(func(ctx context.Context, _ *gauge) error {
		for _, text := range []string{"first", "", " \n ", "two\nlines\x00", "first", "bro\xffken"} {
			reconcilers.Warn(ctx, "%s", text)
		}
		return reconcilers.Deny("no")
	})
	actual, _ := handle(t, hook, gaugeRequest(admissionv1.Create))
	if diff := cmp.Diff([]string{"first", "two lines", "bro\uFFFDken"}, actual.Warnings); diff != "" {
		t.Errorf("the warnings differ (-expected, +actual):\n%s", diff)
	}
}

func TestRetrieveOldResource(t *testing.T) {
	old := func(text string) func(*ctrladmission.Request) {
		return func(req *ctrladmission.Request) { req.OldObject = runtime.RawExtension{Raw: []byte(text)} }
	}
	tests := map[string]struct {
		operation admissionv1.Operation
		change    func(*ctrladmission.Request)
		retrieve  func(ctx context.Context) (client.Object, error)
		expected  client.Object
		err       string
	}{
		"an update": {
			operation: admissionv1.Update,
			change:    old(`{"metadata":{"name":"old"},"dial":{"size":3}}`),
			expected:  &gauge{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Unit: "m", Dial: &gaugeDial{Size: 3}},
		},
		"a deletion": {
			operation: admissionv1.Delete,
			expected: &gauge{
				TypeMeta:   metav1.TypeMeta{APIVersion: "test.espalier.dev/v1", Kind: "gauge"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget"},
				Unit:       "m",
				Dial:       &gaugeDial{Color: "white"},
			},
		},
		"a creation": {operation: admissionv1.Create, expected: (*gauge)(nil)},
		"as another type": {
			operation: admissionv1.Update,
			change:    old(`{"kind":"gauge","newer":1}`),
			retrieve: func(ctx context.Context) (client.Object, error) {
				return reconcilers.RetrieveOldResource[*unstructured.Unstructured](ctx)
			},
			expected: &unstructured.Unstructured{Object: map[string]any{"kind": "gauge", "newer": int64(1)}},
		},
		"as what the node sees": {
			operation: admissionv1.Update,
			change:    old(`{"unit":"km","dial":{}}`),
			retrieve: func(ctx context.Context) (client.Object, error) {
				return reconcilers.RetrieveOldResource[client.Object](ctx)
			},
			expected: &gauge{Unit: "km", Dial: &gaugeDial{}},
		},
		"as something that cannot be made": {
			operation: admissionv1.Update,
			change:    old(`{}`),
			retrieve: func(ctx context.Context) (client.Object, error) {
				return reconcilers.RetrieveOldResource[client.Object](reconcilers.StashResourceType(ctx, nil))
			},
			err: "unable to decode the old object: no value can be made of cacheapi.Object",
		},
		"what breaks off": {
			operation: admissionv1.Update,
			change:    old(`{`),
			err:       "unable to decode the old object: unexpected end of JSON input",
		},
		"defaults that fail": {
			operation: admissionv1.Update,
			change:    old(`{"unit":"furlong"}`),
			err:       "unable to fill in the defaults of the old object: boom",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			req := gaugeRequest(test.operation)
			if test.change != nil {
				test.change(&req)
			}
			if test.retrieve == nil {
				test.retrieve = func(ctx context.Context) (client.Object, error) {
					return reconcilers.RetrieveOldResource[*gauge](ctx)
				}
			}
			hook := gaugeTree(func(ctx context.Context, _ *gauge) error {
				actual, err := test.retrieve(ctx)
				checkError(t, "retrieving it", err, test.err)
				if diff := cmp.Diff(test.expected, actual); err == nil && diff != "" {
					t.Errorf("the old resource differs (-expected, +actual):\n%s", diff)
				}
				return nil
			})
			handle(t, hook, req)
		})
	}
}

func TestL9WebhooksDoNotLogSecrets(t *testing.T) {
	secret := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"gadget"},"stringData":{"a":%q}}`, secretOld)
	change := func(obj client.Object, set func()) error {
		obj.SetLabels(map[string]string{"changed": "visibly"})
		set()
		return nil
	}
	hooks := map[string]ctrladmission.Handler{
		"typed": &reconcilers.AdmissionWebhookAdapter[*corev1.Secret]{
			Reconciler: &reconcilers.SyncReconciler[*corev1.Secret]{Sync: func(_ context.Context, s *corev1.Secret) error {
				return change(s, func() { s.StringData["a"] = secretValue })
			}},
		},
		"unstructured": &reconcilers.AdmissionWebhookAdapter[*unstructured.Unstructured]{
			Reconciler: &reconcilers.SyncReconciler[*unstructured.Unstructured]{Sync: func(_ context.Context, u *unstructured.Unstructured) error {
				return change(u, func() { u.Object["stringData"] = map[string]any{"a": secretValue} })
			}},
		},
		"duck": &reconcilers.AdmissionWebhookAdapter[*secretDuck]{
			Reconciler: &reconcilers.SyncReconciler[*secretDuck]{Sync: func(_ context.Context, d *secretDuck) error {
				d.TypeMeta = metav1.TypeMeta{}
				return change(d, func() { d.StringData["a"] = secretValue })
			}},
		},
	}
	for name, hook := range hooks {
		t.Run(name, func(t *testing.T) {
			actual, heard := handle(t, hook, ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Secret"}, Operation: admissionv1.Create,
				Object: runtime.RawExtension{Raw: []byte(secret)},
			}})
			if len(actual.Patches) != 2 || actual.Patches[1].Value != secretValue {
				t.Errorf("the patches are %v, want 2, the second with the value", actual.Patches)
			}
			if leaks(heard) || !strings.Contains(heard, `"path"="/stringData/a" "value"="(withheld)"`) {
				t.Errorf("the log is %s, want the value withheld", heard)
			}
		})
	}
	_, heard := handle(t, gaugeTree(func(_ context.Context, g *gauge) error {
		g.Unit = "km"
		return nil
	}), gaugeRequest(admissionv1.Create))
	if !strings.Contains(heard, `"msg"="mutating resource"`) ||
		!strings.Contains(heard, `"patch"=[{"op"="add" "path"="/unit" "value"="km"}]`) {
		t.Errorf("the log is %s, want the patch of the unit", heard)
	}
}

type secretDuck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	StringData        map[string]string `json:"stringData,omitempty"`
}

func (d *secretDuck) DeepCopyObject() runtime.Object { return copyByJSON(d, &secretDuck{}) }

package testing_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// A field of an ExpectConfig that a case lacks cannot be used in that case.
func TestCasesHaveTheFieldsOfAnExpectConfig(t *testing.T) {
	config := reflect.TypeFor[rtesting.ExpectConfig]()
	for _, tc := range []reflect.Type{
		reflect.TypeFor[rtesting.ReconcilerTestCase](),
		reflect.TypeFor[cmCase](),
		reflect.TypeFor[rtesting.AdmissionWebhookTestCase](),
	} {
		for i := range config.NumField() {
			want := config.Field(i)
			if !want.IsExported() || want.Name == "Scheme" {
				continue
			}
			if field, ok := tc.FieldByName(want.Name); !ok || field.Type != want.Type {
				t.Errorf("%s has no field %s of type %s", tc.Name(), want.Name, want.Type)
			}
		}
	}
}

func TestExpectedErr(t *testing.T) {
	requeue := reconcilers.Result{RequeueAfter: 1}
	returns := func(result reconcilers.Result, err error) map[string]any {
		return map[string]any{"node": node[*corev1.ConfigMap]{
			reconcile: func(context.Context, *corev1.ConfigMap) (reconcilers.Result, error) { return result, err },
		}}
	}
	runNode(t, cmTests{
		"wrapped, with a result": {
			Resource: settings.Object(), ExpectedErr: errOops, ExpectedResult: requeue,
			Metadata: returns(requeue, fmt.Errorf("no luck: %w", errOops)),
		},
		"the same text": {
			Resource: settings.Object(), ExpectedErr: errors.New("no luck: oops"),
			Metadata: returns(reconcilers.Result{}, fmt.Errorf("no luck: %w", errOops)),
		},
		"any, whatever the result": {
			Resource: settings.Object(), ShouldErr: true,
			Metadata: returns(requeue, errOops),
		},
	})
}

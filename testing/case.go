package testing

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// prepare calls the Prepare of a case, if it has one, and returns the context to go on with.
func prepare[Case any](
	t *testing.T, ctx context.Context, tc *Case, hook func(*testing.T, context.Context, *Case) (context.Context, error),
) context.Context {
	t.Helper()
	if hook == nil {
		return ctx
	}
	prepared, err := hook(t, ctx, tc)
	if err != nil {
		t.Fatalf("error during prepare: %s", err)
	}
	if prepared == nil {
		return ctx
	}
	return prepared
}

// cleanUp calls the CleanUp of a case, if it has one.
func cleanUp[Case any](
	t *testing.T, ctx context.Context, tc *Case, hook func(*testing.T, context.Context, *Case) error,
) {
	t.Helper()
	if hook == nil {
		return
	}
	if err := hook(t, ctx, tc); err != nil {
		t.Errorf("error during clean up: %s", err)
	}
}

// expectConfigOf returns the config of a case, a pointer to a struct: what the case gives and expects is in fields that
// have the names and types of those of an ExpectConfig.
func expectConfigOf(tc any, scheme *runtime.Scheme) *ExpectConfig {
	c := &ExpectConfig{}
	from, to := reflect.ValueOf(tc).Elem(), reflect.ValueOf(c).Elem()
	for i := range to.NumField() {
		field := to.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		if value := from.FieldByName(field.Name); value.IsValid() && value.Type() == field.Type {
			to.Field(i).Set(value)
		}
	}
	c.Name, c.Scheme = "default", scheme
	return c
}

// isExpected tells whether err is the expected error, or says the same.
func isExpected(expected, err error) bool {
	return err != nil && (errors.Is(err, expected) || err.Error() == expected.Error())
}

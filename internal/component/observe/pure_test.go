package observe_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/served"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	ourID    = "our-id"
	ourOwner = "Shop.example.com/default/shop/uid-1"
)

func managed(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1",
		Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestContent(t *testing.T) {
	enc := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, test := range map[string]struct {
		desired map[string]string
		ignore  []string
		data    map[string]string
		want    plan.Content
	}{
		"same":               {map[string]string{"a": enc("1"), "b": enc("")}, nil, map[string]string{"a": "1", "b": ""}, plan.ContentSame},
		"others' keys":       {map[string]string{"a": enc("1")}, nil, map[string]string{"a": "1", "z": "9"}, plan.ContentSame},
		"nothing desired":    {nil, nil, map[string]string{"a": "1"}, plan.ContentSame},
		"another value":      {map[string]string{"a": enc("1")}, nil, map[string]string{"a": "2"}, plan.ContentDifferent},
		"missing key":        {map[string]string{"a": enc("1")}, nil, map[string]string{"b": "1"}, plan.ContentDifferent},
		"swapped":            {map[string]string{"a": enc("1"), "b": enc("2")}, nil, map[string]string{"a": "2", "b": "1"}, plan.ContentDifferent},
		"malformed":          {map[string]string{"a": "%"}, nil, map[string]string{"a": "%"}, plan.ContentDifferent},
		"wrapped base64":     {map[string]string{"a": "aGVs\nbG8=\n"}, nil, map[string]string{"a": "hello"}, plan.ContentSame},
		"ignored key":        {map[string]string{"a": enc("1"), "b": enc("2")}, []string{"/data/a"}, map[string]string{"b": "2"}, plan.ContentSame},
		"ignored data":       {map[string]string{"a": enc("1")}, []string{"/data"}, nil, plan.ContentSame},
		"other ignored path": {map[string]string{"a": enc("1")}, []string{"/data/a/b", "/spec/a", "data"}, nil, plan.ContentDifferent},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for key, value := range test.data {
				data[key] = []byte(value)
			}
			if got := observe.CompareContent(test.desired, test.ignore, data); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
			for key, value := range data {
				for _, b := range value {
					if b != 0 {
						t.Errorf("the value of %s is still in memory as %v, want zeros", key, value)
					}
				}
			}
		})
	}
}

func TestErrorClass(t *testing.T) {
	gr := schema.GroupResource{Resource: "widgets"}
	unserved := apierrors.NewGenericServerResponse(404, "get", gr, "x", "404 page not found", 0, true)
	for name, test := range map[string]struct {
		err               error
		watching, reading string
		absent            bool
	}{
		"forbidden":     {apierrors.NewForbidden(gr, "x", errors.New("no")), "may not be listed in the whole cluster: forbidden", "may not be read: forbidden", false},
		"unauthorized":  {apierrors.NewUnauthorized("x"), "cannot be watched: the API server rejects the credentials", "cannot be read: the API server rejects the credentials", false},
		"object":        {apierrors.NewNotFound(gr, "x"), "cannot be watched: the API is unavailable", "cannot be read: the API is unavailable", true},
		"resource":      {unserved, "cannot be watched: the API is unavailable", "cannot be read: the API is unavailable", false},
		"no match":      {&meta.NoKindMatchError{}, "cannot be watched: the API is unavailable", "cannot be read: the API is unavailable", false},
		"unavailable":   {apierrors.NewServiceUnavailable("x"), "cannot be watched: the API is unavailable", "cannot be read: the API is unavailable", false},
		"time-out":      {apierrors.NewTimeoutError("x", 1), "cannot be watched: the API is unavailable", "cannot be read: the API is unavailable", false},
		"deadline":      {fmt.Errorf("x: %w", context.DeadlineExceeded), "cannot be watched: the API is unavailable", "cannot be read: the API is unavailable", false},
		"method":        {apierrors.NewMethodNotSupported(gr, "list"), "cannot be watched: the API does not support it", "cannot be read: the API does not support it", false},
		"no connection": {errors.New("dial"), "cannot be watched: the API server cannot be reached", "cannot be read: the API server cannot be reached", false},
		"busy":          {apierrors.NewTooManyRequests("x", 1), "cannot be watched: the API is unavailable", "cannot be read: the API is unavailable", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := observe.WatchReason(test.err, "listed"); got != test.watching {
				t.Errorf("got %q, want %q", got, test.watching)
			}
			if got := observe.ReadReason(test.err); got != test.reading {
				t.Errorf("got %q, want %q", got, test.reading)
			}
			if got := served.IsNotFound(test.err); got != test.absent {
				t.Errorf("absent: got %v, want %v", got, test.absent)
			}
		})
	}
}

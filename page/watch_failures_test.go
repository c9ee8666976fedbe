package page_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
)

// Point 15: the first page names a type that cannot be watched, without what the decoder quotes, until it can.
func TestATypeThatCannotBeWatched(t *testing.T) {
	w := newWorld(t, page.Options{})
	failures := &reconcilers.WatchErrors{}
	handle := func(err error) {
		failures.Handle(t.Context(), cache.NewReflector(nil, &corev1.Secret{}, nil, 0), err)
	}
	handle(errors.New("before anybody is told"))
	failures.Tell(w.page)
	for _, ended := range []error{io.EOF, io.ErrUnexpectedEOF, apierrs.NewResourceExpired("too old")} {
		handle(ended)
	}
	if v := w.page.Overview().WatchFailures; len(v) > 0 {
		t.Errorf("the end of a watch is shown as an error: %v", v)
	}
	handle(errors.New("connection refused"))
	handle(errors.New(`failed to list *v1.Secret: time: invalid duration "1d"`))
	want := []page.WatchFailureView{{
		Type: "v1.Secret", Error: `failed to list *v1.Secret: time: invalid duration "…"`, Times: 2,
		Since: page.Moment{ISO: "2026-01-02T03:05:05Z", Text: "0s ago"},
	}}
	if diff := cmp.Diff(want, w.page.Overview().WatchFailures); diff != "" {
		t.Errorf("what cannot be watched (-want, +shown)\n%s", diff)
	}
	w.page.At(later.Add(5 * time.Minute))
	if v := w.page.Overview().WatchFailures; len(v) > 0 {
		t.Errorf("it is shown although it has not failed for five minutes: %v", v)
	}
}

package espalier_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
)

// An auxiliary node that fails is tried again less and less often, whatever else brings the resource back.
func TestAuxiliaryNodesBackOff(t *testing.T) {
	broken := true
	part := espalier.Owns("Part", func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) {
		if broken {
			return nil, errors.New("the color is sold out")
		}
		return nil, nil
	}).Auxiliary()
	expect := &rtesting.ExpectConfig{Scheme: scheme}
	now, known := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), &resourcestate.State{}
	try := func() time.Duration {
		t.Helper()
		ctx := reconcilers.StashConfig(rtime.StashNow(t.Context(), now), expect.Config())
		ctx = reconcilers.StashOriginalConfig(ctx, expect.Config())
		result, err := part.Reconcile(resourcestate.NewContext(ctx, known), widget.Object())
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	var delays []time.Duration
	for range 8 {
		delays = append(delays, try())
		now = now.Add(time.Second)
		if got, want := try(), delays[len(delays)-1]-time.Second; got != want {
			t.Errorf("after an event it is tried again after %s, want when it was to be, after %s", got, want)
		}
		now = now.Add(delays[len(delays)-1] - time.Second)
	}
	const want = "[10s 20s 40s 1m20s 2m40s 5m0s 5m0s 5m0s]"
	if got := fmt.Sprint(delays); got != want {
		t.Errorf("it is tried again after %s, want %s", got, want)
	}
	broken = false
	if got := try(); got != 0 {
		t.Errorf("it is tried again after %s, want never since it is as desired", got)
	}
	broken = true
	if got := try(); got != 10*time.Second {
		t.Errorf("a new failure is tried again after %s, want 10s", got)
	}
}

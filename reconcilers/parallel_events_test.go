package reconcilers_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// The last branch is the fastest, and its events come last.
func TestParallelEventsHaveTheOrderOfTheNodes(t *testing.T) {
	config := inMemory(widget.Object())
	recorder := record.NewFakeRecorder(100)
	config.Recorder = recorder
	const branches = 4
	recorded := make([]chan struct{}, branches+1)
	for i := range recorded {
		recorded[i] = make(chan struct{})
	}
	close(recorded[branches])
	records := func(i int) widgetNode {
		return &widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
			<-recorded[i+1]
			defer close(recorded[i])
			config := reconcilers.RetrieveConfigOrDie(ctx)
			config.Recorder.Eventf(w, corev1.EventTypeNormal, "Ran", "branch %d of %s", i, w.Name)
			config.Recorder.Event(w, corev1.EventTypeNormal, "Ends", fmt.Sprintf("branch %d", i))
			return nil
		}}
	}
	withConfig := &reconcilers.WithConfig[*resources.Widget]{
		Config: func(ctx context.Context, config reconcilers.Config) (reconcilers.Config, error) {
			return config, nil
		},
		Reconciler: records(2),
	}
	root := &widgetRoot{Config: config, Reconciler: parallel(records(0), parallel(records(1), withConfig), records(3))}
	if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
		t.Fatalf("the error is %v, want none", err)
	}
	var got, want []string
	for i := range branches {
		want = append(want,
			fmt.Sprintf("Normal Ran branch %d of %s", i, widgetRequest.Name), fmt.Sprintf("Normal Ends branch %d", i))
	}
	want = append(want, "Normal StatusUpdated Updated status")
	for len(recorder.Events) > 0 {
		got = append(got, <-recorder.Events)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
}

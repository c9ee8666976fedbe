package replay_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/replay"
)

// differences runs code that learns whether this is the run with a fault: then its first call fails.
func differences(
	t *testing.T, objs []client.Object, do func(ctx context.Context, p *process, failed bool) error,
	ignore func(object, path string) bool,
) []string {
	t.Helper()
	service := &counter{}
	program := programOf(given(t, append(objs, widget())...), func(ctx context.Context, p *process) error {
		done, err := p.done(ctx)
		if done || err != nil {
			p.memory["failed"] = "yes"
			return err
		}
		service.calls["failed"] = len(p.memory)
		if p.world.Do(ctx, "POST /", func() error { return nil }) != nil {
			return errors.New("no")
		}
		if err := do(ctx, p, p.memory["failed"] != ""); err != nil {
			return err
		}
		return p.Create(ctx, configMap("done"))
	}, service.external())
	found, err := replay.Run(t.Context(), program,
		[]replay.Fault{{Sort: replay.Fails, Call: "get ConfigMap ns/done"}}, replay.Options{Ignore: ignore})
	if err != nil {
		t.Fatal(err)
	}
	if found == nil {
		return nil
	}
	return found.Differences
}

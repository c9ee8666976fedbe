package storage_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// recording records what is done to a fork of a storage.
func recording(t *testing.T, base *storage.Storage) (*storage.Storage, context.Context, *storage.Recording) {
	t.Helper()
	fork := base.Fork(nil)
	state, ok := fork.State()
	if !ok {
		t.Fatal("the state is not known")
	}
	ctx, r := fork.Record(storage.With(t.Context(), fork), state)
	return fork, ctx, r
}

func TestRepeat(t *testing.T) {
	base := storage.New(storage.Options{Retention: -1})
	p := newPods(t, base)
	p.create(t.Context(), "a")
	p.create(t.Context(), "b")
	fork, ctx, r := recording(t, base)
	p.label(ctx, "a", "1")
	p.delete(ctx, "b")
	p.create(ctx, "c")
	_, n := fork.Name(func(n int) (string, string) { return fmt.Sprint(n), podKey(fmt.Sprint(n)) })
	fork.EndName(n, true)
	effect, ok := r.Effect()
	if !ok {
		t.Fatal("the effect is not known")
	}
	again := base.Fork(nil)
	watch, err := p.Watch(storage.With(t.Context(), again), "/pods/", apistorage.ListOptions{
		Recursive: true, Predicate: apistorage.Everything, ResourceVersion: fmt.Sprint(base.Revision()),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if !again.Repeat(effect) {
		t.Fatal("it was not repeated")
	}
	for _, e := range fork.Entries("/") {
		if again.Entry(e.Key) != e {
			t.Errorf("%s has another entry", e.Key)
		}
	}
	before, _ := fork.State()
	after, _ := again.State()
	if before != after || again.Ended(podKey("b")) != 1 || len(again.Entries("/")) != 2 {
		t.Errorf("the state is %v after %v, b was deleted %d times", after, before, again.Ended(podKey("b")))
	}
	for _, want := range fork.Changes(base.Revision()) {
		event := <-watch.ResultChan()
		if got := event.Object.(metav1.Object).GetResourceVersion(); got != fmt.Sprint(want.Revision) {
			t.Errorf("the watch shows revision %s, want %d", got, want.Revision)
		}
	}
	if again.Repeat(effect) {
		t.Error("it was repeated in another state")
	}
	if got, want := again.Revision(), fork.Revision(); got != want {
		t.Errorf("the revision is %d, want %d", got, want)
	}
}

func TestEffectsOfOthersAreNotRecorded(t *testing.T) {
	base := storage.New(storage.Options{Retention: -1})
	p := newPods(t, base)
	for name, others := range map[string]func(fork *storage.Storage, write func()){
		"before": func(fork *storage.Storage, write func()) { p.create(storage.With(t.Context(), fork), "x"); write() },
		"after":  func(fork *storage.Storage, write func()) { write(); p.create(storage.With(t.Context(), fork), "x") },
		"given": func(fork *storage.Storage, write func()) {
			write()
			if err := fork.Give(); err != nil {
				t.Error(err)
			}
		},
	} {
		fork, ctx, r := recording(t, base)
		others(fork, func() { p.create(ctx, "a") })
		if _, ok := r.Effect(); ok {
			t.Errorf("%s: what others did is part of the effect", name)
		}
	}
	fork, _, r := recording(t, base)
	_, n := fork.Name(func(int) (string, string) { return "a", podKey("a") })
	if _, ok := fork.State(); ok {
		t.Error("the state is known while a request has a name")
	}
	if _, ok := r.Effect(); ok {
		t.Error("the effect is known while a request has a name")
	}
	fork.EndName(n, false)
	if _, ok := fork.State(); !ok {
		t.Error("the state is not known after the end of the name")
	}
}

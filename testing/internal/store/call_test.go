package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// TestCalls makes each call once, with and without a cache.
func TestCalls(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{}
	node.Name, node.Namespace = "node", "dropped"
	s := newStore(t, widgets())
	var calls, writes []string
	record := func(_ context.Context, call store.Call, do func() error) error {
		calls = append(calls, call.String())
		if call.Writes() {
			writes = append(writes, string(call.Verb))
		}
		return do()
	}
	c := s.Client(store.ClientOptions{Intercept: record, FieldManager: "test"})
	cached := s.Client(store.ClientOptions{Intercept: record, View: store.NewView()})
	generated := configMap("")
	generated.GenerateName = "gen-"
	merge := client.RawPatch(types.MergePatchType, []byte(`{}`))
	ctx := t.Context()
	for _, test := range []struct {
		call func() error
		want string
	}{
		{func() error { return c.Create(ctx, app("a")) }, "create App ns/a"},
		{func() error { return c.Create(ctx, generated) }, "create ConfigMap ns/gen-*"},
		{func() error { return c.Create(ctx, node) }, "create Node node"},
		{func() error { return c.Create(ctx, app("b"), client.DryRunAll) }, "create App ns/b (dry run)"},
		{func() error { return c.Create(ctx, widget("w")) }, "create Widget ns/w"},
		{func() error { return c.Get(ctx, client.ObjectKeyFromObject(app("a")), app("")) }, "get App ns/a (live)"},
		{func() error { return cached.Get(ctx, client.ObjectKeyFromObject(app("a")), app("")) }, "get App ns/a"},
		{func() error { return c.List(ctx, &AppList{}) }, "list App (live)"},
		{func() error { return cached.List(ctx, &AppList{}, client.InNamespace("ns")) }, "list App ns"},
		{func() error { return c.Patch(ctx, app("a"), merge) }, "patch App ns/a"},
		{func() error { return c.Status().Patch(ctx, app("a"), merge) }, "patch App/status ns/a"},
		{func() error { return c.Update(ctx, read(t, s.Client(store.ClientOptions{}), app("a"))) }, "update App ns/a"},
		{func() error { return c.Status().Update(ctx, read(t, s.Client(store.ClientOptions{}), app("a"))) },
			"update App/status ns/a"},
		{func() error { return c.SubResource("scale").Get(ctx, widget("w"), widget("")) },
			"get Widget/scale ns/w (live)"},
		{func() error { return c.Apply(ctx, applied(t, widget("w"))) }, "apply Widget ns/w"},
		{func() error { return c.Delete(ctx, app("a")) }, "delete App ns/a"},
		{func() error { return c.DeleteAllOf(ctx, app(""), client.InNamespace("ns")) }, "delete-collection App ns"},
		{func() error {
			w, err := c.Watch(ctx, &AppList{})
			if err == nil {
				w.Stop()
			}
			return err
		}, "watch App (live)"},
	} {
		calls = nil
		if err := test.call(); err != nil {
			t.Errorf("%s: %v", test.want, err)
		}
		if want := []string{test.want}; !slices.Equal(calls, want) {
			t.Errorf("got %q, want %q", calls, want)
		}
	}
	want := []string{"create", "create", "create", "create", "patch", "patch", "update", "update", "apply", "delete",
		"delete-collection"}
	if !slices.Equal(writes, want) {
		t.Errorf("got the writes %v, want %v", writes, want)
	}
}

func TestIntercept(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	for _, test := range []struct {
		name      string
		intercept store.Intercept
		made      bool
		err       error
	}{
		{"passes", func(_ context.Context, _ store.Call, do func() error) error { return do() }, true, nil},
		{"makes no call", func(context.Context, store.Call, func() error) error { return lost }, false, lost},
		{"loses the answer", func(_ context.Context, _ store.Call, do func() error) error {
			return errors.Join(do(), lost)
		}, true, lost},
	} {
		s := newStore(t, app("given"))
		c := s.Client(store.ClientOptions{Intercept: test.intercept})
		cm := configMap("one")
		if err := c.Create(t.Context(), cm); !errors.Is(err, test.err) {
			t.Errorf("%s: the error is %v, want %v", test.name, err, test.err)
		}
		if made := exists(t, s.Client(store.ClientOptions{}), cm); made != test.made {
			t.Errorf("%s: the object was made: %t, want %t", test.name, made, test.made)
		}
		if answered := cm.UID != ""; answered != (test.err == nil) {
			t.Errorf("%s: the object was answered: %t, want %t", test.name, answered, test.err == nil)
		}
		a := &App{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(app("given")), a); !errors.Is(err, test.err) ||
			(a.Name != "") != (test.err == nil) {
			t.Errorf("%s: the answer is %+v and the error %v, want the error %v, or else the object", test.name, a, err,
				test.err)
		}
	}
}

// TestInterceptWithoutError intercepts each call that has an answer, makes none of them, and says that all is well.
func TestInterceptWithoutError(t *testing.T) {
	t.Parallel()
	s := newStore(t, app("a"))
	c := s.Client(store.ClientOptions{
		Intercept: func(context.Context, store.Call, func() error) error { return nil },
	})
	ctx := t.Context()
	merge := client.RawPatch(types.MergePatchType, []byte(`{}`))
	for name, call := range map[string]func() error{
		"get":    func() error { return c.Get(ctx, client.ObjectKeyFromObject(app("a")), app("")) },
		"list":   func() error { return c.List(ctx, &AppList{}) },
		"create": func() error { return c.Create(ctx, app("b")) },
		"patch":  func() error { return c.Patch(ctx, app("a"), merge) },
		"delete": func() error { return c.Delete(ctx, app("a")) },
		"watch": func() error {
			_, err := c.Watch(ctx, &AppList{})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "not made") {
			t.Errorf("%s: the error is %v, want that the call is not made", name, err)
		}
	}
}

func TestCallsAfterTheContextEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := newClient(t)
	if err := c.Create(ctx, configMap("one")); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want %v", err, context.Canceled)
	}
	if exists(t, c, configMap("one")) {
		t.Error("the object was created, want it not to be")
	}
}

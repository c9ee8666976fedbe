package replay_test

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

// forWidget makes code that needs no service, and does nothing once the resource is gone.
func forWidget(make func(context.Context, *process, *resources.Widget) error) func(*counter) code {
	return func(*counter) code {
		return func(ctx context.Context, p *process) error {
			w, err := p.widget(ctx)
			if w == nil || err != nil {
				return err
			}
			return make(ctx, p, w)
		}
	}
}

// onlyChild returns the name of the child, which is created if a reader has none.
func onlyChild(ctx context.Context, p *process, reader client.Reader) (string, error) {
	var children corev1.ConfigMapList
	if err := reader.List(ctx, &children, client.InNamespace("ns")); err != nil {
		return "", err
	}
	for _, child := range children.Items {
		if strings.HasPrefix(child.Name, "child-") {
			return child.Name, nil
		}
	}
	child := generated("child-")
	err := p.Create(ctx, child)
	return child.Name, err
}

func inDefault(name string) *corev1.ConfigMap {
	cm := configMap(name)
	cm.Namespace = "default"
	return cm
}

// colored is a ConfigMap of a color.
func colored(color string) *corev1.ConfigMap {
	one := configMap("one")
	one.Data = map[string]string{"color": color}
	return one
}

// recolor replaces a ConfigMap that does not have the color of the resource. It remembers what is to be deleted.
func recolor(
	ctx context.Context, p *process, w *resources.Widget, options func(uid string) []client.DeleteOption,
) error {
	one, want := &corev1.ConfigMap{}, colored(w.Spec.Fields["color"])
	err := p.Get(ctx, client.ObjectKeyFromObject(want), one)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err != nil:
		if err := ignoreExists(p.Create(ctx, want)); err != nil {
			return err
		}
	case one.Data["color"] != want.Data["color"]:
		p.memory["obsolete"] = string(one.UID)
	}
	uid, found := p.memory["obsolete"]
	if !found {
		return nil
	}
	if err := ignoreGone(p.Delete(ctx, want, options(uid)...)); err != nil {
		return err
	}
	delete(p.memory, "obsolete")
	return nil
}

// charge makes code that asks a service for money, once.
func charge(ask func(service *counter, w *resources.Widget)) func(*counter) code {
	return func(service *counter) code {
		return forWidget(func(ctx context.Context, p *process, w *resources.Widget) error {
			if w.Status.Fields["charged"] != "" {
				return nil
			}
			err := p.world.Do(ctx, "POST /orders", func() error {
				ask(service, w)
				return nil
			})
			if err != nil {
				return err
			}
			return p.note(ctx, w, "charged", "yes")
		})(service)
	}
}

// readAgain makes code that reads past the cache, and twice once it remembers a failure.
func readAgain(remember func(*process)) func(*counter) code {
	return forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
		for range 1 + len(p.memory) {
			if _, err := exists(ctx, p.live, "one"); err != nil {
				remember(p)
				return err
			}
		}
		return nil
	})
}

// rememberCall makes code that asks a service at rest too, once it remembers a failure.
func rememberCall(remember func(*process)) func(*counter) code {
	return func(*counter) code {
		return func(ctx context.Context, p *process) error {
			err := p.ensure(ctx, "one")
			if err != nil {
				remember(p)
				return err
			}
			if p.memory["failed"] == "" {
				return nil
			}
			return p.world.Do(ctx, "GET /health", func() error { return nil })
		}
	}
}

// order is in which order the finalizer and the call to the service come.
type order func(finalizer, call func() error) error

func finalizerFirst(finalizer, call func() error) error { return inOrder(finalizer, call) }

func callFirst(finalizer, call func() error) error { return inOrder(call, finalizer) }

func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// finalized makes code that has an address from a service as long as there is the resource, which the user deletes
// after the first request.
func finalized(acquire, release order) func(*counter) code {
	return func(service *counter) code {
		return func(ctx context.Context, p *process) error {
			if len(p.world.Store("").Changes(0)) == 0 {
				defer func() { _ = p.user.Delete(context.WithoutCancel(ctx), widget()) }()
			}
			w, err := p.widget(ctx)
			if w == nil || err != nil {
				return err
			}
			finalizer := func(change func(client.Object, string) bool) func() error {
				return func() error {
					if !change(w, "test/address") {
						return nil
					}
					return p.Update(ctx, w)
				}
			}
			call := func(name string, do func()) func() error {
				return func() error {
					return p.world.Do(ctx, name, func() error { do(); return nil })
				}
			}
			if w.DeletionTimestamp.IsZero() {
				return acquire(finalizer(controllerutil.AddFinalizer), call("PUT /address", func() {
					service.calls["addresses"] = 1
				}))
			}
			return release(finalizer(controllerutil.RemoveFinalizer), call("DELETE /address", func() {
				delete(service.calls, "addresses")
			}))
		}
	}
}

func mergePatch(patch string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(patch))
}

// annotates gives a ConfigMap the color of the widget.
func annotates(
	paint func(one *corev1.ConfigMap, color string),
) func(ctx context.Context, p *process, w *resources.Widget) error {
	return func(ctx context.Context, p *process, w *resources.Widget) error {
		one := &corev1.ConfigMap{}
		if err := p.Get(ctx, client.ObjectKeyFromObject(colored("")), one); err != nil {
			return err
		}
		color := w.Spec.Fields["color"]
		if one.Annotations["color"] == color {
			return nil
		}
		paint(one, color)
		return p.Update(ctx, one)
	}
}

package store

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watch implements [client.WithWatch]. It starts with the objects that are there, unless the options have a resource
// version to start after. The watch ends with the context.
func (c *Client) Watch(
	ctx context.Context, list client.ObjectList, opts ...client.ListOption,
) (watch.Interface, error) {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	gvk, err := c.itemKind(list)
	if err != nil {
		return nil, err
	}
	r := c.request(Watch, gvk, client.ObjectKey{Namespace: options.Namespace})
	r.Live = true
	var made watch.Interface
	err = c.do(ctx, r, func(ctx context.Context, remote client.WithWatch) (err error) {
		if made != nil {
			made.Stop()
		}
		made, err = remote.Watch(ctx, list, options)
		return err
	})
	if err != nil {
		return nil, err
	}
	w := &watcher{Interface: made, results: make(chan watch.Event), stopped: make(chan struct{})}
	go w.run(func(event watch.Event) {
		if obj, ok := event.Object.(metav1.Object); ok {
			c.store.hideFields(obj)
		}
		if obj, ok := event.Object.(client.Object); ok {
			obj.GetObjectKind().SetGroupVersionKind(gvk)
		}
	})
	return w, nil
}

// watcher is a watch whose events are changed.
type watcher struct {
	watch.Interface
	results chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

// ResultChan implements [watch.Interface].
func (w *watcher) ResultChan() <-chan watch.Event { return w.results }

// Stop implements [watch.Interface].
func (w *watcher) Stop() {
	w.once.Do(func() { close(w.stopped) })
	w.Interface.Stop()
}

func (w *watcher) run(change func(watch.Event)) {
	defer close(w.results)
	for event := range w.Interface.ResultChan() {
		change(event)
		select {
		case w.results <- event:
		case <-w.stopped:
			return
		}
	}
}

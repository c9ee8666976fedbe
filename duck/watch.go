package duck

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// itemsOf returns a function that makes empty items of the list's item type.
func itemsOf(list client.ObjectList) (func() client.Object, error) {
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil, fmt.Errorf("unable to find the item type of %T: %w", list, err)
	}
	item := reflect.TypeOf(items).Elem().Elem()
	if item.Kind() == reflect.Pointer {
		item = item.Elem()
	}
	if _, ok := reflect.New(item).Interface().(client.Object); !ok {
		return nil, fmt.Errorf("unable to find the item type of %T: %s is not an object", list, item)
	}
	return func() client.Object {
		return reflect.New(item).Interface().(client.Object)
	}, nil
}

// convertedEvents converts the events of another watch. Its goroutine ends when the watch is stopped, when its context
// is done, or when the inner watch has ended.
type convertedEvents struct {
	inner   watch.Interface
	newItem func() client.Object
	results chan watch.Event
	stopped chan struct{}
	stop    sync.Once
}

func convertEvents(ctx context.Context, inner watch.Interface, newItem func() client.Object) watch.Interface {
	w := &convertedEvents{
		inner:   inner,
		newItem: newItem,
		results: make(chan watch.Event),
		stopped: make(chan struct{}),
	}
	go w.run(ctx)
	return w
}

func (w *convertedEvents) Stop() {
	w.stop.Do(func() { close(w.stopped) })
	w.inner.Stop()
}

func (w *convertedEvents) ResultChan() <-chan watch.Event {
	return w.results
}

func (w *convertedEvents) run(ctx context.Context) {
	defer close(w.results)
	defer w.inner.Stop()
	for {
		select {
		case event, ok := <-w.inner.ResultChan():
			if !ok {
				return
			}
			select {
			case w.results <- w.convert(event):
			case <-w.stopped:
				return
			case <-ctx.Done():
				return
			}
		case <-w.stopped:
			return
		case <-ctx.Done():
			return
		}
	}
}

// convert returns the event with its object as an item of the list, or an error event if that is not possible. The
// status in an error event is left as it is.
func (w *convertedEvents) convert(event watch.Event) watch.Event {
	u, ok := event.Object.(runtime.Unstructured)
	if !ok || event.Type == watch.Error {
		return event
	}
	item := w.newItem()
	if err := Convert(u, item); err != nil {
		status := apierrors.NewInternalError(err).Status()
		return watch.Event{Type: watch.Error, Object: &status}
	}
	return watch.Event{Type: event.Type, Object: item}
}

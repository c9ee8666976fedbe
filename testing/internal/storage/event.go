package storage

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// events makes the events of a watch that selects objects.
type events struct {
	codec     *codec
	newFunc   func() runtime.Object
	predicate storage.SelectionPredicate
}

// initial returns the event for an entry that is there when the watch begins, nil if it is not selected.
func (v events) initial(ctx context.Context, e *Entry) (*watch.Event, error) {
	return v.of(ctx, change{revision: e.Revision, after: e})
}

// of returns the event that a change leads to, nil if it does not concern selected objects. An object that begins to be
// selected is added, one that ceases to be is deleted. The object of each event has the revision of the change.
func (v events) of(ctx context.Context, c change) (*watch.Event, error) {
	after, isSelected, err := v.object(ctx, c.after, c.revision)
	if err != nil {
		return nil, err
	}
	before, wasSelected := runtime.Object(nil), c.before != nil
	if c.after == nil || !v.predicate.Empty() {
		before, wasSelected, err = v.object(ctx, c.before, c.revision)
	}
	if err != nil && c.after == nil {
		err = corruptDeletion(err)
	}
	switch {
	case err != nil:
		return nil, err
	case isSelected && wasSelected:
		return &watch.Event{Type: watch.Modified, Object: after}, nil
	case isSelected:
		return &watch.Event{Type: watch.Added, Object: after}, nil
	case wasSelected:
		return &watch.Event{Type: watch.Deleted, Object: before}, nil
	}
	return nil, nil
}

// object decodes an entry and says whether it is selected. A nil entry is not.
func (v events) object(ctx context.Context, e *Entry, revision int64) (runtime.Object, bool, error) {
	if e == nil {
		return nil, false, nil
	}
	obj, err := v.codec.event(ctx, e)
	if err != nil {
		return nil, false, err
	}
	if err := versioner.UpdateObject(obj, uint64(revision)); err != nil {
		return nil, false, fmt.Errorf("cannot set the resource version of %q: %w", e.Key, err)
	}
	// An object whose attributes cannot be read is not selected, as in the storage in etcd.
	matches, err := v.predicate.Matches(obj)
	return obj, err == nil && matches, nil
}

// bookmark returns the event that says that the watch has seen everything up to a revision. The one that ends the
// initial events says so by its annotation.
func (v events) bookmark(revision int64, endOfInitial bool) (*watch.Event, error) {
	obj := v.newFunc()
	if err := versioner.UpdateObject(obj, uint64(revision)); err != nil {
		return nil, fmt.Errorf("cannot set the resource version of a bookmark: %w", err)
	}
	if endOfInitial {
		if err := storage.AnnotateInitialEventsEndBookmark(obj); err != nil {
			return nil, fmt.Errorf("cannot annotate a bookmark: %w", err)
		}
	}
	return &watch.Event{Type: watch.Bookmark, Object: obj}, nil
}

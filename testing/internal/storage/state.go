package storage

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// state is what a key held when it was read.
type state struct {
	// entry is nil if the key held nothing. The object is empty then.
	entry   *Entry
	object  runtime.Object
	encoded []byte
	// stale says that the entry should be written even if the object does not change.
	stale bool
}

func (s state) revision() int64 { return s.entry.revisionOrZero() }

// read returns what a key holds for who changes it, decoded into a new object of the type of like. With an error it
// returns the entry if that is what could not be decoded.
func (s *store) read(ctx context.Context, key string, like runtime.Object) (state, error) {
	if err := ctx.Err(); err != nil {
		return state{}, err
	}
	object, err := newLike(like)
	if err != nil {
		return state{}, err
	}
	e := s.storage.current.Load().get(key)
	if e == nil {
		return state{object: object}, runtime.SetZeroValue(object)
	}
	encoded, stale, err := s.codec.open(ctx, e)
	switch {
	case err != nil:
	case e.Show != nil:
		err = s.codec.decode(encoded, e.Revision, object)
	default:
		err = s.codec.object(ctx, e, object)
	}
	if err != nil {
		return state{entry: e}, err
	}
	return state{entry: e, object: object, encoded: encoded, stale: stale}, nil
}

// expectCorrupt turns around what read returned: that the entry can be decoded is the error.
func expectCorrupt(now state, err error) (state, error) {
	if err == nil {
		return now, storage.NewInvalidObjError(now.entry.Key, "the object can be decoded, delete it the normal way")
	}
	return now, nil
}

func newLike(obj runtime.Object) (runtime.Object, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.NewEmptyInstance(), nil
	}
	v, err := conversion.EnforcePtr(obj)
	if err != nil {
		return nil, fmt.Errorf("cannot store what %T points to: %w", obj, err)
	}
	return reflect.New(v.Type()).Interface().(runtime.Object), nil
}

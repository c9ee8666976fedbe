package storage

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// Create implements [storage.Interface].
func (s *store) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	s = s.in(ctx)
	key, err := storage.PrepareKey(s.prefix, key, false)
	if err != nil {
		return err
	}
	if version, err := versioner.ObjectResourceVersion(obj); err == nil && version != 0 {
		return storage.ErrResourceVersionSetOnCreate
	}
	encoded, err := s.codec.encode(obj)
	if err != nil {
		return err
	}
	written, ok, err := s.put(ctx, key, 0, encoded, expiry(ttl))
	switch {
	case err != nil:
		return err
	case !ok:
		return storage.NewKeyExistsError(key, 0)
	case out == nil:
		return nil
	}
	return s.written(written, obj, encoded, out)
}

// written fills out with an object that was written. In a fork it is kept for the readers that are about to ask for it,
// which takes memory for as long as there is the entry.
func (s *store) written(e *Entry, obj runtime.Object, encoded []byte, out runtime.Object) error {
	as := out.GetObjectKind().GroupVersionKind()
	if s.isDecoded(obj) && reflect.TypeOf(obj) == reflect.TypeOf(out) {
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(obj.DeepCopyObject()).Elem())
		if err := versioner.UpdateObject(out, uint64(e.Revision)); err != nil {
			return err
		}
	} else if err := s.codec.decode(encoded, e.Revision, out); err != nil {
		return err
	}
	if s.forked && s.codec.transformer == nil {
		e.read.Store(&decoded{by: s.codec, as: as, object: out.DeepCopyObject()})
	}
	return nil
}

// isDecoded reports whether an object that was written is what would be decoded of it. It is not if it has no Go type:
// its codec may complete it; nor without a clock of the storage, because the times that it gets then have fractions of
// seconds.
func (s *store) isDecoded(obj runtime.Object) bool {
	_, ok := obj.(runtime.Unstructured)
	return !ok && s.forked && s.storage.Clock() != nil
}

// GuaranteedUpdate implements [storage.Interface]. It ignores the cached object.
func (s *store) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, _ runtime.Object,
) error {
	s = s.in(ctx)
	key, err := storage.PrepareKey(s.prefix, key, false)
	if err != nil {
		return err
	}
	for {
		now, err := s.read(ctx, key, destination)
		if err != nil {
			return err
		}
		if now.entry == nil && !ignoreNotFound {
			return storage.NewKeyNotFoundError(key, 0)
		}
		obj, encoded, expires, err := s.update(now, key, preconditions, tryUpdate)
		if err != nil {
			return err
		}
		if !now.stale && bytes.Equal(encoded, now.encoded) {
			return s.codec.decode(encoded, now.revision(), destination)
		}
		written, ok, err := s.put(ctx, key, now.revision(), encoded, expires)
		if err != nil {
			return err
		}
		if ok {
			return s.written(written, obj, encoded, destination)
		}
	}
}

// Delete implements [storage.Interface]. It ignores the cached object.
func (s *store) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validateDeletion storage.ValidateObjectFunc, _ runtime.Object, opts storage.DeleteOptions,
) error {
	s = s.in(ctx)
	key, err := storage.PrepareKey(s.prefix, key, false)
	if err != nil {
		return err
	}
	corrupt := opts.ExpectTransformOrDecodeError &&
		utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)
	for {
		now, err := s.read(ctx, key, out)
		if corrupt && now.entry != nil {
			now, err = expectCorrupt(now, err)
		}
		if err != nil {
			return err
		}
		if now.entry == nil {
			return storage.NewKeyNotFoundError(key, 0)
		}
		if err := preconditions.Check(key, now.object); err != nil {
			return err
		}
		if err := validateDeletion(ctx, now.object); err != nil {
			return err
		}
		deleted, ok, err := s.commit(ctx, write{key: key, expected: now.entry.Revision})
		switch {
		case err != nil:
			return err
		case ok && corrupt:
			return nil
		case ok:
			return s.codec.decode(now.encoded, deleted.Revision, out)
		}
	}
}

// update returns the object that a caller makes of the current one, and when it expires.
func (s *store) update(
	now state, key string, preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc,
) (obj runtime.Object, encoded []byte, expires time.Time, err error) {
	if err := preconditions.Check(key, now.object); err != nil {
		return nil, nil, time.Time{}, err
	}
	response := storage.ResponseMeta{ResourceVersion: uint64(now.revision())}
	if now.entry != nil {
		expires = now.entry.Expires
	}
	if !expires.IsZero() {
		response.TTL = int64(time.Until(expires).Seconds())
	}
	obj, ttl, err := tryUpdate(now.object, response)
	if err != nil {
		return nil, nil, time.Time{}, err
	}
	if ttl != nil {
		expires = expiry(*ttl)
	}
	encoded, err = s.codec.encode(obj)
	return obj, encoded, expires, err
}

// largest is how many bytes a request of etcd may have by default.
const largest = 3 << 19

var errTooLarge = errors.New("etcdserver: request is too large")

// put writes an encoded object if its key is at the expected revision, and returns the new entry.
func (s *store) put(
	ctx context.Context, key string, expected int64, encoded []byte, expires time.Time,
) (written *Entry, ok bool, err error) {
	value, err := s.codec.seal(ctx, key, encoded)
	if err != nil {
		return nil, false, err
	}
	if len(value) > largest {
		return nil, false, errTooLarge
	}
	return s.commit(ctx, write{key: key, expected: expected, value: value, expires: expires})
}

// commit carries out w unless ctx is done, and returns the new entry; that of a deletion has no value. It returns false
// if the key is not at the expected revision.
func (s *store) commit(ctx context.Context, w write) (written *Entry, ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	return s.storage.write(ctx, w)
}

// expiry returns when an object with a time to live in seconds expires, the zero time for 0, which is never.
func expiry(ttl uint64) time.Time {
	if ttl == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(ttl) * time.Second)
}

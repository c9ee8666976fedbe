package inventory_test

import (
	"bytes"
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/inventory"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestObjectsCostWhatChanged: an inventory in objects writes the buckets that changed.
func TestObjectsCostWhatChanged(t *testing.T) {
	many := large(raceDetector)
	for _, kind := range []string{inventory.KindSecret, inventory.KindConfigMap} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			l := w.link(t)
			store := open(t, optionsFor(l, kind))
			step := func(what string, want int, do func()) {
				t.Helper()
				do()
				if got := l.requests(); got != want {
					t.Errorf("%s: %d requests, want %d", what, got, want)
				}
			}
			save := func(all []apis.InventoryRecord) func() { return func() { mustSave(t, store, all) } }

			step("the first load looks by label, and by name", 2, func() {
				if got := mustLoad(t, store); len(got) != 0 {
					t.Errorf("the store loads %v, want nothing", got)
				}
			})
			step("nothing to store", 0, save(nil))
			step("one record creates all buckets", 4, save(records(1, inBucket0)))
			step("the same", 0, save(records(1, inBucket0)))
			step("one record changed", 1, save(records(1, changedInBucket0)))
			step("a small inventory", 4, save(records(100, record)))
			step("the same", 0, save(records(100, record)))
			step("a large inventory", 4, save(records(many, record)))
			changed := records(many, record)
			step("the same", 0, save(changed))
			changed[many/2] = ready(many / 2)
			step("one record changed", 1, save(changed))
			step("the same in another order", 0, save(sorted(changed)))
			step("one record less", 1, save(changed[1:]))
			step("one record more", 1, save(changed))
			step("all changed", 4, save(records(many, ready)))
			next := records(many, ready)
			next[1].Digest, next[1].Generation = digest("next", 1), 7
			step("another content of an object that is ready", 0, save(next))
			next[1].Fields = digest("others", 1)
			step("other fields of it", 1, save(next))
			step("as before", 1, save(records(many, ready)))
			step("what is remembered", 0, func() {
				if want, got := compacted(records(many, ready)), mustLoad(t, store); !reflect.DeepEqual(want, got) {
					t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
				}
			})
			again := open(t, optionsFor(l, kind))
			step("a new process", 1, func() {
				if !inventory.Equal(records(many, ready), mustLoad(t, again)) {
					t.Errorf("the store loads %d records, want the %d that were saved", len(mustLoad(t, again)), many)
				}
			})
			step("none any more", 4, save(nil))
			step("removed", 8, func() {
				if err := store.Remove(t.Context()); err != nil {
					t.Error(err)
				}
			})
			step("nothing is left", 2, func() { mustLoad(t, store) })
		})
	}
}

func compacted(all []apis.InventoryRecord) []apis.InventoryRecord {
	for i := range all {
		all[i] = inventory.Compact(all[i])
	}
	return all
}

func TestObjectsLookLikeThis(t *testing.T) {
	w := newWorld(t)
	options := optionsFor(w.link(t), "")
	options.OwnerReference = &metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Shop", Name: "shop", UID: "the-owner"}
	store := open(t, options)
	mustLoad(t, store)
	mustSave(t, store, records(2, record))
	// Somebody marks the object as his own.
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: "default", Name: "shop-inventory-0"}
	if err := w.inner.Get(t.Context(), key, &secret); err != nil {
		t.Fatal(err)
	}
	secret.Annotations = map[string]string{"backup": "yes"}
	secret.Finalizers = append(secret.Finalizers, "backup.example.com/wait")
	if err := w.inner.Update(t.Context(), &secret); err != nil {
		t.Fatal(err)
	}
	store = open(t, options)
	mustLoad(t, store)
	mustSave(t, store, append(records(3, record), records(20, ready)[10:]...))

	secret = corev1.Secret{}
	if err := w.inner.Get(t.Context(), key, &secret); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(secret.Data["inventory"]), "espalier-inventory/1 ") {
		t.Errorf("the data are %q, want the inventory to begin with espalier-inventory/1", secret.Data)
	}
	want := metav1.ObjectMeta{
		Namespace: "default", Name: "shop-inventory-0", UID: secret.UID, ResourceVersion: secret.ResourceVersion,
		CreationTimestamp: secret.CreationTimestamp,
		Labels:            map[string]string{"test.example.com/inventory": "shop", "test.example.com/inventory-buckets": "4"},
		Annotations:       map[string]string{"backup": "yes"},
		Finalizers:        []string{"test.example.com/inventory", "backup.example.com/wait"},
		OwnerReferences:   []metav1.OwnerReference{*options.OwnerReference},
	}
	if diff := cmp.Diff(want, secret.ObjectMeta); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestObjectsKeepTheirMemory(t *testing.T) {
	store := open(t, optionsFor(newWorld(t).link(t), ""))
	mustLoad(t, store)
	given := records(3, record)
	mustSave(t, store, given)
	given[0].Message = "changed by the caller"
	loaded := mustLoad(t, store)
	if loaded[0].Message != "" {
		t.Errorf("the store shares memory with who saved: the message is %q, want none", loaded[0].Message)
	}
	loaded[1].Message = "changed by another caller"
	if mustLoad(t, store)[1].Message != "" {
		t.Errorf("the store shares memory with who loaded: the message is %q, want none", mustLoad(t, store)[1].Message)
	}
}

func TestObjectsWantToBeLoadedFirst(t *testing.T) {
	l := newWorld(t).link(t)
	store := open(t, optionsFor(l, ""))
	_, err := store.Save(t.Context(), records(1, record))
	if err == nil || l.requests() != 0 {
		t.Errorf("the save without a load ends with %v after %d requests, want an error after none", err, l.requests())
	}
}

func TestObjectsRefuseToStoreWhatIsDoubtful(t *testing.T) {
	l := newWorld(t).link(t)
	store := open(t, optionsFor(l, ""))
	mustLoad(t, store)
	l.requests()
	_, err := store.Save(t.Context(), append(records(2, record), record(1)))
	if err == nil || !strings.HasPrefix(err.Error(), "cannot store the inventory: record 2") || l.requests() != 0 {
		t.Errorf("the save ends with %v after %d requests, want record 2 refused after none", err, l.requests())
	}
	mustSave(t, store, records(2, record))
}

// TestObjectsRefuseToLoad damages stored inventories.
func TestObjectsRefuseToLoad(t *testing.T) {
	const prefix = "cannot load the inventory: "
	swap := func(s map[string]*corev1.Secret, a, b string) {
		s[a].Data, s[b].Data = s[b].Data, s[a].Data
	}
	tests := map[string]struct {
		// damage changes the secrets, and removes those that it takes out of the map.
		damage func(s map[string]*corev1.Secret)
		// owner is the UID of who loads.
		owner types.UID
		want  string
	}{
		"bucket 0 is missing": {
			damage: func(s map[string]*corev1.Secret) { delete(s, "shop-inventory-0") },
			want:   prefix + "Secret default/shop-inventory-0 is missing",
		},
		"another is missing": {
			damage: func(s map[string]*corev1.Secret) { delete(s, "shop-inventory-2") },
			want:   prefix + "Secret default/shop-inventory-2 is missing",
		},
		"one has no label": {
			damage: func(s map[string]*corev1.Secret) { s["shop-inventory-1"].Labels = nil },
			want:   prefix + "Secret default/shop-inventory-1 is missing",
		},
		"none has a label": {
			damage: func(s map[string]*corev1.Secret) {
				for _, secret := range s {
					secret.Labels = map[string]string{"other": "label"}
				}
			},
			want: prefix + "Secret default/shop-inventory-0 has lost the labels by which it is found",
		},
		"one is damaged": {
			damage: func(s map[string]*corev1.Secret) { s["shop-inventory-1"].Data["inventory"][99] ^= 1 },
			want:   prefix + "Secret default/shop-inventory-1 cannot be used: its checksum is wrong",
		},
		"one is empty": {
			damage: func(s map[string]*corev1.Secret) { s["shop-inventory-1"].Data = nil },
			want:   prefix + "Secret default/shop-inventory-1 cannot be used: it is no bucket of an inventory",
		},
		"two are mixed up": {
			damage: func(s map[string]*corev1.Secret) { swap(s, "shop-inventory-1", "shop-inventory-2") },
			want:   prefix + "Secret default/shop-inventory-1 cannot be used: it has the content of shop-inventory-2",
		},
		"a copy": {
			damage: func(s map[string]*corev1.Secret) {
				s["copy"] = &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "copy", Labels: s["shop-inventory-1"].Labels},
					Data:       s["shop-inventory-1"].Data,
				}
			},
			want: prefix + "Secret default/copy cannot be used: it has the labels of the inventory, and not the name of a bucket",
		},
		"one does not say how many there are": {
			damage: func(s map[string]*corev1.Secret) {
				delete(s["shop-inventory-0"].Labels, "test.example.com/inventory-buckets")
			},
			want: prefix + "Secret default/shop-inventory-0 cannot be used: its label test.example.com/inventory-buckets is \"\", " +
				"which is not the number of buckets",
		},
		"one has the wrong number": {
			damage: func(s map[string]*corev1.Secret) {
				s["shop-inventory-1"].Labels["test.example.com/inventory-buckets"] = "5"
			},
			want: prefix + "Secret default/shop-inventory-1 cannot be used: its record of ConfigMap team-1/settings-of-service-1 " +
				"belongs to shop-inventory-2",
		},
		"there are more than they say": {
			damage: func(s map[string]*corev1.Secret) {
				for _, secret := range s {
					secret.Labels["test.example.com/inventory-buckets"] = "3"
				}
			},
			want: prefix + "Secret default/shop-inventory-0 cannot be used: its record of ConfigMap team-3/settings-of-service-10 " +
				"belongs to shop-inventory-2",
		},
		"one has an unknown format": {
			damage: func(s map[string]*corev1.Secret) {
				data := s["shop-inventory-1"].Data
				data["inventory"] = bytes.Replace(data["inventory"], []byte("inventory/1 "), []byte("inventory/2 "), 1)
			},
			want: prefix + `Secret default/shop-inventory-1 cannot be used: its format "2" is not known`,
		},
		"it is that of another": {
			owner: "another-owner",
			want:  prefix + "Secret default/shop-inventory-0 cannot be used: it belongs to the inventory of another resource",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first := open(t, optionsFor(w.link(t), ""))
			mustLoad(t, first)
			mustSave(t, first, records(25, record))
			mustSave(t, first, records(25, ready))
			if tc.damage != nil {
				w.rewrite(t, tc.damage)
			}
			before := w.secrets(t)

			l := w.link(t)
			options := optionsFor(l, "")
			if tc.owner != "" {
				options.OwnerUID = tc.owner
			}
			store := open(t, options)
			if _, err := store.Load(t.Context()); err == nil || err.Error() != tc.want {
				t.Errorf("load: %v\nwant  %s", err, tc.want)
			}
			if _, err := store.Save(t.Context(), records(1, record)); err == nil {
				t.Error("the inventory was overwritten, want an error")
			}
			if err := store.Remove(t.Context()); err == nil {
				t.Error("the inventory was removed, want an error")
			}
			if l.writes != 0 || cmp.Diff(before, w.secrets(t)) != "" {
				t.Errorf("there are %d writes, and the Secrets differ (-want +got), want none: %s", l.writes,
					cmp.Diff(before, w.secrets(t)))
			}
		})
	}
}

// inBucket0 is one of some records that are in bucket 0 of four.
func inBucket0(i int) apis.InventoryRecord { return record(ofBucket0[i]) }

func changedInBucket0(i int) apis.InventoryRecord { return ready(ofBucket0[i]) }

var ofBucket0 = []int{10, 12, 13, 40, 43}

// rewrite changes, adds and removes secrets.
func (w *world) rewrite(t testing.TB, change func(s map[string]*corev1.Secret)) {
	t.Helper()
	s := w.secrets(t)
	change(s)
	for name, old := range w.secrets(t) {
		old.Finalizers = nil
		if err := w.inner.Update(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		if err := w.inner.Delete(t.Context(), old); err != nil {
			t.Fatalf("could not delete %s: %v", name, err)
		}
	}
	for _, secret := range s {
		secret.ResourceVersion = ""
		if err := w.inner.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
}

func TestObjectsNoticeWhoElseWrites(t *testing.T) {
	w := newWorld(t)
	a, b := open(t, optionsFor(w.link(t), "")), open(t, optionsFor(w.link(t), ""))
	mustLoad(t, a)
	mustLoad(t, b)

	conflict := func(store *inventory.Objects, all []apis.InventoryRecord) {
		t.Helper()
		durable, err := store.Save(t.Context(), all)
		want := `cannot store Secret default/shop-inventory-0 of the inventory: Operation cannot be fulfilled on secrets ` +
			`"shop-inventory-0": another process has written it`
		if durable || !apierrors.IsConflict(err) || err.Error() != want {
			t.Errorf("durable is %v and the error %v, want false and the conflict %q", durable, err, want)
		}
		if _, err := store.Save(t.Context(), all); err == nil {
			t.Error("a second attempt without a look at what is there was stored, want an error")
		}
	}
	mustSave(t, a, records(1, inBucket0))
	conflict(b, []apis.InventoryRecord{inBucket0(1)})
	mustSave(t, b, append(mustLoad(t, b), inBucket0(1)))
	conflict(a, []apis.InventoryRecord{inBucket0(0), inBucket0(2)})
	if got := mustLoad(t, a); !inventory.Equal(got, records(2, inBucket0)) {
		t.Errorf("the store loads %v, want %v", got, records(2, inBucket0))
	}
}

// TestObjectsNoticeWhoWritesWhileTheyLoad has the first bucket created between the two looks for it.
func TestObjectsNoticeWhoWritesWhileTheyLoad(t *testing.T) {
	w := newWorld(t)
	other := open(t, optionsFor(w.link(t), ""))
	mustLoad(t, other)
	options := optionsFor(w.link(t), "")
	options.Reader = interceptor.NewClient(w.inner, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			mustSave(t, other, records(1, record))
			return err
		},
	})
	store := open(t, options)
	if _, err := store.Load(t.Context()); !apierrors.IsConflict(err) {
		t.Errorf("the error is %v, want a conflict", err)
	}
	if got := mustLoad(t, store); !inventory.Equal(got, records(1, record)) {
		t.Errorf("the store loads %v, want %v", got, records(1, record))
	}
}

// TestObjectsCompareAtNoCost is about an inventory that nothing changed in: no copy is made to find that out.
func TestObjectsCompareAtNoCost(t *testing.T) {
	store := open(t, optionsFor(newWorld(t).link(t), ""))
	mustLoad(t, store)
	all := records(1000, ready)
	mustSave(t, store, all)
	if got := testing.AllocsPerRun(10, func() { mustSave(t, store, all) }); got > 20 {
		t.Errorf("there are %v allocations, want at most 20", got)
	}
}

func TestObjectsKnowTheirOwnWrites(t *testing.T) {
	for _, stutters := range []bool{false, true} {
		l := newWorld(t).link(t)
		l.stutters = stutters
		store := open(t, optionsFor(l, ""))
		mustLoad(t, store)
		mustSave(t, store, records(20, record))
		mustSave(t, store, records(20, ready))
		mustSave(t, store, records(40, ready))
		store = open(t, optionsFor(l, ""))
		if !inventory.Equal(mustLoad(t, store), records(40, ready)) {
			t.Errorf("the store loads %d records, want 40 ready ones", len(mustLoad(t, store)))
		}
	}
}

func TestObjectsTryAllBuckets(t *testing.T) {
	w := newWorld(t)
	l := w.link(t)
	store := open(t, optionsFor(l, ""))
	mustLoad(t, store)
	mustSave(t, store, records(60, record))
	l.fails = func(object client.Object) error {
		if n := object.GetName(); n == "shop-inventory-1" || n == "shop-inventory-3" {
			return apierrors.NewForbidden(corev1.Resource("secrets"), n, nil)
		}
		return nil
	}
	_, err := store.Save(t.Context(), records(60, ready))
	want := `cannot store Secret default/shop-inventory-1 of the inventory: secrets "shop-inventory-1" is forbidden: <nil>
cannot store Secret default/shop-inventory-3 of the inventory: secrets "shop-inventory-3" is forbidden: <nil>`
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %q", err, want)
	}
	l.fails = nil
	stored := 0
	for _, r := range mustLoad(t, store) {
		if r.Phase == apis.PhaseReady {
			stored++
		}
	}
	if stored == 0 || stored == 60 {
		t.Errorf("%d of 60 records were stored, want some and not all", stored)
	}
	mustSave(t, store, records(60, ready))
}

func TestObjectsRemove(t *testing.T) {
	w := newWorld(t)
	store := open(t, optionsFor(w.link(t), ""))
	mustLoad(t, store)
	mustSave(t, store, records(30, record))
	if err := store.Remove(t.Context()); err == nil || err.Error() != "cannot remove the inventory: it still has 30 records" {
		t.Errorf("the error is %v, want that the inventory still has 30 records", err)
	}
	mustLoad(t, store)
	mustSave(t, store, nil)
	buckets := len(w.secrets(t))
	if buckets < 3 {
		t.Fatalf("there are %d buckets, want at least 3", buckets)
	}
	// Whenever the removal is broken off, a new process reads an empty inventory, and goes on.
	for k := range 2*buckets + 1 {
		for _, swallows := range []bool{false, true} {
			l := w.link(t)
			l.breaksAfter, l.swallows = k%2, swallows
			store := open(t, optionsFor(l, ""))
			if got := mustLoad(t, store); len(got) != 0 {
				t.Fatalf("the store loads %v, want nothing", got)
			}
			_ = store.Remove(t.Context())
		}
	}
	store = open(t, optionsFor(w.link(t), ""))
	if err := store.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if left := w.secrets(t); len(left) != 0 {
		t.Errorf("the Secrets left are %v, want none", left)
	}
	if err := store.Remove(t.Context()); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

// TestObjectsRemoveOnlyWhatIsKnown has another process add a record, to whichever bucket.
func TestObjectsRemoveOnlyWhatIsKnown(t *testing.T) {
	for i := range 20 {
		w := newWorld(t)
		a, b := open(t, optionsFor(w.link(t), "")), open(t, optionsFor(w.link(t), ""))
		mustLoad(t, a)
		mustSave(t, a, records(1, record))
		mustSave(t, a, nil)
		mustLoad(t, b)
		mustSave(t, b, []apis.InventoryRecord{record(i)})
		if err := a.Remove(t.Context()); !apierrors.IsConflict(err) {
			t.Errorf("the error is %v, want a conflict", err)
		}
		if got := mustLoad(t, open(t, optionsFor(w.link(t), ""))); !inventory.Equal(got, []apis.InventoryRecord{record(i)}) {
			t.Errorf("of the record of another there is %v, want it as it was saved", got)
		}
	}
}

// TestObjectsAddNothingToWhatIsRemoved has another process add a record while the inventory goes.
func TestObjectsAddNothingToWhatIsRemoved(t *testing.T) {
	for i := range 20 {
		w := newWorld(t)
		a, b := open(t, optionsFor(w.link(t), "")), open(t, optionsFor(w.link(t), ""))
		mustLoad(t, a)
		mustSave(t, a, records(1, record))
		mustSave(t, a, nil)
		mustLoad(t, b)
		if err := a.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Save(t.Context(), []apis.InventoryRecord{record(i)}); err == nil || len(w.secrets(t)) > 0 {
			t.Errorf("the error is %v and there are %d Secrets, want an error and none", err, len(w.secrets(t)))
		}
	}
}

// TestObjectsThatAreRemovedAreNotCompleted has another process find only some of the buckets, as the first one removes
// them at the same time.
func TestObjectsThatAreRemovedAreNotCompleted(t *testing.T) {
	w := newWorld(t)
	a, b := open(t, optionsFor(w.link(t), "")), open(t, optionsFor(w.link(t), ""))
	mustLoad(t, a)
	mustSave(t, a, records(1, record))
	mustSave(t, a, nil)
	options := optionsFor(interceptor.NewClient(w.inner, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if obj.GetName() == "shop-inventory-3" {
				mustLoad(t, b)
				mustSave(t, b, nil)
			}
			return c.Delete(ctx, obj, opts...)
		},
	}), "")
	options.Parallel = 1
	a = open(t, options)
	mustLoad(t, a)
	if err := a.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if left := w.secrets(t); len(left) != 0 {
		t.Errorf("the Secrets left are %v, want none", slices.Sorted(maps.Keys(left)))
	}
}

// TestObjectsRemoveNothingElse is about a bucket that only the preconditions of the deletion protect.
func TestObjectsRemoveNothingElse(t *testing.T) {
	w := newWorld(t)
	store := open(t, optionsFor(w.link(t), ""))
	mustLoad(t, store)
	mustSave(t, store, records(1, inBucket0))
	mustSave(t, store, nil)
	w.rewrite(t, func(s map[string]*corev1.Secret) { s["shop-inventory-0"].Finalizers = nil })
	store = open(t, optionsFor(w.link(t), ""))
	mustLoad(t, store)
	w.rewrite(t, func(s map[string]*corev1.Secret) { s["shop-inventory-0"].UID = "another" })
	if err := store.Remove(t.Context()); !apierrors.IsConflict(err) {
		t.Errorf("the error is %v, want a conflict", err)
	}
	if len(w.secrets(t)) != 4 {
		t.Errorf("there are %d Secrets, want 4: another object of the name was removed", len(w.secrets(t)))
	}
}

// TestObjectsRemoveNothingThatChanges has another process write a bucket just before it is deleted.
func TestObjectsRemoveNothingThatChanges(t *testing.T) {
	w := newWorld(t)
	l := w.link(t)
	store := open(t, optionsFor(l, ""))
	mustLoad(t, store)
	mustSave(t, store, records(1, inBucket0))
	mustSave(t, store, nil)
	changes := 0
	l.deletes = func(object client.Object) {
		if object.GetName() == "shop-inventory-0" {
			changes++
			secret := w.secrets(t)[object.GetName()]
			secret.Annotations = map[string]string{"changed": "by others"}
			if err := w.inner.Update(t.Context(), secret); err != nil {
				t.Error(err)
			}
		}
	}
	if err := store.Remove(t.Context()); !apierrors.IsConflict(err) || changes != 1 {
		t.Errorf("the error is %v after %d changes just before the deletion, want a conflict after 1", err, changes)
	}
	if _, ok := w.secrets(t)["shop-inventory-0"]; !ok {
		t.Error("the Secret that was changed is removed, want it to stay")
	}
}

// TestObjectsKeepTheirNumberOfBuckets has a later release choose another number for new inventories.
func TestObjectsKeepTheirNumberOfBuckets(t *testing.T) {
	w := newWorld(t)
	options := optionsFor(w.link(t), "")
	options.Buckets = 2
	first := open(t, options)
	mustLoad(t, first)
	mustSave(t, first, records(1, inBucket0))
	second := open(t, optionsFor(w.link(t), ""))
	mustLoad(t, second)
	mustSave(t, second, records(50, record))
	if secrets := w.secrets(t); len(secrets) != 2 || secrets["shop-inventory-1"].Labels["test.example.com/inventory-buckets"] != "2" {
		t.Errorf("the buckets are %v, want two with the label that says so", secrets)
	}
	if got := mustLoad(t, open(t, optionsFor(w.link(t), ""))); !inventory.Equal(got, records(50, record)) {
		t.Errorf("there are %d records, want the 50 that were saved", len(got))
	}
}

// TestObjectsAgreeOnTheNumberOfBuckets has an empty bucket of another inventory among the buckets.
func TestObjectsAgreeOnTheNumberOfBuckets(t *testing.T) {
	w := newWorld(t)
	first := open(t, optionsFor(w.link(t), ""))
	mustLoad(t, first)
	mustSave(t, first, records(1, inBucket0))
	w.rewrite(t, func(s map[string]*corev1.Secret) {
		s["shop-inventory-3"].Labels["test.example.com/inventory-buckets"] = "8"
	})
	want := "cannot load the inventory: Secret default/shop-inventory-3 cannot be used: it is one of 8 buckets, and another is one of 4"
	if _, err := open(t, optionsFor(w.link(t), "")).Load(t.Context()); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %q", err, want)
	}
}

// TestObjectsDropMessagesThatDoNotFit fills a bucket.
func TestObjectsDropMessagesThatDoNotFit(t *testing.T) {
	failed := func(i int) apis.InventoryRecord {
		r := ready(i)
		r.Status, r.Message = apis.ObjectFailed, noise(i, inventory.MaxMessage)
		return r
	}
	silent := func(i int) apis.InventoryRecord {
		r := failed(i)
		r.Message = ""
		return r
	}
	l := newWorld(t).link(t)
	options := optionsFor(l, "")
	options.Buckets, options.MaxBucket = 1, 4000
	store := open(t, options)
	mustLoad(t, store)
	mustSave(t, store, records(10, failed))
	if got := mustLoad(t, store); !inventory.Equal(got, records(10, failed)) {
		t.Errorf("the store loads %v, want the messages that fit", got)
	}
	mustSave(t, store, records(30, failed))
	for _, s := range []inventory.Store{store, open(t, options)} {
		if got := mustLoad(t, s); !inventory.Equal(got, records(30, silent)) {
			t.Errorf("the store loads %v, want 30 records without messages", got)
		}
	}
	l.requests()
	mustSave(t, store, records(30, failed))
	if n := l.requests(); n > 0 {
		t.Errorf("messages that do not fit are %d requests, want none", n)
	}
	want := "cannot store Secret default/shop-inventory-0 of the inventory: its 200 records make 14 KiB, and at most 3 KiB fit"
	if _, err := store.Save(t.Context(), records(200, failed)); err == nil || err.Error() != want || l.requests() > 0 {
		t.Errorf("the error is %v after %d requests, want %q after none", err, l.requests(), want)
	}
	mustSave(t, store, records(10, failed))
}

func TestNewObjectsSaysWhatIsMissing(t *testing.T) {
	_, err := inventory.NewObjects(inventory.Options{Kind: "Pod", Buckets: -1, MaxBucket: 2 << 20, Name: strings.Repeat("x", 250)})
	want := `an inventory in objects of its own needs a client
an inventory in objects of its own needs a reader
an inventory in objects of its own needs a namespace
an inventory in objects of its own needs a name that fits
an inventory in objects of its own needs labels
an inventory in objects of its own needs a label for the number of its buckets
an inventory in objects of its own needs the UID of its owner
an inventory in objects of its own needs a finalizer
an inventory in objects of its own needs the kind Secret or ConfigMap
an inventory in objects of its own needs 1 to 1024 buckets
an inventory in objects of its own needs buckets of at most 1000 KiB`
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %q", err, want)
	}
}

func TestObjectName(t *testing.T) {
	shop := types.NamespacedName{Namespace: "team", Name: "shop"}
	name := inventory.ObjectName("platform.example.com", "Shop", shop, "1")
	if !strings.HasPrefix(name, "shop-shop-inventory-") || name != inventory.ObjectName("platform.example.com", "Shop", shop, "1") {
		t.Errorf("the name is %s, want the same each time, beginning with shop-shop-inventory-", name)
	}
	others := map[string]string{
		"prefix":    inventory.ObjectName("platform.example.org", "Shop", shop, "1"),
		"kind":      inventory.ObjectName("platform.example.com", "Shed", shop, "1"),
		"namespace": inventory.ObjectName("platform.example.com", "Shop", types.NamespacedName{Namespace: "mate", Name: "shop"}, "1"),
		"name":      inventory.ObjectName("platform.example.com", "Shop", types.NamespacedName{Namespace: "team", Name: "shops"}, "1"),
		"uid":       inventory.ObjectName("platform.example.com", "Shop", shop, "2"),
	}
	for what, other := range others {
		if other == name {
			t.Errorf("another %s has the same name %s, want another name", what, name)
		}
	}
	for _, odd := range []string{"", strings.Repeat("x", 300), strings.Repeat("-", 300), "a.b.c", "Ünïcödé", strings.Repeat("ü", 200)} {
		name := inventory.ObjectName(odd, odd, types.NamespacedName{Namespace: odd, Name: odd}, types.UID(odd)) + "-1234567890"
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("the name of %q is %s, want a DNS subdomain: %v", odd, name, problems)
		}
	}
}

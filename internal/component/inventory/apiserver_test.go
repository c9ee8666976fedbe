package inventory_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// live returns a client of the real API server whose requests are counted.
func live(t testing.TB) (client.Client, *controlplane.Requests) {
	t.Helper()
	config, requests := controlplane.CountRequests(plane.Config(t))
	c, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	// It first asks for the types that there are.
	if err := c.List(t.Context(), &corev1.SecretList{}, client.InNamespace("none")); err != nil {
		t.Fatal(err)
	}
	requests.Reset()
	return c, requests
}

// TestAPIServerTakesTenThousandRecords counts the requests for them, and what they take.
func TestAPIServerTakesTenThousandRecords(t *testing.T) {
	failed := func(i int) apis.InventoryRecord {
		r := ready(i)
		r.Status, r.Message = apis.ObjectFailed, noise(i, inventory.MaxMessage)
		return r
	}
	many := large(raceDetector)
	for _, kind := range []string{inventory.KindSecret, inventory.KindConfigMap} {
		t.Run(kind, func(t *testing.T) {
			c, requests := live(t)
			options := optionsFor(c, kind)
			options.Namespace = plane.Namespace(t)
			store := open(t, options)
			step := func(what string, most int, do func()) {
				t.Helper()
				requests.Reset()
				start := time.Now()
				do()
				t.Logf("%s: %d requests, %s; %s", what, requests.Total(), time.Since(start).Round(time.Millisecond), stored(t, options))
				if got := requests.Total(); got > most {
					t.Errorf("%s: %d requests, at most %d wanted:\n%s", what, got, most, requests)
				}
			}
			step("all records, written ahead", 8, func() {
				mustLoad(t, store)
				mustSave(t, store, records(many, record))
			})
			step("all ready", 4, func() { mustSave(t, store, records(many, ready)) })
			step("nothing changed", 0, func() { mustSave(t, store, records(many, ready)) })
			all := records(many, ready)
			all[many/2] = failed(many / 2)
			step("one changed", 1, func() { mustSave(t, store, all) })
			step("a new process", 1, func() {
				store = open(t, options)
				if !inventory.Equal(mustLoad(t, store), all) {
					t.Errorf("the store loads %d records, want the %d that were saved", len(mustLoad(t, store)), many)
				}
			})
			step("all failed, with long messages that do not compress", 30, func() { mustSave(t, store, records(many, failed)) })
			step("a new process", 1, func() {
				store = open(t, options)
				if !inventory.Equal(mustLoad(t, store), records(many, failed)) {
					t.Errorf("the store loads %d records, want the %d failed ones", len(mustLoad(t, store)), many)
				}
			})
			step("none any more", 30, func() { mustSave(t, store, nil) })
			step("removed", 40, func() {
				if err := store.Remove(t.Context()); err != nil {
					t.Error(err)
				}
			})
			step("nothing is left", 2, func() { mustLoad(t, open(t, options)) })
		})
	}
	for what, all := range map[string][]apis.InventoryRecord{
		"written ahead": records(many, record), "all ready": records(many, ready),
	} {
		raw, err := json.Marshal(compacted(all))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("the same in a status, %s: %d bytes a record", what, len(raw)/many)
	}
}

// stored says how large the objects are.
func stored(t *testing.T, options inventory.Options) string {
	t.Helper()
	c, _ := live(t)
	var sizes []int
	total := 0
	add := func(n int) {
		sizes = append(sizes, n)
		total += n
	}
	var secrets corev1.SecretList
	var configMaps corev1.ConfigMapList
	for _, list := range []client.ObjectList{&secrets, &configMaps} {
		if err := c.List(t.Context(), list, client.InNamespace(options.Namespace), client.MatchingLabels(options.Labels)); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range secrets.Items {
		add(o.Size())
	}
	for _, o := range configMaps.Items {
		add(o.Size())
	}
	return fmt.Sprintf("%d bytes in %d objects of %d bytes", total, len(sizes), sizes)
}

func TestAPIServerNoticesWhoElseWrites(t *testing.T) {
	c, _ := live(t)
	options := optionsFor(c, "")
	options.Namespace = plane.Namespace(t)
	a, b := open(t, options), open(t, options)
	mustLoad(t, a)
	mustLoad(t, b)
	mustSave(t, a, records(30, record))
	if _, err := b.Save(t.Context(), []apis.InventoryRecord{record(40)}); !apierrors.IsConflict(err) {
		t.Errorf("a create on top of another writer ends with %v, want a conflict", err)
	}
	mustSave(t, b, append(mustLoad(t, b), record(40)))
	if _, err := a.Save(t.Context(), records(30, ready)); !apierrors.IsConflict(err) {
		t.Errorf("an update on top of another writer ends with %v, want a conflict", err)
	}
	want := append(records(30, record), record(40))
	if got := inventory.Keys(mustLoad(t, open(t, options))); len(got) != len(want) {
		t.Errorf("of %d records there are %d", len(want), len(got))
	}
}

// TestAPIServerKeepsTheInventoryOfWhatIsDeleted does to the buckets what the garbage collector does at once when the
// resource is deleted in the foreground, with any finalizers, and what the namespace controller does when the namespace
// is deleted.
func TestAPIServerKeepsTheInventoryOfWhatIsDeleted(t *testing.T) {
	c, _ := live(t)
	options := optionsFor(c, "")
	options.Namespace = plane.Namespace(t)
	options.OwnerReference = &metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Shop", Name: "shop", UID: options.OwnerUID}
	store := open(t, options)
	mustLoad(t, store)
	mustSave(t, store, records(30, record))

	// The namespace is going, too, so that nothing new can be made in it.
	if err := c.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: options.Namespace}}); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(options.Namespace)); err != nil {
		t.Fatal(err)
	}

	// What is remembered is older than the deletion.
	if _, err := store.Save(t.Context(), records(20, record)); !apierrors.IsConflict(err) {
		t.Errorf("the error is %v, want a conflict", err)
	}
	if got := mustLoad(t, store); !inventory.Equal(got, records(30, record)) {
		t.Errorf("the store loads %d records, want 30 as they were saved", len(got))
	}
	mustSave(t, store, records(10, record))
	store = open(t, options)
	if got := mustLoad(t, store); !inventory.Equal(got, records(10, record)) {
		t.Errorf("the store loads %d records, want 10 as they were saved", len(got))
	}
	mustSave(t, store, nil)
	if err := store.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	var left corev1.SecretList
	if err := c.List(t.Context(), &left, client.InNamespace(options.Namespace)); err != nil || len(left.Items) > 0 {
		t.Errorf("%d buckets are left, want none: %v", len(left.Items), err)
	}
}

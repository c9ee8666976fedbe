package memserver_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/testing/internal/memserver"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func TestDeleteHonoursPreconditions(t *testing.T) {
	uid, otherUID, version, otherVersion := types.UID("one"), types.UID("two"), "999", "998"
	tests := map[string]struct {
		preconditions client.Preconditions
		options       []client.DeleteOption
		conflict      bool
		gone          bool
	}{
		"right UID":                   {preconditions: client.Preconditions{UID: &uid}, gone: true},
		"wrong UID":                   {preconditions: client.Preconditions{UID: &otherUID}, conflict: true},
		"right version":               {preconditions: client.Preconditions{ResourceVersion: &version}, gone: true},
		"wrong version":               {preconditions: client.Preconditions{ResourceVersion: &otherVersion}, conflict: true},
		"right UID and version":       {preconditions: client.Preconditions{UID: &uid, ResourceVersion: &version}, gone: true},
		"right UID and wrong version": {preconditions: client.Preconditions{UID: &uid, ResourceVersion: &otherVersion}, conflict: true},
		"dry run": {
			preconditions: client.Preconditions{UID: &uid},
			options:       []client.DeleteOption{client.DryRunAll},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := configMap(nil)
			obj.UID = uid
			c, _ := memserver.New(clientgoscheme.Scheme).Build(fake.NewClientBuilder().WithObjects(obj))
			err := c.Delete(context.Background(), configMap(nil), append(tc.options, tc.preconditions)...)
			if apierrors.IsConflict(err) != tc.conflict || (err != nil && !tc.conflict) {
				t.Fatalf("conflict %v wanted, got %v", tc.conflict, err)
			}
			err = c.Get(context.Background(), client.ObjectKeyFromObject(obj), obj)
			if apierrors.IsNotFound(err) != tc.gone {
				t.Errorf("gone %v wanted, got %v", tc.gone, err)
			}
		})
	}
}

func TestUpdateMeansTheObjectItSays(t *testing.T) {
	ctx := context.Background()
	given := configMap(data{"k": "1"})
	given.UID = "one"
	c, _ := memserver.New(clientgoscheme.Scheme).Build(fake.NewClientBuilder().WithObjects(given))
	mistaken := configMap(data{"k": "2"})
	mistaken.UID = "two"
	if err := c.Update(ctx, mistaken); !apierrors.IsConflict(err) {
		t.Errorf("an update of another object of that name: want a conflict, got %v", err)
	}
	if err := c.Update(ctx, configMap(data{"k": "3"})); err != nil {
		t.Fatal(err)
	}
	got := configMap(nil)
	if err := c.Get(ctx, client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	if got.UID != "one" || got.Data["k"] != "3" || got.ResourceVersion != "1000" {
		t.Errorf("got UID %q, data %v, version %s", got.UID, got.Data, got.ResourceVersion)
	}
}

func TestManagedFieldsAreKeptWhenAsked(t *testing.T) {
	ctx := context.Background()
	c, _ := memserver.New(clientgoscheme.Scheme).Build(fake.NewClientBuilder().WithReturnManagedFields())
	if err := c.Create(ctx, configMap(data{"k": "1"}), client.FieldOwner("a")); err != nil {
		t.Fatal(err)
	}
	got := configMap(nil)
	if err := c.Get(ctx, client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	if len(got.ManagedFields) != 1 || got.ManagedFields[0].Manager != "a" {
		t.Errorf("got managed fields %v", got.ManagedFields)
	}
}

func TestManyUpdatesAreStillKnown(t *testing.T) {
	ctx := context.Background()
	c, _ := memserver.New(clientgoscheme.Scheme).Build(fake.NewClientBuilder())
	if err := c.Create(ctx, configMap(data{"k": "0", "l": "0"}), client.FieldOwner("a")); err != nil {
		t.Fatal(err)
	}
	for i := range 600 {
		if err := c.Update(ctx, configMap(data{"k": fmt.Sprint(i), "l": "0"}), client.FieldOwner("b")); err != nil {
			t.Fatal(err)
		}
	}
	if err := (step{by: "b", apply: data{"l": "1"}}).run(c); !apierrors.IsConflict(err) {
		t.Errorf("the first writer still owns its field: want a conflict, got %v", err)
	}
}

func TestTypeConvertersOfTheBuilderWork(t *testing.T) {
	builder := fake.NewClientBuilder().WithTypeConverters(managedfields.NewDeducedTypeConverter())
	c, behind := memserver.New(clientgoscheme.Scheme).Build(builder)
	if behind {
		t.Errorf("the fake client cannot have type converters and a tracker of ours")
	}
	if err := (step{by: "a", apply: data{"k": "1"}}).run(c); err != nil {
		t.Error(err)
	}
}

func TestTrackerOfTheBuilderIsKept(t *testing.T) {
	other := memserver.New(clientgoscheme.Scheme)
	c, behind := memserver.New(clientgoscheme.Scheme).Build(fake.NewClientBuilder().WithObjectTracker(other))
	if behind {
		t.Error("the builder had a tracker already")
	}
	if err := c.Create(context.Background(), configMap(nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Get(configMaps, "default", "settings"); err != nil {
		t.Error(err)
	}
}

func TestWatch(t *testing.T) {
	ctx := context.Background()
	server := memserver.New(clientgoscheme.Scheme)
	c, _ := server.Build(fake.NewClientBuilder().WithObjects(configMap(nil)))
	w, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace("default"))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := configMap(nil)
	elsewhere.Namespace = "elsewhere"
	obj := configMap(data{"k": "1"})
	for _, err := range []error{c.Create(ctx, elsewhere), c.Update(ctx, obj), c.Delete(ctx, obj)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for range 2 {
		event := <-w.ResultChan()
		got = append(got, string(event.Type)+" "+event.Object.(*corev1.ConfigMap).Namespace)
	}
	if diff := cmp.Diff([]string{"MODIFIED default", "DELETED default"}, got); diff != "" {
		t.Errorf("events differ (-want, +got):\n%s", diff)
	}
	w.Stop()
	w.Stop()
	if _, open := <-w.ResultChan(); open {
		t.Error("a stopped watch must end")
	}

	replay, err := server.Watch(configMaps, "", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer replay.Stop()
	if event := <-replay.ResultChan(); event.Object.(*corev1.ConfigMap).Namespace != "elsewhere" {
		t.Errorf("a watch with options starts with what there is, got %v", event)
	}
}

func TestConcurrentWrites(t *testing.T) {
	ctx := context.Background()
	c, _ := memserver.New(clientgoscheme.Scheme).Build(fake.NewClientBuilder())
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			obj := settings(fmt.Sprintf("cm-%d", i))
			if err := c.Create(ctx, obj); err != nil {
				t.Error(err)
			}
			if err := (step{by: fmt.Sprint(i), apply: data{fmt.Sprint(i): "1"}}).run(c); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	got := configMap(nil)
	if err := c.Get(ctx, client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 8 {
		t.Errorf("8 managers applied a field each, there are %v", got.Data)
	}
}

func TestAddRefusesADuplicate(t *testing.T) {
	server := memserver.New(clientgoscheme.Scheme)
	list := &corev1.ConfigMapList{Items: []corev1.ConfigMap{*configMap(nil)}}
	if err := server.Add(list); err != nil {
		t.Fatal(err)
	}
	if err := server.Add(configMap(nil)); !apierrors.IsAlreadyExists(err) {
		t.Errorf("want AlreadyExists, got %v", err)
	}
	if _, err := server.Get(configMaps, "default", "settings"); err != nil {
		t.Error(err)
	}
}

func TestSchemeOfTheTestIsLeftAlone(t *testing.T) {
	ctx, scheme := context.Background(), runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	before := len(scheme.AllKnownTypes())
	var group sync.WaitGroup
	for i := range 4 {
		server := memserver.New(scheme)
		c, _ := server.Build(fake.NewClientBuilder().WithScheme(scheme).WithObjects(configMap(nil)))
		group.Go(func() {
			defer server.Close()
			gadget := &unstructured.Unstructured{}
			gadget.SetAPIVersion("example.com/v1")
			gadget.SetKind(fmt.Sprintf("Gadget%d", i))
			gadget.SetName("one")
			if err := c.Create(ctx, gadget); err != nil {
				t.Error(err)
			}
			if _, err := c.GroupVersionKindFor(configMap(nil)); err != nil {
				t.Error(err)
			}
			if err := c.Get(ctx, client.ObjectKeyFromObject(configMap(nil)), configMap(nil)); err != nil {
				t.Error(err)
			}
		})
		if c.Scheme() != scheme {
			t.Error("the client shows the scheme of the test")
		}
	}
	group.Wait()
	if after := len(scheme.AllKnownTypes()); after != before {
		t.Errorf("the scheme had %d types, it has %d", before, after)
	}

	// A type that is registered later is known to the next server.
	if err := appsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, _ := memserver.New(scheme).Build(fake.NewClientBuilder().WithScheme(scheme))
	if err := c.Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}); err != nil {
		t.Error(err)
	}
}

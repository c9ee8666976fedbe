package reconcilers_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// probedOperator is an operator whose last node notes which version of each Widget it has seen, by name.
type probedOperator struct {
	*meterOperator
	seen *sync.Map
}

func startProbed(t *testing.T, gvk schema.GroupVersionKind, nodes ...widgetNode) *probedOperator {
	t.Helper()
	seen := &sync.Map{}
	probe := espalier.Runs("Probe", func(_ context.Context, w *resources.Widget) error {
		seen.Store(w.Name, w.Labels["probe"])
		return nil
	}).Independent()
	return &probedOperator{startMeterOperator(t, gvk, plane.Config(t), espalier.Steps(append(nodes, probe)...)), seen}
}

// edit changes a Widget, and waits until the operator has seen it.
func (o *probedOperator) edit(t *testing.T, w *resources.Widget, change func(*resources.Widget)) {
	t.Helper()
	version := fmt.Sprint(time.Now().UnixNano())
	editWidget(t, o.live, w, func(w *resources.Widget) {
		w.Labels = map[string]string{"probe": version}
		change(w)
	})
	eventually(t, "the operator does not see the change", func(context.Context) error {
		if seen, _ := o.seen.Load(w.Name); seen != version {
			return fmt.Errorf("it saw %v, want %s", seen, version)
		}
		return nil
	})
}

// staysIdle fails if a request of the operator for the Widget has requests to the API server. After an event of a
// definition, there are some for a while.
func (o *probedOperator) staysIdle(t *testing.T, w *resources.Widget) {
	t.Helper()
	eventually(t, "the operator is not idle", func(context.Context) error {
		o.requests.Reset()
		o.edit(t, w, func(*resources.Widget) {})
		controlplanetest.Rest(t, o.requests)
		if o.requests.Total() > 0 {
			return fmt.Errorf("it made the requests %s", o.requests)
		}
		return nil
	})
}

func isNotFound(err error, what string) error {
	switch {
	case apierrs.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%s is still there", what)
}

// A Widget cannot own a ClusterRole, and deletes it all the same. A custom type is known as cluster-scoped once it is
// served.
func TestClusterScopedObjectsOnAnAPIServer(t *testing.T) {
	t.Parallel()
	name := plane.Namespace(t)
	desires := func(w *resources.Widget) bool { return w.Spec.Fields["meter"] != "" }
	o := startProbed(t, meterKind("scope"),
		espalier.Owns("Access", func(_ context.Context, w *resources.Widget) (*rbacv1.ClusterRole, error) {
			if !desires(w) {
				return nil, nil
			}
			return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
		}).Reports("Role"),
		espalier.OwnsEach("Meters", func(_ context.Context, w *resources.Widget) ([]*meter, error) {
			if !desires(w) {
				return nil, nil
			}
			return []*meter{{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: map[string]string{"of": "all"}}}, nil
		}).Reports("Meters"),
	)
	role, of := &rbacv1.ClusterRole{}, &meter{}
	gone := func(ctx context.Context) error {
		if err := isNotFound(o.live.Get(ctx, client.ObjectKey{Name: name}, role), "the ClusterRole"); err != nil {
			return err
		}
		return isNotFound(o.live.Get(ctx, client.ObjectKey{Name: name}, of), "the Meter")
	}
	w := o.widget(t, "scope", "yes")
	o.reports(t, w, map[string]string{"Role": "Ready", "Meters": "KindNotServed"})
	definition := meterDefinition(o.gvk)
	definition.Spec.Scope = apiextensionsv1.ClusterScoped
	if err := o.live.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.live.Delete(context.Background(), meterDefinition(o.gvk)) })
	o.reports(t, w, map[string]string{"Role": "Ready", "Meters": "Ready"})
	if err := o.live.Get(t.Context(), client.ObjectKey{Name: name}, role); err != nil || len(role.OwnerReferences) > 0 {
		t.Fatalf("the ClusterRole has the owners %v, want none: %v", role.OwnerReferences, err)
	}
	if err := o.live.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
		t.Fatal(err)
	}
	if want := []string{"espalier.dev/clusterrole.Access", "espalier.dev/meter.Meters"}; !slices.Equal(w.Finalizers, want) {
		t.Errorf("the finalizers of the Widget are %v, want %v", w.Finalizers, want)
	}
	o.staysIdle(t, w)

	o.edit(t, w, func(w *resources.Widget) { w.Spec.Fields = nil })
	eventually(t, "what is not desired stays", func(ctx context.Context) error {
		if err := gone(ctx); err != nil {
			return err
		}
		if err := o.live.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil || len(w.Finalizers) > 0 {
			return fmt.Errorf("the finalizers are %v, %w", w.Finalizers, err)
		}
		return nil
	})
	o.edit(t, w, func(w *resources.Widget) { w.Spec.Fields = map[string]string{"meter": "yes"} })
	o.reports(t, w, map[string]string{"Role": "Ready", "Meters": "Ready"})
	if err := o.live.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Widget is not deleted with its objects", func(ctx context.Context) error {
		if err := gone(ctx); err != nil {
			return err
		}
		return isNotFound(o.live.Get(ctx, client.ObjectKeyFromObject(w), w), "the Widget")
	})
}

// An apply with a UID creates nothing: neither where there is no object, nor where there is another one.
func TestL4AnApplyWithAUIDNeverCreates(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	apply := func(uid string) error {
		body := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"namespace": namespace, "name": "theirs", "uid": uid},
			"data":     map[string]any{"color": "blue"},
		}}
		return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(body), client.FieldOwner("espalier-test"))
	}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "theirs"}}
	if err := c.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if err := apply(string(theirs.UID)); !apierrs.IsConflict(err) {
		t.Errorf("an apply to an object that is gone returns %v, want a conflict", err)
	}
	if err := isNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs), "the ConfigMap"); err != nil {
		t.Error(err)
	}
}

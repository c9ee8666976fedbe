package execute_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/plan"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A namespace that another client creates at the same time exists, which is enough.
func TestEnsureNamespacesAtTheSameTime(t *testing.T) {
	b := newBench(t)
	name := "both-" + b.namespace
	var wait sync.WaitGroup
	failed := make([]map[string]error, 4)
	for i := range failed {
		wait.Go(func() { failed[i] = b.executor.EnsureNamespaces(t.Context(), []string{name}) })
	}
	wait.Wait()
	for _, errs := range failed {
		if len(errs) != 0 {
			t.Errorf("the errors are %v, want none", errs)
		}
	}
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: `+name+`}}`, "d1")
	b.create(o)
}

// A namespace that is there is no error, and one that is being deleted is waited for.
func TestEnsureNamespaces(t *testing.T) {
	b := newBench(t)
	fresh, going := "new-"+b.namespace, "going-"+b.namespace
	gone := b.put(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + going + `}}`)
	if err := b.Delete(t.Context(), named(gone)); err != nil {
		t.Fatal(err)
	}
	b.warm(operation(plan.ActionCreate, gone))
	failed := b.executor.EnsureNamespaces(t.Context(), []string{fresh, going, b.namespace, "NOT_ONE", fresh,
		"default", "kube-system", "kube-public", "kube-node-lease"})
	if got := b.requests.Total(); got != 4 {
		t.Errorf("there are %d requests, want 4:\n%s", got, b.requests)
	}
	var wait *execute.WaitError
	if len(failed) != 2 || failed["NOT_ONE"] == nil || !errors.As(failed[going], &wait) || wait.Namespace != going {
		t.Errorf("the errors are %v, want one for NOT_ONE, and a WaitError for %s", failed, going)
	}
	b.wantText(failed[going], "unable to create Namespace going-NS: the namespace going-NS is being deleted")
	live := b.live(b.object(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + fresh + `}}`))
	if len(live.GetAnnotations()) != 0 || live.GetLabels()[ownerLabel] != "" {
		t.Errorf("the namespace has the metadata %v, want neither annotations nor an owner", live.Object["metadata"])
	}
	if failed := b.executor.EnsureNamespaces(t.Context(), nil); len(failed) != 0 {
		t.Errorf("the errors are %v, want none", failed)
	}
}

// Without the right to create namespaces, existing ones can be used.
func TestEnsureNamespacesWithoutPermission(t *testing.T) {
	b := newBench(t, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			return apierrs.NewForbidden(schema.GroupResource{Resource: "namespaces"}, o.GetName(),
				errors.New("because"))
		},
	})
	going := "going-" + b.namespace
	gone := b.put(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + going + `}}`)
	if err := b.Delete(t.Context(), named(gone)); err != nil {
		t.Fatal(err)
	}
	failed := b.executor.EnsureNamespaces(t.Context(), []string{"nowhere", b.namespace, going})
	var wait *execute.WaitError
	if len(failed) != 2 || !apierrs.IsForbidden(failed["nowhere"]) || errors.As(failed["nowhere"], &wait) ||
		!errors.As(failed[going], &wait) {
		t.Errorf("the errors are %v, want a forbidden one for nowhere, and a WaitError for %s", failed, going)
	}
}

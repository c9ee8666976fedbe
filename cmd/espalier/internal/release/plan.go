package release

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Planned is what would be done about one object.
type Planned struct {
	component.Change
	// Before is the object as it is, nil if there is none.
	Before *unstructured.Unstructured
	// After is what the API server would make of it, nil if it would be gone, or if that was not tried.
	After *unstructured.Unstructured
	// Err is why the API server would refuse it.
	Err error
}

// Plan returns what a run would do, and only reads. With trials, the API server also tries each write of an object that
// does not depend on another one, without an effect.
func (r *Run) Plan(ctx context.Context, of *Release, trials bool) (*component.Plan, []Planned, error) {
	node := r.node(of, nil).Reconciler.(*component.ComponentReconciler[*Release])
	config := r.Cluster.keeping(r.Kept).config()
	of = of.DeepCopyObject().(*Release)
	of.Status.Inventory, _ = r.Kept.split(of)
	ctx = reconcilers.StashOriginalConfig(reconcilers.StashConfig(ctx, config), config)
	ctx = reconcilers.StashRequest(ctx, reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(of)})
	tried := map[string]execute.Preview{}
	if trials {
		ctx = engine.WithTrials(ctx, func(p execute.Preview) { tried[p.Key.String()] = p })
	}
	made, err := node.Plan(ctx, of)
	if err != nil {
		return nil, nil, fmt.Errorf("component %q: %w", of.Name, inOneLine(err))
	}
	planned := make([]Planned, 0, len(made.Changes))
	for _, change := range made.Changes {
		one := Planned{Change: change}
		if preview, ok := tried[change.Object]; ok {
			one.Before, one.After, one.Err = preview.Before, preview.After, preview.Err
		} else if trials && change.Action != "create" {
			one.Before = r.read(ctx, change.Ref)
		}
		planned = append(planned, one)
	}
	return made, planned, nil
}

// inOneLine returns an error without its line breaks.
func inOneLine(err error) error { return errors.New(strings.Join(strings.Fields(err.Error()), " ")) }

// read returns an object as it is, nil if it cannot be read.
func (r *Run) read(ctx context.Context, ref reconcilers.ObjectRef) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(ref.GroupVersionKind)
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if err := r.Cluster.Client.Get(ctx, key, object); err != nil {
		return nil
	}
	return object
}

// Deleted returns a release as if it were being deleted.
func (r *Release) Deleted() *Release {
	deleted := r.DeepCopyObject().(*Release)
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	return deleted
}

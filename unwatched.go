package espalier

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Unwatched has the node do without the rights to list and watch its type. It reads each object from the API server, by
// the name that desired returns, which costs a request for each object whenever the resource is reconciled. No event of
// an object brings the resource back: while one is not as it should be, that is done after a minute, or after the time
// of RetryAfter. Otherwise changes by others are corrected when something else brings it back.
//
// An object is known by its name alone. It is deleted while a gate is off, with Absent, and with the resource. If
// desired returns nil or another name, it stays until then. While the node waits, its objects are not read. Below an
// [Each], desired is also asked for an item that is gone, so the name has to be made of [reconcilers.ItemKey].
func (s *Switches[Self, T, CT]) Unwatched() Self {
	s.retryAfter = cmp.Or(s.retryAfter, time.Minute)
	return s.with(unwatched, false)
}

// byNames has the engine find the objects by the names that desired returns.
func (s *Switches[Self, T, CT]) byNames(ctx context.Context, resource T, p *pass[CT]) (context.Context, error) {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return ctx, err
	}
	config.Client = byName[CT]{config.Client, config.APIReader, s.object}
	ctx = reconcilers.StashConfig(ctx, config)
	if p.keep {
		return ctx, nil
	}
	desired, err := s.desired(reconcilers.Enter(ctx, s.name), resource)
	if err != nil && p.desire == nil {
		return ctx, err
	}
	for _, object := range desired {
		if gotype.IsNil(object) || err != nil {
			continue
		}
		p.names = append(p.names, client.ObjectKeyFromObject(object))
		err = controllerutil.SetControllerReference(resource, object, config.Scheme())
	}
	if p.desire != nil {
		p.desire = func(context.Context) ([]CT, error) { return desired, err }
	}
	return ctx, nil
}

// byName is a client that reads from the API server, and lists only the objects whose names the pass has.
type byName[CT client.Object] struct {
	client.Client
	live   client.Reader
	object CT
}

// Get implements [client.Reader].
func (b byName[CT]) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return b.live.Get(ctx, key, obj, opts...)
}

// List implements [client.Reader]. It reads one object after the other.
func (b byName[CT]) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	var found []runtime.Object
	for _, key := range passOf[CT](ctx).names {
		object := b.object.DeepCopyObject().(CT)
		if err := b.live.Get(ctx, key, object); client.IgnoreNotFound(err) != nil {
			return err
		} else if err == nil {
			found = append(found, object)
		}
	}
	return meta.SetList(list, found)
}

// isControlled reports whether an object that was found by its name is the resource's.
func (s *Switches[Self, T, CT]) isControlled(resource T, object CT) bool {
	return metav1.IsControlledBy(object, resource)
}

// noOptions are the options to list objects that are found by their names.
func (s *Switches[Self, T, CT]) noOptions(context.Context, T) []client.ListOption { return nil }

// readOne reads an object by its name.
func (s *Switches[Self, T, CT]) readOne(
	ctx context.Context, config reconcilers.Config, key client.ObjectKey, live CT,
) error {
	if !s.has(unwatched) {
		return config.TrackAndGet(ctx, key, live)
	}
	err := config.APIReader.Get(ctx, key, live)
	if meta.IsNoMatchError(err) && !apierrs.IsNotFound(err) {
		return &reconcilers.KindNotServedError{Kind: s.gvk(ctx)}
	}
	return err
}

// unwatchedUses returns what the node uses, without the rights that it does not need.
func (s *Switches[Self, T, CT]) unwatchedUses(uses []reconcilers.Access) []reconcilers.Access {
	uses = slices.Clone(uses)
	for i := range uses {
		uses[i].Verbs = slices.DeleteFunc(slices.Clone(uses[i].Verbs), func(verb string) bool {
			return verb == "list" || verb == "watch"
		})
	}
	if !s.has(readOnly) {
		uses = append(uses, reconcilers.Access{Subresource: "finalizers", Verbs: []string{"update"}})
	}
	return uses
}

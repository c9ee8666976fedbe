package reconcilers

import (
	"context"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/internal/digest"
	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/pace"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// limitedError is the error of an object that is written with delays, because it was written too often. Its text is the
// same until that ends.
type limitedError struct {
	object string
	differences
}

// differences are what is to be changed in an object.
type differences struct {
	// fields are the paths of fields, and managers the names of other field managers that own them. What is not known
	// is not there. They have no values.
	fields, managers []string
	// undone is true if the object has already been as it is desired now.
	undone bool
}

// differences returns in which of the fields that are wanted actual differs, and who else owns them.
func (a *applyCall[Type]) differences(wanted managedfields.Configuration, actual Type) (d differences) {
	there, err := contentOf(actual)
	if err != nil {
		return d
	}
	for _, loss := range managedfields.Losses(wanted, there, actual.GetManagedFields(), a.owner) {
		d.fields, d.managers = append(d.fields, loss.Path), append(d.managers, loss.Managers...)
	}
	slices.Sort(d.managers)
	d.managers = slices.Compact(d.managers)
	return d
}

// isContested reports whether another client undoes what is desired. Else what is desired changes.
func (e *limitedError) isContested() bool { return e.undone || len(e.managers) > 0 }

// event is the reason of the event that it begins.
func (e *limitedError) event() string {
	if e.isContested() {
		return "ContestedChild"
	}
	return "NondeterministicChild"
}

func (e *limitedError) held() HeldKind {
	if e.isContested() {
		return HeldContested
	}
	return HeldFlapping
}

func (e *limitedError) Error() string {
	fields := message.List(e.fields, maxLogged)
	if !e.isContested() {
		if fields != "" {
			fields = ", and differs again in " + fields
		}
		return fmt.Sprintf("%s was written %d times in five minutes%s; it is written with delays; what is desired "+
			"must not depend on time, chance or the order of a map", e.object, pace.AtOnce, fields)
	}
	who := "another client or a webhook"
	if len(e.managers) > 0 {
		who = fmt.Sprintf("the field manager %q", message.List(e.managers, maxLogged))
	}
	if fields != "" {
		fields += " of "
	}
	return fmt.Sprintf("%s keeps changing %s%s, which was written %d times in five minutes; it is written back with "+
		"delays; one of both must leave it alone", who, fields, e.object, pace.AtOnce)
}

// pacing is what is known of how often an object was written, and where that is kept.
type pacing struct {
	resourcestate.Paced
	of   resourcestate.PacedObject
	kept *resourcestate.Paces
}

type pacesKey struct{}

// pacingOf returns what is known of how often obj was written for resource. It returns nil where no node was entered,
// and for the object of an aggregate, which is its own resource.
func pacingOf(ctx context.Context, resource, obj client.Object) *pacing {
	s := contextOf(ctx)
	if s.state == nil || s.state.resource == nil || !s.comparable || obj.GetUID() == "" ||
		obj.GetUID() == resource.GetUID() {
		return nil
	}
	// What users change.
	wanted, _ := digest.Of([]any{resource.GetGeneration(), resource.GetLabels(), resource.GetAnnotations()})
	p := &pacing{
		of: resourcestate.PacedObject{
			Client: s.config.Client,
			Kind:   refOf(s.config.Client, obj).GroupKind(),
			Name:   client.ObjectKeyFromObject(obj),
		},
		kept: resourcestate.LoadOrNew[resourcestate.Paces](s.state.resource, pacesKey{}),
	}
	p.Paced = p.kept.Of(p.of, wanted)
	return p
}

// holdWrite returns an error if obj is written too often, and must not be written yet.
func holdWrite(ctx context.Context, resource, obj client.Object, differences func() differences) error {
	p, now := pacingOf(ctx, resource, obj), rtime.RetrieveNow(ctx)
	if p == nil {
		return nil
	}
	wait := p.Wait(now)
	if wait == 0 {
		return nil
	}
	s := contextOf(ctx)
	s.state.wakeAfter(wait)
	limit, isKnown := p.Limit.(*limitedError)
	if !isKnown {
		limit = &limitedError{describeObject(obj), differences()}
		logr.FromContextOrDiscard(ctx).Info("writing with delays", "object", limit.object, "reason", limit.Error())
		regarding, _ := s.behindCast(resource)
		s.originalConfig.record(regarding, corev1.EventTypeWarning, limit.event(), "%v", limit)
	}
	p.Pace, p.Limit = p.Held(), limit
	p.kept.Put(p.of, p.Paced)
	if s.state.observers != nil {
		Note(ctx, Held{Object: refOf(s.config.Client, obj), Kind: limit.held()})
	}
	return limit
}

// noteWritten notes that obj was written, which counts as that many writes: none for a create.
func noteWritten(ctx context.Context, resource, obj client.Object, times int) {
	if p := pacingOf(ctx, resource, obj); p != nil {
		p.kept.Put(p.of, p.After(rtime.RetrieveNow(ctx), times))
	}
}

// stillLimited returns an error while obj, which is as desired now, would have to wait for another write. So the
// condition does not change to and fro.
func stillLimited(ctx context.Context, kept *resourcestate.State, resource, obj client.Object) error {
	if kept == nil {
		return nil
	}
	if paces, some := resourcestate.Load[*resourcestate.Paces](kept, pacesKey{}); !some || !paces.AnyLimited() {
		return nil
	}
	p := pacingOf(ctx, resource, obj)
	if p == nil || p.Limit == nil {
		return nil
	}
	left := p.Limited(rtime.RetrieveNow(ctx))
	if left == 0 {
		return nil
	}
	contextOf(ctx).state.wakeAfter(left)
	return p.Limit
}

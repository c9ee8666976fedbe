package espalier

import (
	"context"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/objectname"
	"github.com/espalier-dev/espalier/reconcilers"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// read reads the objects that have the names of those desired.
func (s *Switches[Self, T, CT]) read(ctx context.Context, resource T) outcome[CT] {
	desired, err := s.desired(ctx, resource)
	if notReady := asNotReady(err); notReady != nil {
		o := outcome[CT]{waits: new(conditionOfError(notReady))}
		o.wake(notReady.Delay)
		return o
	}
	if err != nil {
		return outcome[CT]{err: reconcilers.Failed(ctx, nil, err)}
	}
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return outcome[CT]{err: err}
	}
	var o outcome[CT]
	if len(desired) == 0 {
		o.none = ReasonNotDesired
	}
	for _, named := range desired {
		if gotype.IsNil(named) {
			continue
		}
		live := s.object.DeepCopyObject().(CT)
		switch err := s.readOne(ctx, config, client.ObjectKeyFromObject(named), live); {
		case err == nil:
			o.live = append(o.live, live)
		case s.isMissing(err) && s.has(optional):
			o.none = string(metav1.StatusReasonNotFound)
		case apierrs.IsNotFound(err):
			o.waits, o.named = waitsForObject(s.kind, named), named
		case s.isMissing(err):
			o.reflected = err
		default:
			return outcome[CT]{err: reconcilers.Failed(ctx, named, err)}
		}
	}
	if len(o.live) > 0 {
		o.none = ""
	}
	return o
}

// isMissing reports whether an object does not exist, or cannot since its kind is not served.
func (s *Switches[Self, T, CT]) isMissing(err error) bool {
	return apierrs.IsNotFound(err) || apierrs.ReasonForError(err) == reconcilers.StatusReasonKindNotServed
}

func waitsForObject(kind string, named client.Object) *metav1.Condition {
	return &metav1.Condition{
		Status: metav1.ConditionFalse, Reason: string(metav1.StatusReasonNotFound),
		Message: "waiting for " + objectname.WithKind(kind, named),
	}
}

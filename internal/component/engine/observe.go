package engine

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/served"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// observe finds the objects that are desired or recorded.
func (r *run) observe(ctx context.Context) error {
	misplaced := r.misplaced(ctx)
	total := len(r.in.Inventory)
	for i := range r.in.Desired {
		if _, ok := r.recorded[r.in.Desired[i].Key]; !ok {
			total++
		}
	}
	r.interests = make(map[plan.Key]*observe.Interest, total)
	interests := make([]observe.Interest, 0, total)
	add := func(interest observe.Interest) {
		if _, known := misplaced[interest.Key]; known {
			return
		}
		r.addDesired(&interest)
		interests = append(interests, interest)
		r.interests[interest.Key] = &interests[len(interests)-1]
	}
	for i := range r.in.Inventory {
		record := &r.in.Inventory[i]
		key := plan.KeyOf(*record)
		add(observe.Interest{
			Key: key, Version: record.Version, UID: record.UID,
			// Another process of the operator may have created what this one did not, so a record is not dropped
			// before the object was looked for.
			Fresh:   record.UID == "" && r.Memory.fresh[key] && r.isDesired(key),
			Dropped: record.UID == "" && !r.isDesired(key),
		})
	}
	for i := range r.in.Desired {
		desired := &r.in.Desired[i]
		if _, ok := r.recorded[desired.Key]; ok {
			continue
		}
		add(observe.Interest{Key: desired.Key, Version: desired.Version, Fresh: !r.task.DryRun && !desired.ReadOnly})
	}
	observation, err := r.Observer.Observe(ctx, r.Component, interests)
	if err != nil {
		return fmt.Errorf("unable to observe the objects of the component: %w", err)
	}
	r.in.Observed = observation.Objects
	if r.in.Observed == nil {
		r.in.Observed = map[plan.Key]plan.Observed{}
	}
	for _, seen := range r.in.Observed {
		r.fenced = r.fenced || seen.Fenced
	}
	r.report.Syncing, r.report.Polled, r.in.Recheck = observation.Syncing, observation.Polled, observation.Recheck
	r.addMisplaced(misplaced)
	return r.leaveUnreadable(ctx)
}

// addDesired adds to an interest what the desired object says.
func (r *run) addDesired(interest *observe.Interest) {
	object, ok := r.objects[interest.Key]
	if !ok {
		return
	}
	interest.Version = object.Desired.Version
	interest.Settings, interest.Suspended = object.Settings, r.task.Suspended
	interest.Readiness = !r.Memory.contested(&object.Desired, r.task.Now) && !object.Desired.Unchecked
	interest.Static = object.Static
	interest.Ending, interest.ReadOnly = object.Desired.Expires, object.Desired.ReadOnly
	if object.Desired.ReadOnly {
		interest.Suspended = nil
	}
	interest.Defines = object.Desired.ManagedTypes
	if object.Confidential {
		interest.Confidential, interest.Data = true, object.Data
	}
}

// scope is what is known of the scope of a type.
type scope struct {
	known, namespaced bool
	version           schema.GroupVersion
	// asked reports whether the API server was asked, and confirmed whether it serves the type with this scope.
	asked, confirmed bool
	err              error
}

// misplaced returns what is known of the objects whose key has a namespace although their type has none, or the other
// way round. They cannot exist, and are not to be read: a client refuses to, or reads another object. It makes no
// request unless there are such objects.
//
// The mapper may be out of date, so the API server is asked about the types of such objects. Without an answer, it is
// not known whether the objects exist.
func (r *run) misplaced(ctx context.Context) map[plan.Key]plan.Observed {
	if r.Discovery == nil {
		return nil
	}
	scopes := map[schema.GroupKind]*scope{}
	found := map[plan.Key]plan.Observed{}
	look := func(key plan.Key) {
		gk := key.GroupKind()
		s := scopes[gk]
		if s == nil {
			s = r.scopeOf(gk)
			scopes[gk] = s
		}
		if !s.known || s.namespaced == (key.Namespace != "") {
			return
		}
		if !s.asked {
			s.ask(ctx, r.Discovery, gk.Kind)
		}
		switch {
		case s.err != nil:
			found[key] = plan.Observed{}
		case s.confirmed:
			found[key] = plan.Observed{Presence: plan.Absent, Misplaced: true}
		default:
			meta.MaybeResetRESTMapper(r.Client.RESTMapper())
		}
	}
	for i := range r.in.Inventory {
		look(plan.KeyOf(r.in.Inventory[i]))
	}
	for i := range r.in.Desired {
		look(r.in.Desired[i].Key)
	}
	return found
}

// addMisplaced adds to what was observed. No watch shows that a type is served with another scope.
func (r *run) addMisplaced(misplaced map[plan.Key]plan.Observed) {
	for key, seen := range misplaced {
		r.in.Observed[key], r.report.Waits = seen, true
		if seen.Presence != plan.PresenceUnknown {
			continue
		}
		if r.report.Polled == nil {
			r.report.Polled = map[schema.GroupKind]string{}
		}
		r.report.Polled[key.GroupKind()] = "cannot be read: the API does not tell whether it is namespaced"
	}
}

// scopeOf returns what the mapper knows. It makes no request for a type that the mapper does not know.
func (r *run) scopeOf(gk schema.GroupKind) *scope {
	mapper, ok := r.Client.RESTMapper().(served.Discoverer)
	if !ok {
		return &scope{}
	}
	mapping, ok := mapper.Known(gk)
	if !ok {
		return &scope{}
	}
	return &scope{
		known: true, namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace,
		version: mapping.GroupVersionKind.GroupVersion(),
	}
}

// ask finds out whether the API server serves a kind with this scope.
func (s *scope) ask(ctx context.Context, api discovery.DiscoveryInterface, kind string) {
	s.asked = true
	resources := discovery.ToDiscoveryInterfaceWithContext(api)
	list, err := resources.ServerResourcesForGroupVersionWithContext(ctx, s.version.String())
	if err != nil {
		if !apierrs.IsNotFound(err) {
			s.err = err
		}
		return
	}
	at := served.ResourceOf(list, s.version.WithKind(kind))
	for _, resource := range list.APIResources {
		s.confirmed = s.confirmed || resource.Name == at.Resource && resource.Namespaced == s.namespaced
	}
}

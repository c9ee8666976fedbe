package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/readiness"
	"github.com/espalier-dev/espalier/internal/component/served"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Direct is an [Observer] that watches nothing and reads each time: one list for each type and namespace of what carries the label
// of the component, and by name what is not in it but may exist all the same. Requests are made one after the other, in the order
// of the interests. Nobody is ever woken.
//
// Types that may not be listed are read by name. An error that tells nothing about the objects is returned.
type Direct struct {
	client   client.Client
	lens     lens
	evaluate Evaluate

	mu sync.Mutex
	// seen is what was seen last of the objects of each component.
	seen map[types.NamespacedName]*seen
}

// seen is what was seen of the objects of one component.
type seen struct {
	uid     types.UID
	objects map[plan.Key]*sight
}

var _ Observer = (*Direct)(nil)

// NewDirect returns an observer that reads with c, which should not be cached. evaluate may be nil.
func NewDirect(c client.Client, prefix, manager string, evaluate Evaluate) *Direct {
	return &Direct{client: c, lens: newLens(prefix, manager), evaluate: evaluate, seen: map[types.NamespacedName]*seen{}}
}

// directList is what one list is to show.
type directList struct {
	gvk       schema.GroupVersionKind
	namespace string
}

// direct is one Observe.
type direct struct {
	*Direct
	component   Component
	observation *Observation
	objects     map[plan.Key]*sight
	// missing are types that are not served.
	missing map[schema.GroupKind]bool
	// versions are those in which types are served that are not served in the version that was asked for first.
	versions map[schema.GroupKind]string
}

// Observe implements [Observer].
func (d *Direct) Observe(ctx context.Context, c Component, interests []Interest) (*Observation, error) {
	o := &direct{
		Direct:      d,
		component:   c,
		observation: &Observation{Objects: make(map[plan.Key]plan.Observed, len(interests))},
		objects:     map[plan.Key]*sight{},
		missing:     map[schema.GroupKind]bool{},
		versions:    map[schema.GroupKind]string{},
	}
	var lists []directList
	members := map[directList]map[string]*Interest{}
	for i := range interests {
		in := &interests[i]
		list := directList{gvk: in.Key.GroupKind().WithVersion(in.Version), namespace: in.Key.Namespace}
		if members[list] == nil {
			members[list] = map[string]*Interest{}
			lists = append(lists, list)
		}
		members[list][in.Key.Name] = in
	}
	for _, list := range lists {
		if err := o.list(ctx, list, members[list]); err != nil {
			return nil, err
		}
	}
	for i := range interests {
		if err := o.lookFor(ctx, &interests[i]); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[c.Watcher] = &seen{uid: c.UID, objects: o.objects}
	return o.observation, nil
}

// list reads what the component owns of a type in a namespace.
func (o *direct) list(ctx context.Context, at directList, wanted map[string]*Interest) error {
	gk := at.gvk.GroupKind()
	if o.missing[gk] {
		return nil
	}
	token := ""
	for {
		var list *unstructured.UnstructuredList
		err := o.inVersion(ctx, at.gvk, func(gvk schema.GroupVersionKind) error {
			list = &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			return o.client.List(ctx, list, client.InNamespace(at.namespace),
				client.MatchingLabels{o.lens.label: o.component.OwnerID}, client.Limit(readPage), client.Continue(token))
		})
		switch found := diagnose(err); {
		case err == nil:
		case found == forbidden, o.missing[gk]:
			return nil
		default:
			return fmt.Errorf("cannot list objects of kind %s: %w", at.gvk.Kind, err)
		}
		for i := range list.Items {
			if in := wanted[list.Items[i].GetName()]; in != nil {
				o.observation.Objects[in.Key] = o.shows(o.component, in, &list.Items[i], o.objects)
			}
		}
		if token = list.GetContinue(); token == "" {
			return nil
		}
	}
}

// lookFor finds out about an object that no list has shown.
func (o *direct) lookFor(ctx context.Context, in *Interest) error {
	if _, known := o.observation.Objects[in.Key]; known {
		return nil
	}
	gk := in.Key.GroupKind()
	switch {
	case o.missing[gk]:
		o.observation.Objects[in.Key] = plan.Observed{Presence: plan.Absent, TypeMissing: true}
		return nil
	case in.Fresh && in.UID == "":
		o.observation.Objects[in.Key] = plan.Observed{Presence: plan.Absent}
		return nil
	}
	var object *unstructured.Unstructured
	err := o.inVersion(ctx, gk.WithVersion(in.Version), func(gvk schema.GroupVersionKind) error {
		object = &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		return o.client.Get(ctx, types.NamespacedName{Namespace: in.Key.Namespace, Name: in.Key.Name}, object)
	})
	switch found := diagnose(err); {
	case err == nil:
		o.observation.Objects[in.Key] = o.shows(o.component, in, object, o.objects)
	case served.IsNotFound(err):
		o.observation.Objects[in.Key] = plan.Observed{Presence: plan.Absent}
	case o.missing[gk]:
		o.observation.Objects[in.Key] = plan.Observed{Presence: plan.Absent, TypeMissing: true}
	case found == forbidden:
		o.observation.Objects[in.Key] = plan.Observed{}
		if o.observation.Polled == nil {
			o.observation.Polled = map[schema.GroupKind]string{}
		}
		o.observation.Polled[gk] = found.reading()
	default:
		return fmt.Errorf("cannot read %s: %w", in.Key, err)
	}
	return nil
}

// inVersion makes a request in a version, or, if the type is not served in that, in one in which it is. A type that is served in none
// is missing from then on.
func (o *direct) inVersion(ctx context.Context, gvk schema.GroupVersionKind, request func(gvk schema.GroupVersionKind) error) error {
	gk := gvk.GroupKind()
	err := request(gk.WithVersion(cmp.Or(o.versions[gk], gvk.Version)))
	if !served.IsNotServed(err) {
		return err
	}
	mapper := o.client.RESTMapper()
	var unknown *meta.NoKindMatchError
	if _, asks := mapper.(served.Discoverer); !asks && meta.IsNoMatchError(err) && !errors.As(err, &unknown) {
		// An API could not be asked for what it serves, and the mapper would not tell.
		return err
	}
	version, ok, found := served.Version(ctx, mapper, gk)
	switch {
	case found != nil:
		return found
	case !ok:
		o.missing[gk] = true
		return err
	}
	o.versions[gk] = version
	return request(gk.WithVersion(version))
}

// shows returns what an object shows, and notes it.
func (d *Direct) shows(c Component, in *Interest, object *unstructured.Unstructured, into map[plan.Key]*sight) plan.Observed {
	shown := d.lens.object(object, confidential(in.Key))
	into[in.Key] = shown
	o := shown.observed(c.OwnerID, c.Owner)
	o.Fields = shown.fieldsDigest(in.Settings.IgnoreFields)
	if in.Confidential {
		o.Content = compareContent(in.Data, in.Settings.IgnoreFields, shown.data)
	}
	switch {
	case !in.Readiness:
	case shown.terminating:
		o.Status = apis.ObjectTerminating
	case readiness.Static(in.Key.GroupKind(), in.Settings):
		o.Status = apis.ObjectCurrent
	case d.evaluate != nil:
		result := d.evaluate(object, in.Settings)
		o.Status, o.Message, o.Volatile = result.Status, result.Message, result.Volatile
	}
	return o
}

// Wrote implements [Observer].
func (d *Direct) Wrote(c Component, interest Interest, object *unstructured.Unstructured) plan.Observed {
	if object == nil {
		return plan.Observed{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.seen[c.Watcher]
	if s == nil || s.uid != c.UID {
		s = &seen{uid: c.UID, objects: map[plan.Key]*sight{}}
		d.seen[c.Watcher] = s
	}
	return d.shows(c, &interest, object, s.objects)
}

// Deleted implements [Observer].
func (d *Direct) Deleted(c Component, key plan.Key, uid types.UID, gone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.seen[c.Watcher]
	if s == nil || s.uid != c.UID || !gone {
		return
	}
	if shown := s.objects[key]; shown != nil && (uid == "" || shown.uid == uid) {
		delete(s.objects, key)
	}
}

// Managed implements [Observer].
func (d *Direct) Managed(c Component, key plan.Key) []metav1.ManagedFieldsEntry {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.seen[c.Watcher]
	if s == nil || s.uid != c.UID {
		return nil
	}
	return s.objects[key].entries(d.lens.manager)
}

// Pause implements [Observer]. There is nothing to pause.
func (d *Direct) Pause(Component) (resume func()) { return func() {} }

// Release implements [Observer].
func (d *Direct) Release(c Component) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.seen[c.Watcher]; s != nil && (c.UID == "" || s.uid == c.UID) {
		delete(d.seen, c.Watcher)
	}
}

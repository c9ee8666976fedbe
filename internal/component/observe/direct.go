package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/served"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Direct is an [Observer] that watches nothing and reads each time. It makes one list for each type and namespace, of
// the objects with the owner label of the component. It reads by name what is not in a list but may exist all the same,
// and types that may not be listed. It makes requests one after the other, in the order of the interests, and never
// wakes a component.
//
// Observe returns an error of a request that says nothing about the objects.
type Direct struct {
	client    client.Client
	extractor extractor
	evaluate  Evaluate

	mu sync.Mutex
	// lastSeen are the objects of each component as they were read or written last.
	lastSeen map[componentKey]*lastSeen
}

type lastSeen struct {
	uid     types.UID
	objects map[plan.Key]*snapshot
}

var _ Observer = (*Direct)(nil)

// NewDirect returns an observer that reads with c, which should not be cached. evaluate may be nil.
func NewDirect(c client.Client, prefix, manager string, evaluate Evaluate) *Direct {
	seen := map[componentKey]*lastSeen{}
	return &Direct{client: c, extractor: newExtractor(prefix, manager), evaluate: evaluate, lastSeen: seen}
}

// directRead is one Observe.
type directRead struct {
	*Direct
	component   *Component
	observation *Observation
	seen        *lastSeen
	// missing are types that are not served.
	missing map[schema.GroupKind]bool
	// versions are the versions of types that are not served in the version that was asked for first.
	versions map[schema.GroupKind]string
}

// directList is one list.
type directList struct {
	gvk       schema.GroupVersionKind
	namespace string
}

// Observe implements [Observer].
func (d *Direct) Observe(ctx context.Context, c Component, interests []Interest) (*Observation, error) {
	r := &directRead{
		Direct:      d,
		component:   &c,
		observation: &Observation{Objects: make(map[plan.Key]plan.Observed, len(interests))},
		seen:        &lastSeen{uid: c.UID, objects: map[plan.Key]*snapshot{}},
		missing:     map[schema.GroupKind]bool{},
		versions:    map[schema.GroupKind]string{},
	}
	var lists []directList
	wanted := map[directList]map[string]*Interest{}
	for i := range interests {
		in := &interests[i]
		list := directList{gvk: in.Key.GroupKind().WithVersion(in.Version), namespace: in.Key.Namespace}
		if wanted[list] == nil {
			wanted[list] = map[string]*Interest{}
			lists = append(lists, list)
		}
		wanted[list][in.Key.Name] = in
	}
	for _, list := range lists {
		if err := r.list(ctx, list, wanted[list]); err != nil {
			return nil, fmt.Errorf("cannot list objects of kind %s: %w", list.gvk.Kind, err)
		}
	}
	for i := range interests {
		in := &interests[i]
		if _, listed := r.observation.Objects[in.Key]; listed {
			continue
		}
		if err := r.get(ctx, in); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", in.Key, err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastSeen[c.key()] = r.seen
	return r.observation, nil
}

// list reads what the component owns of a type in a namespace.
func (r *directRead) list(ctx context.Context, of directList, wanted map[string]*Interest) error {
	gk := of.gvk.GroupKind()
	for token := ""; !r.missing[gk]; {
		var list *unstructured.UnstructuredList
		err := r.request(ctx, of.gvk, func(ctx context.Context, gvk schema.GroupVersionKind) (err error) {
			list, err = listPage(ctx, r.client, gvk, of.namespace,
				client.MatchingLabels{r.extractor.label: r.component.OwnerID}, client.Continue(token))
			return err
		})
		if err != nil {
			if classify(err).refused() || r.missing[gk] {
				return nil
			}
			return err
		}
		for i := range list.Items {
			if in := wanted[list.Items[i].GetName()]; in != nil {
				r.observation.Objects[in.Key] = r.observed(r.component, in, &list.Items[i], r.seen)
			}
		}
		if token = list.GetContinue(); token == "" {
			return nil
		}
	}
	return nil
}

// get finds out about an object that no list has shown.
func (r *directRead) get(ctx context.Context, in *Interest) error {
	gk := in.Key.GroupKind()
	absent := plan.Observed{Presence: plan.Absent, TypeMissing: r.missing[gk]}
	if absent.TypeMissing || in.Fresh && in.UID == "" {
		r.observation.Objects[in.Key] = absent
		return nil
	}
	gvk, name := gk.WithVersion(in.Version), types.NamespacedName{Namespace: in.Key.Namespace, Name: in.Key.Name}
	var object *unstructured.Unstructured
	err := r.request(ctx, gvk, func(ctx context.Context, gvk schema.GroupVersionKind) (err error) {
		object, err = getObject(ctx, r.client, gvk, name)
		return err
	})
	if err == nil {
		r.observation.Objects[in.Key] = r.observed(r.component, in, object, r.seen)
		return nil
	}
	switch class := classify(err); {
	case served.IsNotFound(err), r.missing[gk]:
		r.observation.Objects[in.Key] = plan.Observed{Presence: plan.Absent, TypeMissing: r.missing[gk]}
	case class.refused():
		r.observation.Objects[in.Key] = plan.Observed{Refused: true}
		r.observation.poll(gk, class.readReason())
	default:
		return err
	}
	return nil
}

// request makes a request in a version, or in the version in which the type is served. A type that is not served in any
// version is missing from then on.
func (r *directRead) request(ctx context.Context, gvk schema.GroupVersionKind, do request) error {
	gk := gvk.GroupKind()
	versions := []string{cmp.Or(r.versions[gk], gvk.Version)}
	version, err, undecided := inServedVersion(ctx, r.client.RESTMapper(), gk, versions, do)
	if undecided != nil {
		return undecided
	}
	if version != versions[0] {
		r.versions[gk] = version
	}
	r.missing[gk] = err != nil && version == "" && served.IsNotServed(err)
	return err
}

// request is a request about a type in a version of it.
type request func(ctx context.Context, gvk schema.GroupVersionKind) error

// inServedVersion makes a request about a type in the first of some versions that is served, or else in the version
// that is served now. It returns the version and the error of the last request. The version is empty if the type is not
// served in any version; undecided says why it could not be found out in which one.
func inServedVersion(
	ctx context.Context, mapper meta.RESTMapper, gk schema.GroupKind, versions []string, do request,
) (version string, err, undecided error) {
	for i := range versions {
		if version = versions[i]; slices.Contains(versions[:i], version) {
			continue
		}
		if err = do(ctx, gk.WithVersion(version)); err == nil || !served.IsNotServed(err) {
			return version, err, nil
		}
	}
	var unknown *meta.NoKindMatchError
	if _, asks := mapper.(served.Discoverer); !asks && meta.IsNoMatchError(err) && !errors.As(err, &unknown) {
		// An API could not be asked for what it serves, and the mapper would not say so.
		return version, err, err
	}
	now, ok, undecided := served.Version(ctx, mapper, gk)
	if undecided != nil {
		return version, err, undecided
	}
	if !ok {
		return "", err, nil
	}
	return now, do(ctx, gk.WithVersion(now)), nil
}

// readPage is how many objects are listed with one request.
const readPage = 500

func listPage(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, namespace string,
	opts ...client.ListOption,
) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return list, c.List(ctx, list, append(opts, client.InNamespace(namespace), client.Limit(readPage))...)
}

func getObject(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, name types.NamespacedName,
) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object, c.Get(ctx, name, object)
}

// observed returns what an object means to the component, and keeps its snapshot.
func (d *Direct) observed(c *Component, in *Interest, object *unstructured.Unstructured, seen *lastSeen) plan.Observed {
	s := d.extractor.snapshot(object)
	seen.objects[in.Key] = s
	o := s.observed(c)
	o.Fields = s.fieldsDigest(in.Settings.IgnoreFields)
	if in.Confidential {
		o.Content = compareContent(in.Data, in.Settings.IgnoreFields, s.data)
	}
	switch {
	case !in.Readiness:
	case s.terminating:
		o.Status = apis.ObjectTerminating
	case in.Static:
		o.Status = apis.ObjectCurrent
	case d.evaluate != nil:
		result := in.result(object, d.evaluate)
		o.Status, o.Message, o.Volatile = result.Status, result.Message, result.Volatile
	}
	return o
}

// of returns what was seen of the objects of a component, nil if that is nothing. The lock is held.
func (d *Direct) of(c *Component) *lastSeen {
	if seen := d.lastSeen[c.key()]; seen != nil && seen.uid == c.UID {
		return seen
	}
	return nil
}

// Wrote implements [Observer].
func (d *Direct) Wrote(c Component, interest Interest, object *unstructured.Unstructured) plan.Observed {
	if object == nil {
		return plan.Observed{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := d.of(&c)
	if seen == nil {
		seen = &lastSeen{uid: c.UID, objects: map[plan.Key]*snapshot{}}
		d.lastSeen[c.key()] = seen
	}
	return d.observed(&c, &interest, object, seen)
}

// Deleted implements [Observer].
func (d *Direct) Deleted(c Component, key plan.Key, uid types.UID, gone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if seen := d.of(&c); seen != nil && gone {
		if s := seen.objects[key]; s != nil && (uid == "" || s.uid == uid) {
			delete(seen.objects, key)
		}
	}
}

// AwaitDeleted implements [Observer]. No watch shows anything.
func (d *Direct) AwaitDeleted(context.Context, Component) bool { return false }

// WatchNames implements [Observer]. It watches nothing.
func (d *Direct) WatchNames(_ Component, keys []plan.Key) (all bool) { return len(keys) == 0 }

// Managed implements [Observer].
func (d *Direct) Managed(c Component, key plan.Key) []metav1.ManagedFieldsEntry {
	d.mu.Lock()
	defer d.mu.Unlock()
	if seen := d.of(&c); seen != nil {
		return seen.objects[key].managedFields(d.extractor.manager)
	}
	return nil
}

// Pause implements [Observer]. It does nothing, since no component is ever woken.
func (d *Direct) Pause(Component) (resume func()) { return func() {} }

// Release implements [Observer].
func (d *Direct) Release(c Component) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if seen := d.lastSeen[c.key()]; seen != nil && (c.UID == "" || seen.uid == c.UID) {
		delete(d.lastSeen, c.key())
	}
}

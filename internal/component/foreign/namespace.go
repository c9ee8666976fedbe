package foreign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/write"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// pageSize is how many objects of a namespace one request lists.
	pageSize = 500
	// countedPages is how many pages of a type are read to count the objects of others. Without such objects all are
	// read.
	countedPages = 4
	// maxOwners is how long a chain of owners may be. It may be a circle.
	maxOwners = 8
)

// followNamespace deletes a namespace if others have no objects in it. The creation of objects cannot be fenced off.
func (g *Guard) followNamespace(ctx context.Context, name string, uid types.UID, goal goal) (plan.Use, error) {
	var err error
	for range attempts {
		namespace, readErr := g.read(ctx, kinds.Namespace, name)
		switch {
		case readErr != nil || namespace == nil || uid != "" && namespace.GetUID() != uid:
			return none, readErr
		case goal == goalDelete && namespace.GetDeletionTimestamp() != nil:
			return none, nil
		}
		use, checkErr := none, error(nil)
		if !g.ignoresForeign(namespace) {
			use, checkErr = g.contents(ctx, namespace)
		}
		if checkErr != nil || use.State != plan.ForeignNone || goal != goalDelete {
			return use, checkErr
		}
		// If the namespace was given to another owner meanwhile, it has another resource version.
		only := write.VersionOf(namespace)
		if err = g.delete(ctx, kinds.Namespace, name, only); !apierrors.IsConflict(err) {
			return none, err
		}
	}
	return plan.Use{}, fmt.Errorf("the Namespace %s keeps changing: %w", name, err)
}

// contents finds out which objects others have in a namespace. It only reads the objects that were named the last time
// as long as they are there. If none was, it only asks whether what could not be read still cannot.
func (g *Guard) contents(ctx context.Context, namespace client.Object) (plan.Use, error) {
	others, err := g.others()
	if err != nil {
		return plan.Use{}, err
	}
	s := &namespaceScan{Guard: g, namespace: namespace.GetName(), others: others}
	if known, ok := g.Memory.of(namespace.GetUID()); ok && s.isUnchanged(ctx, &known) {
		return known.use, nil
	}
	found, err := s.scanAll(ctx)
	g.Memory.remember(namespace.GetUID(), found)
	return found.use, err
}

// scanAll reads the metadata of all objects in the namespace.
func (s *namespaceScan) scanAll(ctx context.Context) (blocked, error) {
	all, err := s.discover(ctx)
	if err != nil {
		return blocked{}, explain(err, "the types could not be discovered")
	}
	listed := slices.DeleteFunc(slices.Clone(all.namespaced), func(t served) bool { return neverCounts[t.GroupKind()] })
	results := make([]found, len(listed))
	workqueue.ParallelizeUntil(ctx, parallel, len(listed), func(i int) { results[i] = s.list(ctx, listed[i]) })
	if err := ctx.Err(); err != nil {
		return blocked{}, err
	}
	b := blocked{failed: all.failed}
	for i := range results {
		b.named = append(b.named, results[i].named...)
		if reason := reasonOf(results[i].err); reason != "" && b.unread == nil {
			b.unread, b.reason = &listed[i], reason
		}
	}
	b.named = b.named[:min(len(b.named), s.limit())]
	b.use, err = s.useOfNamespace(listed, results, all.failed)
	return b, err
}

// isUnchanged reports whether the objects, which were foreign, are there and still are, or else whether what could not
// be read still cannot.
func (s *namespaceScan) isUnchanged(ctx context.Context, known *blocked) bool {
	for _, object := range known.named {
		if foreign, err := s.isOwnerForeign(ctx, object, 0); err != nil || !foreign {
			return false
		}
	}
	switch {
	case len(known.named) > 0:
		return true
	case known.unread != nil:
		return reasonOf(s.list(ctx, *known.unread).err) == known.reason
	default:
		all, err := s.discover(ctx)
		return err == nil && slices.Equal(all.failed, known.failed)
	}
}

// useOfNamespace sums up what was found of the types. The failed are API groups that could not be discovered.
func (g *Guard) useOfNamespace(listed []served, results []found, failed []string) (plan.Use, error) {
	use := plan.Use{State: plan.ForeignNone}
	unread := map[string][]string{}
	var transient error
	for i, f := range results {
		use.Instances = append(use.Instances, f.names...)
		if f.more < 0 || use.More < 0 {
			use.More = -1
		} else {
			use.More += f.more
		}
		if f.err == nil {
			continue
		}
		resource := schema.GroupResource{Group: listed[i].Group, Resource: listed[i].resource}.String()
		if reason := reasonOf(f.err); reason != "" {
			unread[reason] = append(unread[reason], resource)
		} else if transient == nil {
			transient = fmt.Errorf("%s could not be listed: %w", resource, f.err)
		}
	}
	use.Reason = unreadable(unread, failed)
	switch {
	case len(use.Instances) > 0:
		use.State = plan.ForeignBlocking
		if rest := len(use.Instances) - g.limit(); rest > 0 {
			use.Instances = use.Instances[:g.limit()]
			if use.More >= 0 {
				use.More += rest
			}
		}
		return use, nil
	case transient != nil:
		return plan.Use{}, transient
	case use.Reason != "":
		use.State = plan.ForeignUnknown
	}
	return use, nil
}

// reasonOf is the stable reason of an error, empty if there is none.
func reasonOf(err error) string {
	if unknown, ok := errors.AsType[*unknownError](err); ok {
		return unknown.reason
	}
	return stableReason(err)
}

// unreadable says which types could not be listed, by reason, and which API groups could not be discovered.
func unreadable(unread map[string][]string, failed []string) string {
	var parts []string
	for reason, resources := range unread {
		parts = append(parts, message.List(resources, namedResources)+" could not be listed: "+reason)
	}
	slices.Sort(parts)
	failed = slices.DeleteFunc(slices.Clone(failed), func(group string) bool { return slices.Contains(virtual, group) })
	if len(failed) > 0 {
		parts = append(parts, "API groups could not be discovered: "+message.List(failed, namedResources))
	}
	return strings.Join(parts, "; ")
}

// namedResources is how many types a text names that could not be listed.
const namedResources = 5

// virtual are API groups whose objects are not stored.
var virtual = []string{"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"}

// neverCounts are the types whose objects do not keep a namespace. Programs that run write events and leases about
// themselves. Endpoints belong to the Service of their name, which counts.
var neverCounts = map[schema.GroupKind]bool{
	{Kind: "Event"}:                                    true,
	{Group: "events.k8s.io", Kind: "Event"}:            true,
	{Group: "coordination.k8s.io", Kind: "Lease"}:      true,
	{Kind: "Endpoints"}:                                true,
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: true,
}

// inEveryNamespace are objects that controllers put into every namespace: a ServiceAccount, and certificates of
// authorities.
var inEveryNamespace = map[plan.Key]bool{
	{Kind: "ServiceAccount", Name: "default"}:             true,
	{Kind: "ConfigMap", Name: "kube-root-ca.crt"}:         true,
	{Kind: "ConfigMap", Name: "openshift-service-ca.crt"}: true,
	{Kind: "ConfigMap", Name: "istio-ca-root-cert"}:       true,
}

// namespaceScan reads one namespace. It is safe for concurrent use.
type namespaceScan struct {
	*Guard
	namespace string
	// others selects all objects without our owner label.
	others labels.Selector
	// owners has, by UID, whether an owner is foreign.
	owners sync.Map
}

// list lists what others have of one type in the namespace. A type that is not served any more has no objects.
func (s *namespaceScan) list(ctx context.Context, t served) found {
	mapping, err := s.Client.RESTMapper().RESTMapping(t.GroupKind(), t.Version)
	switch {
	case isUnserved(err):
		return found{}
	case err != nil:
		return found{err: err}
	case mapping.Resource.Resource != t.resource:
		// The other resource would be listed in the place of this one.
		return found{err: &unknownError{reason: mapping.Resource.Resource + " are of the same kind"}}
	}
	f := found{}
	list := &metav1.PartialObjectMetadataList{}
	for page := 1; ; page++ {
		token := list.Continue
		list = &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(t.GroupVersion().WithKind(t.Kind + "List"))
		err := s.Client.List(ctx, list, client.InNamespace(s.namespace), client.Limit(pageSize), client.Continue(token),
			client.MatchingLabelsSelector{Selector: s.others})
		if err != nil {
			if !isUnserved(err) {
				f.err = err
			}
			return f
		}
		if f.err = s.count(ctx, t, list.Items, &f); f.err != nil || list.Continue == "" {
			return f
		}
		if page >= countedPages && len(f.names) > 0 {
			f.more = -1
			return f
		}
	}
}

// count adds the objects of others to f.
func (s *namespaceScan) count(ctx context.Context, t served, objects []metav1.PartialObjectMetadata, f *found) error {
	for i := range objects {
		foreign, err := s.isForeign(ctx, t.GroupKind(), &objects[i], 0)
		switch {
		case err != nil:
			return err
		case foreign && len(f.names) < s.limit():
			key := plan.Key{Kind: t.Kind, Namespace: s.namespace, Name: objects[i].Name}
			f.names = append(f.names, key.String())
			f.named = append(f.named, metav1.OwnerReference{
				APIVersion: t.GroupVersion().String(), Kind: t.Kind, Name: key.Name, UID: objects[i].UID,
			})
		case foreign:
			f.more++
		}
	}
	return nil
}

// isForeign reports whether an object belongs to others. It does not if it is ours, if it is going anyway, if each
// namespace has it, or if it goes with its owners: none of them is foreign, or left.
func (s *namespaceScan) isForeign(
	ctx context.Context, kind schema.GroupKind, object *metav1.PartialObjectMetadata, depth int,
) (bool, error) {
	switch {
	case object.DeletionTimestamp != nil, s.owns(object),
		inEveryNamespace[plan.Key{Group: kind.Group, Kind: kind.Kind, Name: object.Name}]:
		return false, nil
	}
	owners := ownersOf(kind, object)
	if len(owners) == 0 || depth >= maxOwners {
		return true, nil
	}
	for _, owner := range owners {
		if foreign, err := s.isOwnerForeign(ctx, owner, depth); foreign || err != nil {
			return foreign, err
		}
	}
	return false, nil
}

// ownersOf returns the owners of an object. A token belongs to its ServiceAccount.
func ownersOf(kind schema.GroupKind, object *metav1.PartialObjectMetadata) []metav1.OwnerReference {
	uid := object.Annotations[corev1.ServiceAccountUIDKey]
	if kind != kinds.Secret || uid == "" {
		return object.OwnerReferences
	}
	return append(slices.Clone(object.OwnerReferences), metav1.OwnerReference{
		APIVersion: "v1", Kind: "ServiceAccount", UID: types.UID(uid),
		Name: object.Annotations[corev1.ServiceAccountNameKey],
	})
}

// isOwnerForeign reports whether an owner exists and belongs to others. Each owner is read once.
func (s *namespaceScan) isOwnerForeign(ctx context.Context, ref metav1.OwnerReference, depth int) (bool, error) {
	if known, ok := s.owners.Load(ref.UID); ok {
		return known.(bool), nil
	}
	owner := &metav1.PartialObjectMetadata{}
	owner.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	kind := owner.GroupVersionKind().GroupKind()
	err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: ref.Name}, owner)
	foreign := false
	switch {
	case isUnserved(err):
	case err != nil:
		return false, explain(err, fmt.Sprintf("the owner %s %s could not be read", ref.Kind, ref.Name))
	case owner.UID == ref.UID:
		if foreign, err = s.isForeign(ctx, kind, owner, depth+1); err != nil {
			return false, err
		}
	}
	s.owners.Store(ref.UID, foreign)
	return foreign, nil
}

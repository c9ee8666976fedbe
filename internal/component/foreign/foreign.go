// Package foreign finds out whether others use the types that a component brought, and prevents the creation of more
// instances while such a type is removed. It also finds out whether others have objects in a namespace of a component.
//
// # The protocol
//
// The deletion of a CustomResourceDefinition deletes all of its instances, so it is only allowed when all of them
// belong to the component (invariant L5). A check before the DELETE is not enough: an instance that is created in
// between is lost. So creation is fenced off before the check that decides:
//
//  1. Check. If others have instances, nothing is written.
//  2. Fence. A validation rule at the root of every version's schema refuses to create instances. Instances that exist
//     can be updated and deleted, finalizers included. The same write records in an annotation that the fence exists.
//  3. Prove. An instance is created with a dry run, and has to be refused with the message of the fence: by each API
//     server, see below.
//  4. Record in the annotation for which generation of the definition the fence is proven, and when the margin is over.
//     The next call then need not prove it again, and does not depend on webhooks that are gone by then.
//  5. Until the margin is over, each call ends here: the use is [plan.ForeignFenced]. API servers that were not met
//     need the margin to see the fence, and creations that have begun need it to end, since the rules that were there
//     when they began apply to them. For a type that is a few seconds old the margin is longer: an API server
//     delays the creation of instances of such a type by two seconds.
//  6. Check again. If others have instances after all, the fence is lifted.
//  7. Delete, provided that UID and resource version have not changed since the definition was read or written last.
//
// If a call fails half-way, the next call continues or lifts the fence: all state is on the definition. The definition
// never gets a finalizer: a finalizer would keep the definition, not the instances, and would allow new instances after
// the clean-up.
//
// All types of a component go through each step together (protocol.go), so they share one margin. If the component
// goes, fences are put up for all types or none. A dry run asks admission before that whether it refuses a fence: the
// fences of the others would otherwise come and go, and users could not create instances meanwhile.
//
// # Several API servers
//
// An API server refuses instances once its watch has brought the fence. Each API server has a watch of its own, and on
// a busy machine one may be a second behind another. The Leases in kube-system tell how many API servers there are. If
// there are several, or if the Leases cannot be read, each attempt of the proof has a connection of its own, which a
// load balancer may lead to any server. The proof ends when servers of that many certificates have refused an instance,
// or when three attempts for each server were refused in a row, 12 at most; without Leases, three servers are assumed.
// A load balancer that chooses at random leads to each of two servers with 98 %, to each of three with 97 %.
//
// The margin is for servers that were not met, and for creations that had begun when the fence took effect. It is two
// seconds, and at least twice the time that the servers took that were met. It begins with the last answer: a server
// that was behind until then has only begun to write what was created before.
//
// # What is not covered
//
// A creation is written after the second check if it began before the fence took effect and takes longer than the
// margin: because its body arrives slowly, or because a webhook delays it. A margin of two seconds covers bodies that
// arrive half a second after the head. An API server gives up a request after a minute (--request-timeout) unless it is
// told otherwise, so no creation takes longer, and a margin of a minute covers them all.
//
// # The fence and other writers
//
// The versions of a definition are one atomic field for server-side apply. The writer of the fence owns them from then
// on. A forced apply of the definition by its former owner takes them back and thereby removes the fence. So a
// definition must not be applied while it is being removed; and an apply is another way to lift the fence.
//
// Some definitions stay without another apply, because they are written only once or are orphaned. Callers
// that keep or orphan a definition must check [Fenced] (no request) and call [Guard.Lift].
//
// # Namespaces
//
// The deletion of a namespace deletes all objects in it, so it is only allowed when none of them is foreign. An
// object in it is foreign unless
//
//   - it has the owner label of the component,
//   - it is being deleted already,
//   - it has owner references, and none of the owners that exist is foreign, so that it goes with them: the
//     Pods of a Deployment, for example,
//   - a controller puts it into every namespace: the ServiceAccount default, and the ConfigMap kube-root-ca.crt,
//   - its type never counts: events, leases, Endpoints and EndpointSlices.
//
// An object that the programs of the component create without an owner reference counts, such as a Secret with a
// generated certificate. So do the claims of a StatefulSet that keeps them, as it does by default: their data would be
// lost. So a namespace is looked at when all other objects of the component are gone that are in it. Its programs then
// create no more, and nothing that others have in it needs them.
//
// No fence is possible. A check right before the DELETE is what can be had: an object that is created in between is
// lost. The precondition of the DELETE only prevents that a namespace is deleted that was changed meanwhile.
//
// Only metadata is read. A type that cannot be listed blocks, since others may have objects of it. An API that
// does not answer would keep the namespace from going anyway. So the right to list all types is needed, which the role
// has that is derived from the tree. Nothing less tells what is in a namespace: a deletion with a dry run does not look
// at it, the conditions of the namespace tell what is left when it is going already, and a ResourceQuota counts objects
// late, and does not tell whose they are.
//
// # What it costs
//
// A check takes two requests: one reads the definition, one lists instances. A fence takes five or more: a dry run and
// the write of the fence, one or more creations with a dry run, the record of the proof, and a list. A deletion takes
// six more or, if the fence was proven before, three. While a margin runs, a call reads the definition, and no more.
// The Leases are listed once for all types. A check by pattern takes a discovery of the cluster, once for all patterns,
// and one list for each type that matches. A check of a namespace takes the same discovery, a read of the namespace,
// one list for each namespaced type, another for each 500 objects more, and a read of each owner that objects refer to;
// a deletion takes one request more. As long as the objects that were named are there, the next check takes a read of
// the namespace and of each of them. If none was named, it takes the list of a type that could not be listed, or the
// discovery if that failed.
package foreign

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	defaultMargin       = 2 * time.Second
	defaultLimit        = 3
	defaultProofTimeout = 30 * time.Second
)

// Guard protects the instances that others have of types, and their objects in namespaces. It is made for one request,
// and is safe for concurrent use.
type Guard struct {
	// Client reads and writes past any cache, with the identity of the component.
	Client client.Client
	// Fresh makes a client like Client whose requests have a connection each, so that they reach several API servers
	// where there are several. Optional: without it, the fence is proven through Client only.
	Fresh func() (client.Client, error)
	// Discovery finds out which types there are.
	Discovery discovery.DiscoveryInterface
	// OwnerLabel and OwnerID select the objects of the component itself. They are part of the message of the fence.
	OwnerLabel, OwnerID string
	// FormerOwnerID is the label on objects of the component that were written before its owner had a cluster; empty
	// if there are none.
	FormerOwnerID string
	// FieldManager is the field manager of the component. The fence is written as FieldManager with "-fence" appended.
	FieldManager string
	// Margin is the least time between the proof of a fence and the second check. It is longer if an API server took
	// more than half of it to refuse an instance. Default: 2 s. A negative margin stands for none.
	Margin time.Duration
	// Limit is how many foreign instances are named. Default: 3.
	Limit int
	// ProofTimeout is how long the guard tries to prove a fence. Default: 30 s.
	ProofTimeout time.Duration

	// Memory spares reads of namespaces that stay, and has the proofs that admission refuses to record. Optional:
	// without it, such a fence is proven, and its margin begins, with each call.
	Memory *Memory

	mu sync.Mutex
	// discovered and servers are kept for the lifetime of the Guard.
	discovered *discovered
	servers    *apiServers
	// definitions are those that this request has read or written last.
	definitions map[string]*definition
}

// Target is an object that defines types.
type Target struct {
	Key plan.Key
	// UID is that of the object. Without a UID, any object of the name is meant.
	UID types.UID
}

// Outcome is what was found out about a [Target].
type Outcome struct {
	Use plan.Use
	// Object is the object as the last write left it; nil if it was not written.
	Object *unstructured.Unstructured
	Err    error
}

// Check finds out who uses the types that the CustomResourceDefinition key defines, or who has objects in the Namespace
// key. It writes nothing, except that the fence of a type in use is lifted.
//
// The use is ForeignNone if the object is gone, or if it says that foreign instances do not matter: by the annotation
// foreign-instances, which people can set while the component is being deleted. The use is ForeignUnknown, with a
// stable reason, if the cluster does not answer the question, and ForeignFenced while the margin of a fence runs that
// an earlier call has put up. An error may be gone the next time.
func (g *Guard) Check(ctx context.Context, key plan.Key) (plan.Use, error) {
	outcome := g.follow(ctx, goalCheck, Target{Key: key})[0]
	return outcome.Use, outcome.Err
}

// Fence fences off the creation of instances of all types of the CustomResourceDefinitions with these keys, proves the
// fences, and checks again. It fences off all or none: if a fence is refused or has no effect, or if others have
// instances, all fences are lifted. The use is then ForeignUnknown or ForeignBlocking for the types at fault, and
// ForeignNone for the others. A type whose margin runs is ForeignFenced: call again when it is over. The caller has
// checked the types before. A Namespace is only checked again.
//
// With dryRun, it only finds out whether a fence would be refused. Admission decides, so this takes a request for each
// type. Nothing is written then.
//
// An error may be gone the next time; a fence may then be left behind, which the next call finds. A definition that is
// being deleted already is only checked.
func (g *Guard) Fence(ctx context.Context, keys []plan.Key, dryRun bool) []Outcome {
	targets := make([]Target, len(keys))
	for i, key := range keys {
		targets[i].Key = key
	}
	if dryRun {
		return g.follow(ctx, goalDryRun, targets...)
	}
	return g.follow(ctx, goalFence, targets...)
}

// CheckPattern finds out who uses the types that match pattern. It names at most one instance of each type. The types
// are discovered once for all patterns; a part of the cluster that cannot be discovered matters only if the pattern may
// match it.
func (g *Guard) CheckPattern(ctx context.Context, pattern plan.Pattern) (plan.Use, error) {
	return unknownUse(g.checkPattern(ctx, pattern))
}

// Delete deletes the objects with these keys and UIDs. A CustomResourceDefinition goes by the whole protocol: check,
// fence, prove, check again, delete. A Namespace is checked and deleted. The use is ForeignNone if the object was
// deleted, or is gone. An object of another UID is not touched, and counts as gone. Instances of the component itself
// that are left are deleted along with their definition.
//
// A definition with the use ForeignFenced keeps its fence: call again when the margin is over. One with any other use
// was not deleted and has no fence. It does not concern the others.
func (g *Guard) Delete(ctx context.Context, targets []Target) []Outcome {
	outcomes := make([]Outcome, len(targets))
	var known []Target
	var positions []int
	for i, t := range targets {
		if t.UID == "" {
			outcomes[i].Err = fmt.Errorf("%s: cannot be deleted without a UID", t.Key)
			continue
		}
		known, positions = append(known, t), append(positions, i)
	}
	for i, outcome := range g.follow(ctx, goalDelete, known...) {
		outcomes[positions[i]] = outcome
	}
	return outcomes
}

// Lift removes the fence from the CustomResourceDefinition key, if it has one of ours, and the annotation about it. A
// definition that is being deleted keeps its fence. It makes no request if this request has read the definition
// already, and has seen no fence.
func (g *Guard) Lift(ctx context.Context, key plan.Key) error {
	if key.GroupKind() != kinds.CustomResourceDefinition {
		return errNoTypes(key)
	}
	d, err := g.known(key.Name), error(nil)
	if d == nil {
		d, err = g.readDefinition(ctx, key.Name)
	}
	if err != nil || d == nil {
		return err
	}
	_, err = g.lift(ctx, d, "")
	return err
}

func errNoTypes(key plan.Key) error { return fmt.Errorf("%s: defines no types", key) }

// Fenced reports whether the object key, whose metadata are given, says that it has a fence of this guard. It makes no
// request.
func (g *Guard) Fenced(key plan.Key, object metav1.Object) bool {
	return key.GroupKind() == kinds.CustomResourceDefinition && Fenced(object, g.annotation())
}

// AnnotationFence is the name of the annotation that is written with a fence. Its prefix is the one of the owner label.
const AnnotationFence = generator.AnnotationFence

// Fenced reports whether a CustomResourceDefinition has the fence of a [Guard], as the annotation with that key says.
// An apply that removes the fence may leave the annotation, which [Guard.Lift] removes.
func Fenced(object metav1.Object, annotation string) bool {
	state, _ := recordedState(object, annotation)
	return state == stateFenced || state == stateProven
}

// IgnoresForeign reports whether a CustomResourceDefinition with these annotations in the cluster says that foreign
// instances do not matter: by the annotation with that key or, if there is none, by the one with the shared prefix.
func IgnoresForeign(annotations map[string]string, key string) bool {
	value, ok := annotations[key]
	if !ok {
		value = annotations[generator.SharedPrefix+"/"+generator.AnnotationForeignInstances]
	}
	return value != "" && strings.EqualFold(strings.TrimSpace(value), "ignore")
}

func (g *Guard) limit() int { return cmp.Or(g.Limit, defaultLimit) }

// known returns what this request has read or written last of a definition; nil if it has not, or if it was gone.
func (g *Guard) known(name string) *definition {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.definitions[name]
}

func (g *Guard) remember(d *definition) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.definitions == nil {
		g.definitions = map[string]*definition{}
	}
	g.definitions[d.Name] = d
}

func (g *Guard) forget(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.definitions, name)
}

func (g *Guard) margin() time.Duration { return max(cmp.Or(g.Margin, defaultMargin), 0) }

// manager is the field manager of the fence and the annotation.
func (g *Guard) manager() client.FieldOwner { return client.FieldOwner(g.FieldManager + "-fence") }

// prefix is the prefix of the annotations of the component.
func (g *Guard) prefix() string {
	prefix, _, _ := strings.Cut(g.OwnerLabel, "/")
	return prefix
}

// annotation is the key of the annotation about the fence.
func (g *Guard) annotation() string { return g.prefix() + "/" + AnnotationFence }

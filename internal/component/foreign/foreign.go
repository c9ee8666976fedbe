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
//  3. Prove. An instance is created with a dry run, and has to be refused with the message of the fence.
//  4. Wait for the margin. Other API servers need it to see the fence, and creations that have begun need it to end,
//     since the rules that were there when they began apply to them. For a type that is a few seconds old the margin is
//     longer: an API server delays the creation of instances of such a type by two seconds.
//  5. Record in the annotation for which generation of the definition the fence is proven. The next call then need not
//     prove it again, and does not depend on webhooks that are gone by then.
//  6. Check again. If others have instances after all, the fence is lifted.
//  7. Delete, provided that UID and resource version have not changed since step 5.
//
// If a call fails half-way, the next call continues or lifts the fence: all state is on the definition. The definition
// never gets a finalizer: a finalizer would keep the definition, not the instances, and would allow new instances after
// the clean-up.
//
// One gap is left: a webhook can delay a creation that began before the fence took effect for longer than the margin.
// Its instance is written after the second check.
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
// The deletion of a namespace deletes all objects in it, so it is only allowed when none of them is somebody else's. An
// object in it is somebody else's unless
//
//   - it has the owner label of the component,
//   - it is being deleted already,
//   - it has owner references, and none of the owners that exist is somebody else's, so that it goes with them: the
//     Pods of a Deployment, for example,
//   - a controller puts it into every namespace: the ServiceAccount default, and the ConfigMap kube-root-ca.crt,
//   - its type never counts: events, leases, Endpoints and EndpointSlices.
//
// What the programs of the component create without an owner reference counts, such as a Secret with a generated
// certificate. So do the claims of a StatefulSet that keeps them, as it does by default: their data would be lost. So a
// namespace is looked at when all other objects of the component are gone that are in it. Its programs then create no
// more, and nothing that others have in it needs them.
//
// No fence is possible. A check right before the DELETE is what can be had: an object that is created in between is
// lost. The precondition of the DELETE only prevents that a namespace is deleted that was changed meanwhile.
//
// Only metadata is read. A type that cannot be listed blocks, since somebody else may have objects of it. An API that
// does not answer would keep the namespace from going anyway.
//
// # What it costs
//
// A check takes two requests: one reads the definition, one lists instances. A check with a fence takes six or more: it
// writes the fence, creates an instance with a dry run until that is refused, records the proof and lists again. A
// deletion takes one request more; it takes three if the fence was proven before. A check by pattern takes a discovery
// of the cluster, once for all patterns, and one list for each type that matches. A check of a namespace takes the same
// discovery, a read of the namespace, one list for each namespaced type, another for each 500 objects more, and a read
// of each owner that objects refer to; a deletion takes one request more. As long as the objects that were named are
// there, the next check takes a read of the namespace and of each of them.
package foreign

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	defaultMargin       = 100 * time.Millisecond
	defaultLimit        = 3
	defaultProofTimeout = 5 * time.Second
)

// Guard protects the instances that others have of types, and their objects in namespaces. It is made for one request, and is safe for concurrent use.
type Guard struct {
	// Client reads and writes past any cache, with the identity of the component.
	Client client.Client
	// Discovery finds out which types there are.
	Discovery discovery.DiscoveryInterface
	// OwnerLabel and OwnerID select the objects of the component itself. They are part of the message of the fence.
	OwnerLabel, OwnerID string
	// FieldManager is the field manager of the component. The fence is written as FieldManager with "-fence" appended.
	FieldManager string
	// Margin is the time between fence and second check, for other API servers to see the fence. Default: 100 ms. A
	// negative margin stands for none.
	Margin time.Duration
	// Limit is how many foreign instances are named. Default: 3.
	Limit int
	// ProofTimeout is how long the guard tries to prove a fence. Default: 5 s.
	ProofTimeout time.Duration

	// Memory spares reads of namespaces that stay. Optional.
	Memory *Memory

	mu sync.Mutex
	// discovered is kept for the lifetime of the Guard.
	discovered *discovered
}

// goal is how far the protocol is followed.
type goal int

const (
	goalCheck goal = iota
	goalFence
	goalDelete
)

// Check finds out who uses the types that the CustomResourceDefinition or APIService key defines, or who has objects in
// the Namespace key. With fence, it also fences off creation, proves the fence, and checks again; a fence without
// effect is lifted.
//
// The use is ForeignNone if the object is gone. It is ForeignUnknown, with a stable reason, if the cluster does not
// answer the question, or if creation cannot be fenced off. An error may be gone the next time; a fence may then be
// left behind, which the next call finds. Types of an APIService and namespaces cannot be fenced off, so fence has no
// effect on them.
//
// A definition that is being deleted already is only checked.
func (g *Guard) Check(ctx context.Context, key plan.Key, fence bool) (plan.Use, error) {
	if fence {
		return g.follow(ctx, key, "", goalFence)
	}
	return g.follow(ctx, key, "", goalCheck)
}

// CheckPattern finds out who uses the types that match pattern. It names at most one instance of each type. The types
// are discovered once for all patterns; a part of the cluster that cannot be discovered matters only if the pattern may
// match it.
func (g *Guard) CheckPattern(ctx context.Context, pattern plan.Pattern) (plan.Use, error) {
	return unknownUse(g.checkPattern(ctx, pattern))
}

// Delete deletes the object that defines types, provided that it has that UID, by the whole protocol: check, fence,
// prove, check again, delete. A Namespace is checked and deleted. The use is ForeignNone if the object was deleted, or
// is gone. An object of another UID is not touched, and counts as gone. Instances of the component itself that are left
// are deleted along with their definition.
//
// With any other use, nothing was deleted and no fence is left.
func (g *Guard) Delete(ctx context.Context, key plan.Key, uid types.UID) (plan.Use, error) {
	if uid == "" {
		return plan.Use{}, fmt.Errorf("%s: cannot be deleted without a UID", key)
	}
	return g.follow(ctx, key, uid, goalDelete)
}

// follow follows the protocol as far as the goal says. Without a UID it means any object of that name.
func (g *Guard) follow(ctx context.Context, key plan.Key, uid types.UID, goal goal) (plan.Use, error) {
	switch key.GroupKind() {
	case kinds.CustomResourceDefinition:
		return unknownUse(g.followDefinition(ctx, key.Name, uid, goal))
	case kinds.APIService:
		return unknownUse(g.followAPIService(ctx, key.Name, uid, goal))
	case kinds.Namespace:
		return unknownUse(g.followNamespace(ctx, key.Name, uid, goal))
	}
	return plan.Use{}, errNoTypes(key)
}

// Lift removes the fence from the CustomResourceDefinition key, if it has one of ours, and the annotation about it. A
// definition that is being deleted keeps its fence.
func (g *Guard) Lift(ctx context.Context, key plan.Key) error {
	if !kinds.DefinesTypes(key.GroupKind()) {
		return errNoTypes(key)
	}
	if key.GroupKind() == kinds.APIService {
		return nil
	}
	d, err := g.readDefinition(ctx, key.Name)
	if err != nil || d == nil {
		return err
	}
	return g.lift(ctx, d, "")
}

func errNoTypes(key plan.Key) error { return fmt.Errorf("%s: defines no types", key) }

// Fenced reports whether the object key, whose metadata are given, says that it has a fence of this guard. It makes no
// request.
func (g *Guard) Fenced(key plan.Key, object metav1.Object) bool {
	return key.GroupKind() == kinds.CustomResourceDefinition && Fenced(object, g.annotation())
}

// AnnotationFence is the name of the annotation that is written with a fence. Its prefix is the one of the owner label.
const AnnotationFence = "fence"

// Fenced reports whether a CustomResourceDefinition has the fence of a [Guard], as the annotation with that key says.
// An apply that removes the fence may leave the annotation, which [Guard.Lift] removes.
func Fenced(object metav1.Object, annotation string) bool {
	state, _ := recordedState(object, annotation)
	return state == stateFenced || state == stateProven
}

func (g *Guard) limit() int { return cmp.Or(g.Limit, defaultLimit) }

func (g *Guard) margin() time.Duration { return max(cmp.Or(g.Margin, defaultMargin), 0) }

// manager is the field manager of the fence and the annotation.
func (g *Guard) manager() client.FieldOwner { return client.FieldOwner(g.FieldManager + "-fence") }

// annotation is the key of the annotation about the fence.
func (g *Guard) annotation() string {
	prefix, _, _ := strings.Cut(g.OwnerLabel, "/")
	return prefix + "/" + AnnotationFence
}

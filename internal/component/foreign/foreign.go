// Package foreign finds out whether others use the types that a component brought, and fences off the creation of more while
// such a type is taken away.
//
// # The protocol
//
// A CustomResourceDefinition takes all of its instances with it, so it may only be deleted when none of them is somebody else's
// (law L5). Looking before the DELETE is not enough: what is created in between is lost. So creation is fenced off before the
// look that counts:
//
//  1. look: others have instances, then nothing is written;
//  2. fence: a validation rule at the root of every version's schema refuses to create. Instances that exist can be updated and
//     deleted, finalizers included. An annotation notes that it is there, in the same write;
//  3. prove: an instance that is only created for trial is refused with the words of the fence;
//  4. wait for the margin, for other API servers to see the fence, and for creations under way to end, which are judged by the
//     rules that were there when they began. With a type that is a few seconds old the margin is longer: an API server
//     holds up the creation of instances of such a type for two seconds;
//  5. note on the definition, in that annotation, for which generation of it the fence is proven, so that what follows need not
//     be done over, and does not depend on webhooks that are gone by then;
//  6. look again: others have instances after all, then the fence is lifted;
//  7. delete, provided that UID and resource version are still the ones of step 5.
//
// What fails half-way is found and continued, or lifted, by the next call: all there is to remember is on the definition. It
// never gets a finalizer: that would keep the definition, not the instances, and would let in new ones after the clean-up.
//
// What is left: an instance whose creation began before the fence took hold, and is written only after the second look,
// because a webhook held it up for longer than the margin.
//
// # The fence and other writers
//
// The versions of a definition are one atomic field to server-side apply. Whoever writes the fence owns them from then on, and a
// forced apply of the definition by its former owner takes them back, and the fence with them. So a definition must not
// be applied while it is being removed, and an apply is a way of its own to lift the fence.
//
// Not every definition is applied again that turns out to stay after all: what is written once, or what is let go of, is not.
// Whoever keeps or leaves one asks [Fenced], which takes no request, and [Guard.Lift] then.
package foreign

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	defaultMargin         = 100 * time.Millisecond
	defaultLimit          = 3
	defaultProofTimeout   = 5 * time.Second
	defaultProbeNamespace = metav1.NamespaceDefault
)

var (
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	apiServiceKind = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
)

// Guard protects the instances that others have of types. It is made for one request, and is safe for concurrent use.
type Guard struct {
	// Client reads and writes past any cache, with the identity of the component.
	Client client.Client
	// Discovery tells which types there are.
	Discovery discovery.DiscoveryInterface
	// OwnerLabel and OwnerID select the objects of the component itself.
	OwnerLabel, OwnerID string
	// Owner names the component to those who are refused to create an instance. Optional; the default is made of OwnerLabel and
	// OwnerID.
	Owner string
	// FieldManager is the one that the definitions are written as. The fence is written as FieldManager with "-fence" appended.
	FieldManager string
	// Margin is waited between fence and second check, for other API servers to see the fence. Default: 100 ms. None if negative.
	Margin time.Duration
	// Limit is how many foreign instances are named. Default: 3.
	Limit int
	// ProofTimeout is how long it is tried to prove a fence. Default: 5 s.
	ProofTimeout time.Duration
	// ProbeNamespace is where namespaced instances are created for trial; it has to exist. Default: "default".
	ProbeNamespace string

	mu sync.Mutex
	// discovered is kept for the lifetime of the Guard.
	discovered *discovered
}

// Check finds out who uses the types that the CustomResourceDefinition or APIService key defines. With fence, it also fences
// off creation, proves the fence, and checks again; a fence that turns out to be in vain is lifted.
//
// The use is ForeignNone if the object is gone. It is ForeignUnknown, with a stable reason, if the cluster does not let one find
// out, or if creation can not be fenced off. An error is something that may be gone the next time; a fence may then be left
// behind, which the next call finds. Types of an APIService cannot be fenced off, with fence or without.
//
// A definition that is being deleted already is only looked at.
func (g *Guard) Check(ctx context.Context, key plan.Key, fence bool) (plan.Use, error) {
	goal := look
	if fence {
		goal = secure
	}
	switch key.GroupKind() {
	case definitionKind:
		return settle(g.removal(key.Name, "", goal).run(ctx))
	case apiServiceKind:
		return settle(g.checkAPIService(ctx, key.Name))
	}
	return plan.Use{}, noTypes(key)
}

// CheckPattern finds out who uses the types that match pattern. One instance of a type is named at most. The types are
// discovered once for all patterns; a part of the cluster that cannot be discovered matters only if the pattern may match it.
func (g *Guard) CheckPattern(ctx context.Context, pattern plan.Pattern) (plan.Use, error) {
	return settle(g.checkPattern(ctx, pattern))
}

// Delete deletes the object that defines types, provided that it has that UID, by the whole protocol: check, fence, prove, check
// again, delete. The use is ForeignNone if it was deleted, or is gone, which an object of another UID is as well: it is not
// touched. Instances of the component itself that are left are deleted along with their definition.
//
// With any other use, nothing was deleted and no fence is left.
func (g *Guard) Delete(ctx context.Context, key plan.Key, uid types.UID) (plan.Use, error) {
	if uid == "" {
		return plan.Use{}, fmt.Errorf("%s: cannot be deleted without a UID", key)
	}
	switch key.GroupKind() {
	case definitionKind:
		return settle(g.removal(key.Name, uid, remove).run(ctx))
	case apiServiceKind:
		return settle(g.deleteAPIService(ctx, key.Name, uid))
	}
	return plan.Use{}, noTypes(key)
}

// Lift takes the fence off the CustomResourceDefinition key, if it has one of ours, and the notes about it. One that is being deleted
// keeps it.
func (g *Guard) Lift(ctx context.Context, key plan.Key) error {
	switch key.GroupKind() {
	case definitionKind:
		d, err := g.readDefinition(ctx, key.Name)
		if err != nil || d == nil {
			return err
		}
		return g.lift(ctx, d, "")
	case apiServiceKind:
		return nil
	}
	return noTypes(key)
}

// Fenced reports whether the object key, whose metadata are given, says that it has a fence of this guard. It makes no request.
func (g *Guard) Fenced(key plan.Key, object metav1.Object) bool {
	prefix, _, _ := strings.Cut(g.OwnerLabel, "/")
	return key.GroupKind() == definitionKind && Fenced(object, prefix)
}

// Fenced tells whether the fence of a [Guard], whose owner label has the prefix, is on a CustomResourceDefinition, by the note that comes and
// goes with it. The note alone may be left, by an apply that took the rule off: to lift the fence takes it away.
func Fenced(object metav1.Object, prefix string) bool {
	what, _ := noteOf(object, annotationOf(prefix))
	return what == fencedNote || what == provenNote
}

func noTypes(key plan.Key) error {
	return fmt.Errorf("%s: defines no types", key)
}

func (g *Guard) limit() int {
	if g.Limit > 0 {
		return g.Limit
	}
	return defaultLimit
}

func (g *Guard) margin() time.Duration {
	if g.Margin == 0 {
		return defaultMargin
	}
	return max(g.Margin, 0)
}

func (g *Guard) proofTimeout() time.Duration {
	if g.ProofTimeout > 0 {
		return g.ProofTimeout
	}
	return defaultProofTimeout
}

func (g *Guard) probeNamespace() string {
	if g.ProbeNamespace != "" {
		return g.ProbeNamespace
	}
	return defaultProbeNamespace
}

// manager is the field manager of fence and notes.
func (g *Guard) manager() client.FieldOwner {
	return client.FieldOwner(g.FieldManager + "-fence")
}

// annotation is the key of the note about the fence.
func (g *Guard) annotation() string {
	prefix, _, found := strings.Cut(g.OwnerLabel, "/")
	if !found {
		return "fence"
	}
	return annotationOf(prefix)
}

func annotationOf(prefix string) string {
	return prefix + "/fence"
}

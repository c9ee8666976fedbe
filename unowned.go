package espalier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownerLabel is the key of the label of objects without an owner reference, see [Switches.Unowned]. Its value is a
// digest of the API group, the kind, the namespace, the name and the UID of the resource.
const ownerLabel = "espalier.dev/dependent-of"

// ownerDigest identifies a resource in a label.
func ownerDigest(kind schema.GroupKind, resource client.Object) string {
	text := strings.Join([]string{
		kind.Group, kind.Kind, resource.GetNamespace(), resource.GetName(), string(resource.GetUID()),
	}, "\n")
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// identify notes the kind of the resource, and returns the value of ownerLabel.
func (s *Switches[Self, T, CT]) identify(ctx context.Context, resource client.Object) (string, error) {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return "", err
	}
	gvk, err := config.GroupVersionKindFor(resource)
	if err != nil {
		return "", err
	}
	kind := gvk.GroupKind()
	s.owner.Store(&kind)
	return ownerDigest(kind, resource), nil
}

// found says how the objects are found: whether they have no owner reference, by which options they are listed, and
// which of them are the resource's. Nil functions stand for those of the literal. Free objects are not the resource's
// by a reference.
func (s *Switches[Self, T, CT]) found(free bool) (
	unowned bool, options func(context.Context, T) []client.ListOption, ours func(T, CT) bool,
) {
	switch {
	case free:
		return true, s.ownedBy, s.isOurs
	case s.has(unwatched):
		return true, s.noOptions, s.isControlled
	}
	return false, nil, nil
}

// ownedBy returns options to list the unowned objects of the resource of the request.
func (s *Switches[Self, T, CT]) ownedBy(ctx context.Context, _ T) []client.ListOption {
	return []client.ListOption{client.MatchingLabels{ownerLabel: passOf[CT](ctx).owner}}
}

// isOurs reports whether an unowned object is the resource's.
func (s *Switches[Self, T, CT]) isOurs(resource T, object CT) bool {
	kind := s.owner.Load()
	return kind != nil && object.GetLabels()[ownerLabel] == ownerDigest(*kind, resource)
}

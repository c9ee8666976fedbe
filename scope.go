package espalier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync/atomic"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/api/validate/content"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// AnyNamespace says that the objects may be in other namespaces than the resource. They have no owner reference, and
// are deleted all the same: the resource has a finalizer before the first object exists, and until the last one is
// gone. They are found again by the label espalier.dev/dependent-of, which identifies the resource, and by that of the
// node. This is always so for objects of a cluster-scoped type, if the resource has a namespace.
func (s *Switches[Self, T, CT]) AnyNamespace() Self { return s.with(anyNamespace, false) }

// scope is what is known of the scopes of two types. Nil stands for not known.
type scope struct {
	objectsNamespaced, resourceNamespaced atomic.Pointer[bool]
}

// learnScope notes the scopes of the types, as far as the REST mapper knows them. Kinds of Kubernetes itself are known
// without it.
func (s *Switches[Self, T, CT]) learnScope(ctx context.Context, resource client.Object) {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil || config.Client == nil {
		return
	}
	learn := func(object client.Object, known *atomic.Pointer[bool]) {
		if known.Load() != nil || gotype.IsNil(object) {
			return
		}
		if namespaced, err := config.IsObjectNamespaced(object); err == nil {
			known.Store(&namespaced)
		}
	}
	learn(s.object, &s.scope.objectsNamespaced)
	learn(resource, &s.scope.resourceNamespaced)
}

// mayBeFinalized reports whether the resource may be unable to own the objects.
func (s *Switches[Self, T, CT]) mayBeFinalized() bool {
	objects := s.scope.objectsNamespaced.Load()
	return !s.has(unowned) && !s.has(unwatched) && (s.has(anyNamespace) || objects == nil || !*objects)
}

// used returns the engine that is used as far as is known.
func (s *Switches[Self, T, CT]) used() engine[T] {
	if s.isFinalized() {
		return s.finalized
	}
	return s.engine
}

// builtInScope notes the scope of the objects if their kind is one of Kubernetes itself.
func (s *Switches[Self, T, CT]) builtInScope() {
	found, _, err := clientgoscheme.Scheme.ObjectKinds(s.object)
	if err != nil || len(found) == 0 || !clientgoscheme.Scheme.Recognizes(found[0]) {
		return
	}
	s.scope.objectsNamespaced.Store(new(!kinds.IsClusterScoped(found[0].GroupKind())))
}

// isFinalized reports whether the resource cannot own the objects, so that a finalizer has them deleted.
func (s *Switches[Self, T, CT]) isFinalized() bool {
	if s.has(unowned) || s.has(unwatched) || s.has(readOnly) {
		return false
	}
	objects, resource := s.scope.objectsNamespaced.Load(), s.scope.resourceNamespaced.Load()
	return s.has(anyNamespace) || objects != nil && !*objects && (resource == nil || *resource)
}

// engineFor returns the engine for a resource. The finalizer on a resource says that there may be objects that it
// cannot own, also while the scope of their type is not known, because the type is not served.
func (s *Switches[Self, T, CT]) engineFor(resource T) (_ engine[T], finalized bool) {
	finalized = s.isFinalized() || s.finalized != nil && controllerutil.ContainsFinalizer(resource, s.finalizer())
	if finalized {
		return s.finalized, true
	}
	return s.engine, false
}

// mustBeFinalized reports whether an object is of a cluster-scoped type, which was not known before.
func (s *Switches[Self, T, CT]) mustBeFinalized(ctx context.Context, resource T, object CT) bool {
	never := s.has(unowned) || s.has(unwatched) || s.has(readOnly)
	if never || s.scope.objectsNamespaced.Load() != nil || object.GetNamespace() != "" {
		return false
	}
	s.learnScope(ctx, resource)
	return s.isFinalized()
}

// finalizer returns the finalizer that is on the resource while there may be objects that it cannot own.
func (s *Switches[Self, T, CT]) finalizer() string {
	return "espalier.dev/" + nameInKey(strings.ToLower(s.kind)+"."+s.name)
}

// nameInKey returns a name, or a digest of it, as the part of a qualified name after the slash.
func nameInKey(name string) string {
	if len(content.IsLabelValue(name)) == 0 {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

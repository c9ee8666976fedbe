package execute

import (
	"context"
	"sync"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/served"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// versions remembers, for one [Executor], in which version types are served that are not served as was recorded.
type versions struct {
	mu sync.Mutex
	of map[schema.GroupKind]version
	// doubted are types that were not where the client had found them once.
	doubted map[schema.GroupKind]bool
}

// version is the one in which a type is served; none if it is not served at all.
type version struct {
	name   string
	served bool
}

// anywhere does something about the object of an operation, in the version of the operation, or, if the type is not served in
// that any more, in one in which it is. If there is none, the object does not exist: then gone is true.
func (e *Executor) anywhere(ctx context.Context, op plan.Operation, do func(target *unstructured.Unstructured) (gone bool, err error)) (gone bool, err error) {
	target := e.target(op)
	kind := target.GroupVersionKind()
	if known, ok := e.knownVersion(kind.GroupKind()); ok && known.served && op.Action != plan.ActionRecreate {
		return do(named(op.Key, kind.GroupKind().WithVersion(known.name)))
	}
	gone, err = do(target)
	if !served.IsNotServed(err) {
		return gone, err
	}
	now, found := e.findVersion(ctx, kind.GroupKind())
	switch {
	case found != nil:
		return false, found
	case !now.served:
		return true, nil
	case op.Action == plan.ActionRecreate && now.name != kind.Version:
		// It could not be created anew.
		return false, err
	}
	return do(named(op.Key, kind.GroupKind().WithVersion(now.name)))
}

func (e *Executor) knownVersion(gk schema.GroupKind) (version, bool) {
	e.versions.mu.Lock()
	defer e.versions.mu.Unlock()
	known, ok := e.versions.of[gk]
	return known, ok
}

// findVersion asks in which version a type is served, once for all operations.
func (e *Executor) findVersion(ctx context.Context, gk schema.GroupKind) (version, error) {
	e.versions.mu.Lock()
	defer e.versions.mu.Unlock()
	if known, ok := e.versions.of[gk]; ok {
		return known, nil
	}
	name, ok, err := served.Version(ctx, e.Client.RESTMapper(), gk)
	if err != nil {
		return version{}, err
	}
	if e.versions.of == nil {
		e.versions.of = map[schema.GroupKind]version{}
	}
	e.versions.of[gk] = version{name: name, served: ok}
	return e.versions.of[gk], nil
}

// doubt lets the client forget where it found a type that is not there any more, for the next pass.
func (e *Executor) doubt(gk schema.GroupKind) {
	e.versions.mu.Lock()
	defer e.versions.mu.Unlock()
	if _, known := e.versions.of[gk]; known || e.versions.doubted[gk] {
		return
	}
	if e.versions.doubted == nil {
		e.versions.doubted = map[schema.GroupKind]bool{}
	}
	e.versions.doubted[gk] = true
	meta.MaybeResetRESTMapper(e.Client.RESTMapper())
}

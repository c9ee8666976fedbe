package execute

import (
	"context"
	"sync"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/served"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// servedVersions has the versions of types that are not served in the version that was recorded. It belongs to one
// [Executor].
type servedVersions struct {
	mu sync.Mutex
	// names are the served versions by type; the empty name stands for a type that is not served at all.
	names map[schema.GroupKind]string
	// forgotten has the types that the REST mapper was told to forget.
	forgotten sync.Map
}

// inServedVersion calls do with the object of an operation that takes it away, in the version of the operation. If the
// type is not served in that version, it calls do with the object in a version that is served. If do finds that the
// object does not exist, or if the type is not served at all, the object is gone, which is not an error.
func (e *Executor) inServedVersion(ctx context.Context, result *Result,
	do func(ctx context.Context, result *Result, target *unstructured.Unstructured) error) error {
	op, target := result.Operation, e.target(result.Operation)
	kind := target.GroupVersionKind()
	version, known := e.knownVersion(kind.GroupKind())
	known = known && version != "" && op.Action != plan.ActionRecreate
	if known {
		target = named(op.Key, kind.GroupKind().WithVersion(version))
	}
	err := do(ctx, result, target)
	if !known && served.IsNotServed(err) {
		version, failure := e.findVersion(ctx, kind.GroupKind())
		switch {
		case failure != nil:
			return failure
		case version == "":
			err = &StaleError{}
		case op.Action == plan.ActionRecreate && version != kind.Version:
			// It could not be created again.
			return err
		default:
			err = do(ctx, result, named(op.Key, kind.GroupKind().WithVersion(version)))
		}
	}
	if isStale(err) {
		result.Gone = true
		return nil
	}
	return err
}

func (e *Executor) knownVersion(gk schema.GroupKind) (version string, known bool) {
	e.versions.mu.Lock()
	defer e.versions.mu.Unlock()
	version, known = e.versions.names[gk]
	return version, known
}

// findVersion asks in which version a type is served, once for all operations. The version is empty if it is not
// served.
func (e *Executor) findVersion(ctx context.Context, gk schema.GroupKind) (string, error) {
	e.versions.mu.Lock()
	defer e.versions.mu.Unlock()
	if version, known := e.versions.names[gk]; known {
		return version, nil
	}
	version, _, err := served.Version(ctx, e.Client.RESTMapper(), gk)
	if err != nil {
		return "", err
	}
	if e.versions.names == nil {
		e.versions.names = map[schema.GroupKind]string{}
	}
	e.versions.names[gk] = version
	return version, nil
}

// forgetVersion makes the client forget in which version it found a type that was not found there now. It takes effect
// for the next request of the component.
func (e *Executor) forgetVersion(gk schema.GroupKind) {
	_, known := e.knownVersion(gk)
	if _, done := e.versions.forgotten.LoadOrStore(gk, true); !known && !done {
		meta.MaybeResetRESTMapper(e.Client.RESTMapper())
	}
}

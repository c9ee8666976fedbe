package reconcilers

import (
	"context"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pass is the state of one request of a root: what its nodes found out that others may use, and where what failed.
type pass struct {
	// memory is what the root remembers of the resource from request to request.
	memory *memory
	// stored is the resource as the API server has it, as far as is known. It may share what it refers to with the cache.
	stored client.Object
	// written is true once stored is the answer to a write of this request.
	written bool

	mu       sync.Mutex
	failures []failure
	families map[familyKey]*family
	// ownerRef refers to owner, the resource whose children were made last.
	owner    ownerIdentity
	ownerRef metav1.OwnerReference
}

// failure is an error at the node that met it first.
type failure struct {
	err    error
	path   string
	object string
	class  Class
}

// fail notes that err came up at the node of p while it dealt with object, and what may help. The first note of an error
// stays: the deepest node knows best.
func (p *pass) fail(at *position, object string, class Class, err error) {
	if p == nil || err == nil || !isComparable(err) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.failures {
		if f.err == err {
			return
		}
	}
	p.failures = append(p.failures, failure{err: err, path: at.String(), object: object, class: class})
}

// locate finds where err, or the first of the errors that it wraps or joins, came up.
func (p *pass) locate(err error) (failure, bool) {
	if p == nil || err == nil {
		return failure{}, false
	}
	if isComparable(err) {
		for _, f := range p.failures {
			if f.err == err {
				return f, true
			}
		}
	}
	for _, member := range membersOf(err) {
		if f, ok := p.locate(member); ok {
			return f, true
		}
	}
	return failure{}, false
}

// isComparable guards ==, which panics for a value that holds a slice, a map or a function, as some errors and some clients do:
// those of controller-runtime's interceptor are such.
func isComparable(v any) bool {
	return reflect.ValueOf(v).Comparable()
}

// finalized takes note of a patch of the finalizers of the resource, patched being the answer.
func (p *pass) finalized(patched client.Object) {
	if p == nil || p.stored == nil || p.stored.GetUID() != patched.GetUID() {
		return
	}
	p.stored.SetFinalizers(patched.GetFinalizers())
	p.stored.SetResourceVersion(patched.GetResourceVersion())
	p.stored.SetGeneration(patched.GetGeneration())
	p.written = true
}

// settled takes note of a write of the status of the resource, written being the answer.
func (p *pass) settled(written client.Object) {
	if p != nil {
		p.stored, p.written = written, true
	}
}

// noteFailure notes that err came up at the node of ctx while it dealt with object.
func noteFailure(ctx context.Context, object string, err error) {
	if p := scopeOf(ctx).pass; p != nil && err != nil {
		p.fail(positionOf(ctx), object, Classify(err), err)
	}
}

// noteUnlocated is noteFailure for a node that runs others: it notes err only if no node below did, as those of other
// packages do not.
func noteUnlocated(ctx context.Context, err error) {
	p := scopeOf(ctx).pass
	if p == nil || err == nil {
		return
	}
	p.mu.Lock()
	_, located := p.locate(err)
	p.mu.Unlock()
	if !located {
		noteFailure(ctx, "", err)
	}
}

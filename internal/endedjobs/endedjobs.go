// Package endedjobs carries what a feature remembers of Jobs with a time to live to the nodes that make them.
package endedjobs

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/apis"
)

// Record has the Jobs of one feature of one resource in one request.
type Record struct {
	before []apis.EndedJob

	mu   sync.Mutex
	kept []apis.EndedJob
}

// New returns a record of the Jobs that the request before has kept.
func New(before []apis.EndedJob) *Record { return &Record{before: before} }

type recordKey struct{}

// With returns a context for nodes whose Jobs the record has.
func With(ctx context.Context, r *Record) context.Context {
	return context.WithValue(ctx, recordKey{}, r)
}

// Of returns the record of ctx, or nil.
func Of(ctx context.Context) *Record {
	r, _ := ctx.Value(recordKey{}).(*Record)
	return r
}

// Find returns what was kept of a Job.
func (r *Record) Find(namespace, name string) (apis.EndedJob, bool) {
	i := slices.IndexFunc(r.before, isNamed(namespace, name))
	if i < 0 {
		return apis.EndedJob{}, false
	}
	return r.before[i], true
}

// Keep keeps a Job. It may be called concurrently.
func (r *Record) Keep(job apis.EndedJob) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = slices.DeleteFunc(r.kept, isNamed(job.Namespace, job.Name))
	r.kept = append(r.kept, job)
}

// Kept returns the Jobs that were kept, sorted. After a request that did not get to all of them, these are also those
// of the request before.
func (r *Record) Kept(partial bool) []apis.EndedJob {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.kept)
	for _, job := range r.before {
		if partial && !slices.ContainsFunc(all, isNamed(job.Namespace, job.Name)) {
			all = append(all, job)
		}
	}
	slices.SortFunc(all, func(a, b apis.EndedJob) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func isNamed(namespace, name string) func(apis.EndedJob) bool {
	return func(job apis.EndedJob) bool { return job.Namespace == namespace && job.Name == name }
}

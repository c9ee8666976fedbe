// Package journal knows the objects in a storage, and who wrote them.
package journal

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/espalier-dev/espalier/testing/internal/storage"
	"github.com/espalier-dev/espalier/testing/simulation/internal/state"
)

// Write is a write that had an effect.
type Write struct {
	At time.Time
	// Actor is who wrote, empty for the API server itself.
	Actor string
	// Subresource is that of the request, such as "status".
	Subresource string
	// Before is nil if the object was created, After if it was deleted.
	Before, After *state.Object
}

// Object returns the object after the write, or before it if it was deleted.
func (w Write) Object() *state.Object {
	if w.After == nil {
		return w.Before
	}
	return w.After
}

// Journal follows a storage. Objects in it share no memory with those that an API server hands out.
type Journal struct {
	written func(w Write, now state.State)

	mu  sync.Mutex
	now state.State
	// stored are the objects by their keys in the storage.
	stored map[string]*state.Object
}

// New returns a journal of an empty storage. Written is called with each write, in order and one at a time, before
// anybody can read the object and before the writer has an answer. The state has the write; it is valid until the
// function returns. The function must not write to the storage.
func New(written func(w Write, now state.State)) *Journal {
	return &Journal{written: written, now: state.New(), stored: map[string]*state.Object{}}
}

// State returns the objects as they are.
func (j *Journal) State() state.State {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.now.Clone()
}

// Written is for the options of the storage. It panics if what is stored is not an object as JSON.
func (j *Journal) Written(ctx context.Context, e *storage.Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	w := Write{At: time.Now(), Actor: actor(ctx), Before: j.stored[e.Key]}
	if info, ok := request.RequestInfoFrom(ctx); ok {
		w.Subresource = info.Subresource
	}
	if e.Value == nil {
		delete(j.stored, e.Key)
	} else {
		obj, err := state.NewObject(e.Value, e.Revision)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", e.Key, err))
		}
		w.After, j.stored[e.Key] = obj, obj
	}
	j.now.Replace(w.Before, w.After)
	if w.Before == nil {
		j.now.Create(w.After, w.Actor, w.At)
	}
	j.written(w, j.now)
	return nil
}

type actorKey struct{}

// Handler serves requests as next does, and lets the journal know whose they are.
func Handler(next http.Handler, actor func(r *http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actorKey{}, actor(r))))
	})
}

// actor returns whose request a context is of, empty for the API server.
func actor(ctx context.Context) string {
	name, _ := ctx.Value(actorKey{}).(string)
	return name
}

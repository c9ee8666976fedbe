package server

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// repeats are the answers to writes in worlds, with what they did to the storage. A request that comes to a world in
// the same state, at the same time of its clock, has the same answer and does the same. Most writes of a row are such
// repetitions: each replay writes what the one before has written, up to its fault and often after it.
type repeats struct {
	mu    sync.Mutex
	known map[question]*repeat
	// size is how many bytes are kept.
	size int
}

// maxRepeats are kept, and maxRepeatBytes in all: what the last rows have written.
const maxRepeats, maxRepeatBytes = 8192, 64 << 20

// question is the digest of a request, and the state that it comes to.
type question struct {
	request [sha256.Size]byte
	state   storage.State
}

// repeat is what is repeated for a question.
type repeat struct {
	effect storage.Effect
	status int
	header http.Header
	body   []byte
}

func (r *repeats) find(q question) *repeat {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[q]
}

func (r *repeats) add(q question, of *repeat) {
	size := len(of.body) + of.effect.Size()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= maxRepeats || r.size+size > maxRepeatBytes {
		r.known, r.size = map[question]*repeat{}, 0
	}
	r.known[q] = of
	r.size += size
}

type repeatsKey struct{}

// asked is a request that may be a repetition, with the body that was read.
type asked struct {
	question
	in   *storage.Storage
	body []byte
}

// repeatable returns what a request asks for, nil if it may have another answer each time: one that reads, as what it
// reads depends on more, and one in a world that does not repeat.
func repeatable(request *http.Request) (*asked, error) {
	ctx := request.Context()
	in := storage.Of(ctx, nil)
	if request.Method == http.MethodGet || in == nil || ctx.Value(repeatsKey{}) == nil {
		return nil, nil
	}
	a := &asked{in: in}
	var known bool
	if a.state, known = in.State(); !known {
		return nil, nil
	}
	if request.Body != nil {
		var err error
		if a.body, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %d\n", request.Method, request.URL, storage.WriterOf(ctx), timeIn(in).Unix())
	if err := request.Header.Write(h); err != nil {
		return nil, err
	}
	h.Write(a.body)
	a.request = [sha256.Size]byte(h.Sum(nil))
	return a, nil
}

// serve answers a request as it was answered before, or has serve answer it.
func (r *repeats) serve(a *asked, request *http.Request, serve func(*http.Request, *answer)) *answer {
	if known := r.find(a.question); known != nil && a.in.Repeat(known.effect) {
		body := bytes.NewBuffer(slices.Clone(known.body))
		return &answer{header: known.header.Clone(), status: known.status, body: *body}
	}
	ctx, recording := a.in.Record(request.Context(), a.state)
	sent := request.WithContext(ctx)
	sent.Body = io.NopCloser(bytes.NewReader(a.body))
	w := &answer{header: http.Header{}}
	serve(sent, w)
	effect, alone := recording.Effect()
	if alone && w.status < http.StatusInternalServerError && ctx.Err() == nil {
		r.add(a.question, &repeat{effect, w.status, w.header.Clone(), slices.Clone(w.body.Bytes())})
	}
	return w
}

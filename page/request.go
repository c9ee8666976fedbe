package page

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/reconcilers"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The limits of what is kept of one request.
const (
	maxWrites     = 10
	maxText       = 1024
	maxWriteText  = 256
	maxComponents = 100
	// maxFields is how many fields the text of an error names.
	maxFields = 5
)

// request is what was told of a request that is not finished.
type request struct {
	root     *rootRecord
	resource *resourceRecord
	began    time.Time

	mu     sync.Mutex
	causes []reconcilers.Cause
	writes []writeRecord
	// omitted is how many writes there was no room for.
	omitted int
	runs    []run
	// components has how components are, by their paths.
	components map[string]*progressRecord
	forgotten  bool
}

// run is what a node did in one request. A node may run several times, for several items. Then this is about the run
// that ended worst.
type run struct {
	runs    int32
	running int32
	writes  int32
	state   state
	class   reconcilers.Class
	err     string
	// at is the path of the run with the keys of items, if there was more than one.
	at    string
	took  time.Duration
	delay time.Duration
}

// writeRecord is a write, or one that was held back.
type writeRecord struct {
	slot        int
	object      reconcilers.ObjectRef
	verb        string
	subresource string
	reason      string
	err         string
}

func newRequest(root *rootRecord, resource *resourceRecord, began time.Time) *request {
	r := &request{root: root, resource: resource, began: began, runs: make([]run, 1)}
	root.begin(r)
	return r
}

// slot returns the slot of a node, or -1 if nothing is kept of it. The lock is held.
func (r *request) slot(node *reconcilers.Node) int {
	if node.Root != r.root.node {
		return -1
	}
	slot := r.root.slot(node)
	for slot >= len(r.runs) {
		r.runs = append(r.runs, run{})
	}
	return slot
}

func (r *request) start(node *reconcilers.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slot := r.slot(node); slot >= 0 {
		r.runs[slot].running++
	}
}

func (r *request) end(ctx context.Context, node *reconcilers.Node, outcome reconcilers.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slot := r.slot(node)
	if slot < 0 {
		return
	}
	n := &r.runs[slot]
	n.running--
	n.runs++
	n.took += outcome.Took
	n.writes += int32(outcome.Writes)
	if n.delay == 0 || outcome.Result.RequeueAfter > 0 && outcome.Result.RequeueAfter < n.delay {
		n.delay = outcome.Result.RequeueAfter
	}
	ended := stateOf(outcome.State)
	if ended <= n.state {
		return
	}
	n.state, n.class, n.err, n.at = ended, outcome.Class, textOf(outcome.Err), ""
	if ended >= stateWaiting && node.Root != node {
		n.at = pathWithItems(ctx, node)
	}
}

// pathWithItems returns the path of a node that has ended, if it has numbers of iterations or keys of items.
func pathWithItems(ctx context.Context, node *reconcilers.Node) string {
	// The context is that of the node around.
	at := reconcilers.RetrievePath(ctx)
	if node.Name != "" {
		at += "/" + node.Name
	}
	if at == node.Path {
		return ""
	}
	return at
}

// textOf returns the text of an error, or nothing. The values that an API server quotes are left out: they are content
// of an object that the viewer may not get.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	// That an error is quiet says nothing about its cause.
	text := strings.ReplaceAll(err.Error(), ": "+reconcilers.ErrQuiet.Error(), "")
	var answer apierrs.APIStatus
	if errors.As(err, &answer) {
		if status := answer.Status(); status.Message != "" {
			text = strings.ReplaceAll(text, status.Message, withoutValues(status))
		}
	}
	return message.Truncate(text, maxText)
}

// withoutValues returns the message of an answer of an API server without the values of fields that it quotes.
func withoutValues(status metav1.Status) string {
	if status.Reason != metav1.StatusReasonInvalid || status.Details == nil || len(status.Details.Causes) == 0 {
		return status.Message
	}
	var fields []string
	for _, cause := range status.Details.Causes {
		fields = append(fields, fmt.Sprintf("%s (%s)", cause.Field, cause.Type))
	}
	return "the API server refuses " + message.List(slices.Compact(fields), maxFields)
}

func (r *request) woken(fact reconcilers.Woken) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.causes = fact.Causes
}

func (r *request) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgotten = true
}

func (r *request) wrote(node *reconcilers.Node, fact reconcilers.Write) {
	r.keep(node, writeRecord{
		object: fact.Object, verb: fact.Verb, subresource: fact.Subresource,
		reason: message.Truncate(fact.Reason, maxWriteText), err: textOfWrite(fact),
	})
}

// textOfWrite returns the text of the error of a write. Of a Secret it is the class alone.
func textOfWrite(fact reconcilers.Write) string {
	if fact.Err != nil && fact.Object.Group == "" && fact.Object.Kind == "Secret" {
		return string(reconcilers.Classify(fact.Err))
	}
	return message.Truncate(textOf(fact.Err), maxWriteText)
}

// verbHeld stands for a write that was not made to spare the cluster.
const verbHeld = "held"

func (r *request) held(node *reconcilers.Node, fact reconcilers.Held) {
	r.keep(node, writeRecord{object: fact.Object, verb: verbHeld, reason: string(fact.Kind)})
}

func (r *request) keep(node *reconcilers.Node, write writeRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.writes) == maxWrites {
		r.omitted++
		return
	}
	write.slot = r.slot(node)
	r.writes = append(r.writes, write)
}

func (r *request) progressed(
	ctx context.Context, node *reconcilers.Node, fact component.Progress, recorder *recorder,
) {
	path := reconcilers.RetrievePath(ctx)
	known := r.resource.component(path)
	made := progressOf(known, &fact, &recorder.room)
	r.mu.Lock()
	defer r.mu.Unlock()
	if made.slot = r.slot(node); r.components == nil {
		r.components = map[string]*progressRecord{}
	}
	if before := r.components[path]; before != nil && before.inventory != made.inventory {
		before.inventory.release(&recorder.room)
	}
	made.path, made.when = path, r.began
	r.components[path] = made
}

// countRunning adds the nodes that run now.
func (r *request) countRunning(running []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for slot := range min(len(r.runs), len(running)) {
		running[slot] += int(r.runs[slot].running)
	}
}

// finish keeps what was told of the request in the records of the resource and of the root.
func (r *request) finish(recorder *recorder, outcome reconcilers.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	moves := r.resource.merge(r, outcome, &recorder.room)
	r.root.lastTook.Store(int64(outcome.Took))
	r.root.requests.Add(1)
	r.root.recount(r, moves)
}

// abandon ends a request of which nothing is kept.
func (r *request) abandon(recorder *recorder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, made := range r.components {
		made.inventory.release(&recorder.room)
	}
	r.root.recount(r, nil)
}

package informer_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/informer"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

var (
	lamp  = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Lamp"}
	lamps = lamp.GroupVersion().WithResource("lamps")
)

// api is an API server with one definition, of lamps. Whether it serves them is told apart from that.
type api struct {
	metadata.Interface
	events *watch.FakeWatcher

	mu     sync.Mutex
	serves bool
	// asked is the number of questions.
	asked int
	// answers is called once between the next question and its answer, which says what was true at the question.
	answers func()
}

func (a *api) Resource(of schema.GroupVersionResource) metadata.Getter {
	if of.Group == "apiextensions.k8s.io" {
		return definitions{watch: a.events}
	}
	return definitions{watch: watch.NewFake()}
}

// definitions are those of the start, of which there are none, and those that a watch tells.
type definitions struct {
	metadata.Getter
	watch watch.Interface
}

func (d definitions) List(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
}

func (d definitions) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, apierrs.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	}
	return d.watch, nil
}

func (a *api) ask(context.Context, schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	a.mu.Lock()
	serves, answers := a.serves, a.answers
	a.answers = nil
	a.asked++
	a.mu.Unlock()
	if answers != nil {
		answers()
	}
	if serves {
		return lamps, nil
	}
	return schema.GroupVersionResource{}, nil
}

func (a *api) set(serves bool, answers func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.serves, a.answers = serves, answers
}

// user uses a kind as a resource does: it reads when it is woken, and waits while the kind is not served.
type user struct{ woken chan struct{} }

func (u user) Wake() {
	select {
	case u.woken <- struct{}{}:
	default:
	}
}

func (u user) run(ctx context.Context, kind *informer.Kind) {
	kind.Await(u)
	for {
		select {
		case <-ctx.Done():
			return
		case <-u.woken:
		}
		if kind.Ready(ctx, u, "") != nil {
			kind.Await(u)
		}
	}
}

// follow runs kinds until the test ends. What else runs until then gets the context, and is one of running.
func follow(t *testing.T, kinds *informer.Kinds) (ctx context.Context, running *sync.WaitGroup) {
	ctx, cancel := context.WithCancel(t.Context())
	running = &sync.WaitGroup{}
	running.Go(func() {
		if err := kinds.Start(ctx); err != nil {
			t.Errorf("the kinds are not followed: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return ctx, running
}

// A kind is served again although its definition came back before anybody saw that it was gone.
func TestAKindThatComesBackAtOnceIsServedAgain(t *testing.T) {
	for name, comeBack := range map[string]func(a *api, definition *metav1.PartialObjectMetadata){
		"while the API server is asked": func(a *api, definition *metav1.PartialObjectMetadata) {
			a.set(false, func() {
				a.events.Add(definition)
				a.set(true, nil)
				synctest.Wait()
			})
			a.events.Delete(definition)
		},
		"before the API server serves it": func(a *api, definition *metav1.PartialObjectMetadata) {
			a.set(false, nil)
			a.events.Delete(definition)
			a.events.Add(definition)
			time.Sleep(time.Second)
			a.set(true, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &api{events: watch.NewFake(), serves: true}
				kinds := informer.NewKinds(a, a.ask, logr.Discard())
				kind := kinds.Of(lamp)
				ctx, running := follow(t, kinds)
				if is, err := kind.Check(ctx); !is || err != nil {
					t.Fatalf("it is served: %t, %v", is, err)
				}
				running.Go(func() { user{make(chan struct{}, 1)}.run(ctx, kind) })
				time.Sleep(time.Minute)

				comeBack(a, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "lamps.example.com"}})
				time.Sleep(time.Minute)
				if kind.Resource() != lamps {
					t.Errorf("it is at %q, want %s", kind.Resource(), lamps)
				}
			})
		})
	}
}

// A kind is found also if somebody begins to wait for it between the event of its definition and the time at which the
// API server serves it.
func TestAKindThatIsAwaitedAfterItsDefinitionCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{events: watch.NewFake()}
		kinds := informer.NewKinds(a, a.ask, logr.Discard())
		another := kinds.Of(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shade"})
		ctx, running := follow(t, kinds)
		another.Await(user{make(chan struct{}, 1)})
		time.Sleep(time.Minute)

		a.events.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "lamps.example.com"}})
		synctest.Wait()
		kind := kinds.Of(lamp)
		kind.Missing()
		running.Go(func() { user{make(chan struct{}, 1)}.run(ctx, kind) })
		time.Sleep(2 * time.Second)
		a.set(true, nil)
		time.Sleep(time.Minute)
		if kind.Resource() != lamps {
			t.Errorf("it is at %q, want %s", kind.Resource(), lamps)
		}
	})
}

// While the definitions are watched, the API server is asked for a kind that somebody waits for in a first series of
// checks, and never again.
func TestAKindThatIsAwaitedIsAskedForAFewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{events: watch.NewFake()}
		kinds := informer.NewKinds(a, a.ask, logr.Discard())
		ctx, running := follow(t, kinds)
		kind := kinds.Of(lamp)
		kind.Missing()
		running.Go(func() { user{make(chan struct{}, 1)}.run(ctx, kind) })
		time.Sleep(24 * time.Hour)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.asked != 3 {
			t.Errorf("the API server is asked %d times in a day, want 3, after 1, 3 and 7 seconds", a.asked)
		}
	})
}

// home is the cluster of a manager.
type home struct {
	cluster.Cluster
	config *rest.Config
	client *http.Client
}

func (h home) GetConfig() *rest.Config     { return h.config }
func (h home) GetHTTPClient() *http.Client { return h.client }

// A question that the API server takes and does not answer ends when the operator stops.
func TestAQuestionWithoutAnswerEnds(t *testing.T) {
	limit, release := context.WithTimeout(t.Context(), time.Minute)
	defer release()
	operator, stop := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stop()
		select {
		case <-r.Context().Done():
		case <-limit.Done():
		}
	}))
	t.Cleanup(server.Close)
	in := home{config: &rest.Config{Host: server.URL}, client: server.Client()}
	kinds, err := informer.KindsOf(in, logr.Discard(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kinds.Of(lamp).Check(operator); !errors.Is(err, context.Canceled) || limit.Err() != nil {
		t.Errorf("the question ends with %v, want that it ends with the operator", err)
	}
}

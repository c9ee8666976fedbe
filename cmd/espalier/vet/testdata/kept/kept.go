// Package kept has functions that keep or change what they got, and such that do not.
package kept

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/reconcilers"
)

type syncing = reconcilers.SyncReconciler[*corev1.Pod]

var (
	last  *corev1.Pod
	all   []client.Object
	names = map[string]*corev1.Pod{}
	cache sync.Map
	queue = make(chan *corev1.Pod, 10)
	base  = &corev1.ConfigMap{}
)

// In global variables, direct.
var _ = &reconcilers.SyncReconciler[*corev1.Pod]{
	Sync: func(ctx context.Context, pod *corev1.Pod) error {
		last = pod                 // want `given to Sync keeps the resource`
		names[pod.Name] = pod      // want `keeps the resource`
		all = append(all, pod)     // want `keeps the resource`
		cache.Store(pod.Name, pod) // want `keeps the resource`
		queue <- pod               // want `keeps the resource`
		return nil
	},
}

// In a field of the receiver, by a method value, and in a helper.
type node struct {
	syncing
	ctx    context.Context
	pods   map[string]*corev1.Pod
	latest struct{ pod *corev1.Pod }
}

func (n *node) sync(ctx context.Context, pod *corev1.Pod) (reconcilers.Result, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	n.ctx = inner // want `given to SyncWithResult keeps the context`
	n.remember(pod)
	return reconcilers.Result{}, nil
}

func (n *node) remember(pod *corev1.Pod) {
	n.pods[pod.Name] = pod // want `keeps the resource`
	n.latest.pod = pod     // want `keeps the resource`
}

func newNode() *node {
	n := &node{}
	n.SyncWithResult = n.sync
	return n
}

// In a variable around a closure, and in a goroutine.
func tree() *espalier.Run[*corev1.Pod] {
	var seen *corev1.Pod
	return espalier.Runs("Tree", func(ctx context.Context, pod *corev1.Pod) error {
		if seen == nil {
			seen = pod // want `keeps the resource`
		}
		go func() { // want `the goroutine may outlive the request, and uses its (resource|context)`
			notify(ctx, pod)
		}()
		go notify(context.Background(), pod) // want `uses its resource`
		return nil
	})
}

func notify(context.Context, *corev1.Pod) {}

// A node of one's own.
type own struct{ contexts []context.Context }

func (o *own) Reconcile(ctx context.Context, pod *corev1.Pod) (reconcilers.Result, error) {
	o.contexts = append(o.contexts, ctx) // want `given to Reconcile keeps the context`
	return reconcilers.Result{}, nil
}

// In a generic function.
func runs[T client.Object](run func(context.Context, T) error) *espalier.Run[T] {
	return espalier.Runs("Generic", func(ctx context.Context, resource T) error {
		all = append(all, resource) // want `keeps the resource`
		return run(ctx, resource)
	})
}

// A child that is changed.
var _ = espalier.Owns("Changed", desired).Observes(
	func(_ context.Context, pod *corev1.Pod, live *corev1.ConfigMap) error {
		live.Data["seen"] = "true" // want `given to Observes must not change the child`
		live.Name = "other"        // want `must not change the child`
		clean(live)
		return nil
	}).Health(func(live *corev1.ConfigMap) apis.Health {
	live.SetLabels(nil) // want `given to Health must not change the child`
	return apis.Health{}
})

func clean(child client.Object) {
	child.SetManagedFields(nil) // want `given to Observes must not change the child`
}

func desired(context.Context, *corev1.Pod) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{}, nil
}

// A desired object that the program keeps.
var _ = []any{
	espalier.Owns("Global", func(context.Context, *corev1.Pod) (*corev1.ConfigMap, error) {
		return base, nil // want `given to Owns returns an object that outlives the request`
	}),
	espalier.Owns("Captured", captured(&corev1.ConfigMap{})),
	espalier.Owns("Method", (&template{}).desired),
	espalier.Owns("Helper", func(context.Context, *corev1.Pod) (*corev1.ConfigMap, error) {
		made := shared()
		made.Name = "made"
		return made, nil // want `outlives the request`
	}),
}

func shared() *corev1.ConfigMap { return base }

func captured(given *corev1.ConfigMap) func(context.Context, *corev1.Pod) (*corev1.ConfigMap, error) {
	return func(context.Context, *corev1.Pod) (*corev1.ConfigMap, error) {
		return given, nil // want `outlives the request`
	}
}

type template struct{ object corev1.ConfigMap }

func (t *template) desired(context.Context, *corev1.Pod) (*corev1.ConfigMap, error) {
	return &t.object, nil // want `outlives the request`
}

// What follows is right.

type state struct {
	ctx  context.Context
	pod  *corev1.Pod
	pods []*corev1.Pod
}

func (s *state) add(pod *corev1.Pod) { s.pods = append(s.pods, pod) }

var _ = espalier.Runs("Right", func(ctx context.Context, pod *corev1.Pod) error {
	last = pod.DeepCopy()
	s := &state{ctx: ctx}
	s.pod = pod
	s.add(pod)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { notify(ctx, pod); return nil })
	if err := group.Wait(); err != nil {
		return err
	}
	var wait sync.WaitGroup
	wait.Add(1)
	go func() { defer wait.Done(); notify(ctx, pod) }()
	wait.Wait()
	pod.Annotations["name"] = pod.Name
	return nil
})

var _ = espalier.Runs("Copies", func(_ context.Context, pod *corev1.Pod) error {
	name := pod.Name
	copied := pod.DeepCopy()
	go func() { notify(context.Background(), copied); println(name) }()
	return nil
})

var _ = espalier.Owns("Looks", func(context.Context, *corev1.Pod) (*corev1.ConfigMap, error) {
	return base.DeepCopy(), nil
}).Observes(func(_ context.Context, pod *corev1.Pod, live *corev1.ConfigMap) error {
	if live != nil {
		pod.Status.Message = live.Data["message"]
		copied := live.DeepCopy()
		copied.Name = "mine"
	}
	return nil
})

var _ = espalier.Owns("Read", func(context.Context, *corev1.Pod) (*corev1.ConfigMap, error) {
	return base, nil
}).ReadOnly()

// The context of the set-up lives as long as the program.
var _ = &reconcilers.SyncReconciler[*corev1.Pod]{
	Setup: func(ctx context.Context, _ reconcilers.Manager, _ *reconcilers.Builder) error {
		newNode().ctx = ctx
		go func() { <-ctx.Done() }()
		return nil
	},
}

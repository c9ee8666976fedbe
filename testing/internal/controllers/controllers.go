package controllers

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strings"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options say how a cluster behaves beside its API server. The functions are called in goroutines of the controllers,
// Failed in several at once. What they read and a test changes needs a lock or an atomic value, in a bubble, too.
type Options struct {
	// Behavior says what becomes of a Pod on a node. It is asked at each look at the Pod and answers the same until
	// [Controllers.Refresh] is called. Nil is the zero Behavior for all Pods.
	Behavior func(pod *corev1.Pod) Behavior
	// Metric returns what a metric of an autoscaler is: its percentage for a target of utilization, else its value or
	// average value; ok is false if it is not known. As Behavior, it answers the same until Refresh is called, but for
	// 15 seconds after a change of scale. Nil knows no metric.
	Metric func(
		a *autoscalingv2.HorizontalPodAutoscaler, spec autoscalingv2.MetricSpec,
	) (is apiresource.Quantity, ok bool)
	// Authority is the bundle that is injected where an annotation names a certificate of cert-manager that has no
	// Secret. Nil injects nothing there.
	Authority []byte
	// Nodes are the names of nodes to create if there are none. Nil stands for one of the name "node-1".
	Nodes []string
	// Without are the components that do not run, such as "kube-scheduler" and "kubelet" if a test sets the status of
	// Pods itself, and the kinds whose controllers do not run, such as "Deployment".
	Without []string
	// NoWorkloads leaves out all but the garbage collector and the controller of namespaces, and creates no nodes:
	// workloads stay as they are written.
	NoWorkloads bool
	// NamespaceGrace is how long a namespace that is deleted keeps what is in it, in which no client that has not seen
	// the deletion creates something. Five seconds is that of a cluster; zero is none.
	NamespaceGrace time.Duration
	// Present are the kinds of which there is an object, or was one. A kind is watched as soon as it is one of them: an
	// API server builds what serves a kind at the first request for it. Nil watches all kinds.
	Present *Kinds
	// Failed is told of requests that failed for other reasons than that the object has changed meanwhile. They are
	// tried again. Nil stands for log.Println.
	Failed func(error)
}

// Controllers are running.
type Controllers struct {
	runner *runner
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// Start starts the controllers. They know all objects when it returns. The context ends the start, not the controllers.
func Start(ctx context.Context, config *rest.Config, options Options) (*Controllers, error) {
	resources, err := discover(config)
	if err != nil {
		return nil, fmt.Errorf("discover what to watch: %w", err)
	}
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	typedClient, err := client.NewWithWatch(config, client.Options{
		HTTPClient: http, Scheme: scheme(), Mapper: newMapper(resources),
	})
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), http)
	if err != nil {
		return nil, err
	}
	nodes := options.Nodes
	if nodes == nil {
		nodes = []string{"node-1"}
	}
	if !options.NoWorkloads {
		if err := createNodes(ctx, typedClient, nodes); err != nil {
			return nil, err
		}
	}
	failed := options.Failed
	if failed == nil {
		failed = func(err error) { log.Println(err) }
	}
	controllers, err := all(options)
	if err != nil {
		return nil, err
	}
	c := &Controllers{runner: newRunner(typedClient, metadataClient, controllers, failed)}
	running, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	if options.Present != nil {
		c.runner.present = options.Present.has
	}
	for _, r := range resources {
		c.runner.know(running, r)
	}
	if err := c.runner.sync(ctx, running); err != nil {
		cancel()
		c.runner.watches.Wait()
		return nil, fmt.Errorf("list all objects: %w", err)
	}
	if options.Present != nil {
		options.Present.tell(func(kind schema.GroupKind) { c.runner.inbox.add(notice{kind: kind, appeared: true}) })
	}
	c.done.Go(func() { c.runner.run(running) })
	return c, nil
}

// all returns the controllers in the order in which they look at an object.
func all(options Options) ([]*controller, error) {
	always := []*controller{garbageCollector(), namespaces(options)}
	workloads := []*controller{
		deployments(), replicaSets(), statefulSets(), daemonSets(), jobs(), cronJobs(), autoscalers(options),
		disruptionBudgets(),
		claims(), volumes(), loadBalancers(), endpointSlices(), injectors(options),
		scheduler(options), kubelet(options),
	}
	controllers := slices.Concat(always, workloads)
	var known []string
	for _, c := range controllers {
		known = append(known, c.name)
		for _, kind := range c.kinds {
			known = append(known, kind.Kind)
		}
	}
	for _, name := range options.Without {
		if !slices.Contains(known, name) {
			slices.Sort(known)
			return nil, fmt.Errorf("without %q: there is no such component or kind: there are %s",
				name, strings.Join(slices.Compact(known), ", "))
		}
	}
	if options.NoWorkloads {
		controllers = always
	}
	return slices.DeleteFunc(controllers, func(c *controller) bool {
		isKind := func(kind schema.GroupKind) bool { return slices.Contains(options.Without, kind.Kind) }
		return slices.Contains(options.Without, c.name) || slices.ContainsFunc(c.kinds, isKind)
	}), nil
}

// Refresh has all objects looked at again. It is for a test that changed what the functions of the options return.
func (c *Controllers) Refresh() {
	select {
	case c.runner.again <- struct{}{}:
	default:
	}
}

// Stop ends all watches and waits until they have ended.
func (c *Controllers) Stop() {
	c.cancel()
	c.done.Wait()
}

package componentfaults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/tracker"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// faultPatience is how long a phase of the scenario may take, on a machine that does much else.
const faultPatience = 90 * time.Second

// faultInstance is a process of the operator: it knows nothing of those before.
type faultInstance struct {
	*process
	root reconcile.Reconciler
}

var faultScheme = resources.NewScheme()

func (r *faultRun) start() (*faultInstance, error) {
	instance := &faultInstance{process: &process{run: r}}
	config := rest.CopyConfig(r.world.config)
	config.ContentType = "application/json"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		instance.next = next
		return instance.process
	})
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: faultScheme, HTTPClient: httpClient})
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	instance.root = component.NewComponentRoot(faultPrefix, resources.AssemblyGenerator(), component.Options[*resources.Assembly]{
		Config: reconcilers.Config{
			Client: c, APIReader: c, Discovery: d, Tracker: tracker.New(faultScheme, time.Hour),
		},
		Parallel: 1,
	})
	return instance, nil
}

// faultOutcome is what is compared with the run without a fault.
type faultOutcome struct {
	// ends are the states of the cluster at the end of the phases.
	ends             []string
	creates, deletes map[string]int
	tries            map[string]int
}

// play runs the scenario from first to last.
func (r *faultRun) play(ctx context.Context) (*faultOutcome, error) {
	p := platformOf{r.namespace, r.id}
	if err := r.prepare(ctx, p); err != nil {
		return nil, err
	}
	instance, err := r.start()
	if err != nil {
		return nil, err
	}
	outcome := &faultOutcome{creates: r.creates, deletes: r.deletes, tries: r.tries}
	for _, phase := range p.phases() {
		if err := r.begin(ctx, p, phase); err != nil {
			return nil, fmt.Errorf("%s: %w", phase.name, err)
		}
		r.note("== " + phase.name)
		if r.operated {
			err = r.await(ctx, phase.reached)
		} else {
			instance, err = r.untilIdle(ctx, instance, phase.reached)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", phase.name, err)
		}
		end, err := r.snapshot(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", phase.name, err)
		}
		outcome.ends = append(outcome.ends, phase.name+"\n"+end)
	}
	return outcome, nil
}

func (r *faultRun) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logf("%s", text)
}

func (r *faultRun) prepare(ctx context.Context, p platformOf) error {
	c, a := r.world.client, p.platform()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}
	objects := append([]client.Object{namespace}, p.bystanders()...)
	for _, object := range append(objects, a) {
		if err := c.Create(ctx, object); err != nil {
			return err
		}
	}
	for _, object := range objects[1:] {
		path := "configmaps/" + r.namespace + "/" + object.GetName()
		r.foreign[path] = string(object.GetUID()) + " " + object.GetResourceVersion()
	}
	r.identify(a)
	return nil
}

// begin has others do what begins a phase. It checks that the instance of another owner was not touched before.
func (r *faultRun) begin(ctx context.Context, p platformOf, phase faultPhase) error {
	theirs := p.theirs()
	key := "gadgets/" + theirs.GetNamespace() + "/" + theirs.GetName()
	if err := r.changeUse(ctx, theirs, key, phase.inUse); err != nil {
		return err
	}
	if err := phase.begin(ctx, r.world.client); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Others wrote after the operator did.
	delete(r.history, "gadgets")
	delete(r.history, "assemblies")
	if !phase.inUse {
		return nil
	}
	if err := r.world.client.Get(ctx, client.ObjectKeyFromObject(theirs), theirs); err != nil {
		return err
	}
	r.foreign[key] = string(theirs.GetUID()) + " " + theirs.GetResourceVersion()
	return nil
}

// changeUse notes that others are about to have an instance, or to have it no more.
func (r *faultRun) changeUse(ctx context.Context, theirs *unstructured.Unstructured, key string, inUse bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inUse = inUse
	was := r.foreign[key]
	if was == "" {
		return nil
	}
	if err := r.world.client.Get(ctx, client.ObjectKeyFromObject(theirs), theirs); err != nil {
		return err
	}
	if is := string(theirs.GetUID()) + " " + theirs.GetResourceVersion(); is != was {
		r.violated("L4: the instance of somebody else was touched")
	}
	delete(r.foreign, key)
	return nil
}

// await waits until operators that run by themselves have reached the goal.
func (r *faultRun) await(
	ctx context.Context, reached func(context.Context, client.Client) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, faultPatience)
	defer cancel()
	for {
		err := reached(ctx, r.world.client)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not come to rest: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// untilIdle reconciles until nothing is written any more and the goal is reached. A new instance takes over from one that met with the
// fault.
func (r *faultRun) untilIdle(
	ctx context.Context, instance *faultInstance, reached func(context.Context, client.Client) error,
) (*faultInstance, error) {
	ctx, cancel := context.WithTimeout(ctx, faultPatience)
	defer cancel()
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: r.namespace, Name: "platform"}}
	for {
		before, fired := r.progress()
		_, failure := instance.root.Reconcile(ctx, request)
		after, now := r.progress()
		if now != fired && (instance.dead || !r.point.goesOn) {
			r.note("-- a new instance takes over")
			fresh, err := r.start()
			if err != nil {
				return nil, err
			}
			instance = fresh
			continue
		}
		if after != before {
			continue
		}
		err := reached(ctx, r.world.client)
		if err == nil {
			return instance, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("it does not come to rest: %w (the last request: %v)", err, failure)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (r *faultRun) progress() (effective int, fired string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.effective, r.fired
}

// snapshot is the state of the cluster, as far as the run can have changed it, without what differs from run to run. It also checks
// what belongs to others, and that all that carries the mark is in the inventory.
func (r *faultRun) snapshot(ctx context.Context, p platformOf) (string, error) {
	var objects []map[string]any
	in := "/namespaces/" + r.namespace + "/"
	for _, path := range []string{
		"/api/v1" + in + "configmaps", "/apis/rbac.authorization.k8s.io/v1" + in + "roles",
		"/apis/rbac.authorization.k8s.io/v1" + in + "rolebindings", "/apis/" + p.group() + "/v1" + in + "gadgets",
		"/apis/" + resources.GroupVersion.String() + in + "assemblies",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets." + p.group(),
	} {
		code, body, err := r.world.look(ctx, path, url.Values{})
		if err != nil {
			return "", err
		}
		var found struct {
			Items []map[string]any
		}
		switch {
		case code == http.StatusNotFound:
			continue
		case code != http.StatusOK:
			return "", fmt.Errorf("%s: %d %s", path, code, body)
		}
		if err := json.Unmarshal(body, &found); err != nil {
			return "", err
		}
		if found.Items == nil && strings.Contains(path, "/customresourcedefinitions/") {
			object := map[string]any{}
			if err := json.Unmarshal(body, &object); err != nil {
				return "", err
			}
			found.Items = []map[string]any{object}
		}
		objects = append(objects, found.Items...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := make([]string, 0, len(objects))
	for _, object := range objects {
		r.checkForeign(&unstructured.Unstructured{Object: object})
		lines = append(lines, r.normal(&unstructured.Unstructured{Object: object}))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

package components_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/components"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/tracker"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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

// platformOf has the objects of the scenario, by what they are for.
type platformOf struct{ namespace, id string }

func (p platformOf) group() string { return p.id + ".gadgets.test" }

func (p platformOf) order(object client.Object, order string) client.Object {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[faultPrefix+"/"+component.AnnotationApplyOrder] = order
	object.SetAnnotations(annotations)
	return object
}

func (p platformOf) configMap(name, order, content string) client.Object {
	return p.order(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name},
		Data:       map[string]string{"content": content},
	}, order)
}

func (p platformOf) definition() *apiextensionsv1.CustomResourceDefinition {
	crd := resources.CRD()
	crd.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	crd.Name = "gadgets." + p.group()
	crd.Spec.Group = p.group()
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"}
	return crd
}

func (p platformOf) gadget(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": p.group() + "/v1", "kind": "Gadget",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":     map[string]any{"size": "small"},
	}}
}

// job is removed again once its wave is done.
func (p platformOf) job() client.Object {
	job := p.configMap("job", "1", "once")
	annotations := job.GetAnnotations()
	annotations[faultPrefix+"/"+component.AnnotationPurgeOrder] = "1"
	job.SetAnnotations(annotations)
	return job
}

func (p platformOf) rbac() []client.Object {
	role := &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "platform"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}},
	}
	binding := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "platform"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "platform"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: p.namespace, Name: "platform"}},
	}
	return []client.Object{p.order(role, "0"), p.order(binding, "0")}
}

func (p platformOf) first() []client.Object {
	return append(p.rbac(), p.definition(), p.configMap("settings", "1", "one"), p.job(), p.configMap("extra", "1", "x"),
		p.order(p.gadget(p.namespace, "own"), "2"), p.configMap("last", "2", "z"))
}

// second changes the settings and drops the extra.
func (p platformOf) second() []client.Object {
	return append(p.rbac(), p.definition(), p.configMap("settings", "1", "two"), p.job(),
		p.order(p.gadget(p.namespace, "own"), "2"), p.configMap("last", "2", "z"))
}

// third drops the type and its instance, and wants an object that belongs to another owner.
func (p platformOf) third() []client.Object {
	return append(p.rbac(), p.configMap("settings", "1", "two"), p.job(), p.configMap("last", "2", "z"), p.configMap("taken", "2", "ours"))
}

// bystanders belong to no component, and to another component.
func (p platformOf) bystanders() []client.Object {
	taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.namespace, Name: "taken",
		Labels:      map[string]string{faultPrefix + "/owner-id": "somebody-else"},
		Annotations: map[string]string{faultPrefix + "/owner-id": "Other.test/ns/name/uid"},
	}}
	return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "bystander"}}, taken}
}

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
	instance.root = components.NewComponentRoot(faultPrefix, resources.AssemblyGenerator(), components.Options[*resources.Assembly]{
		Config:   reconcilers.Config{Client: c, APIReader: c, Discovery: d, Tracker: tracker.New(faultScheme, time.Hour)},
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
	a := resources.NewAssembly(r.namespace, "platform", p.first()...)
	// Another client may create what the component is about to create.
	a.Spec.AdoptionPolicy, a.Spec.DeletePolicy = apis.AdoptIfUnowned, apis.DeleteDelete
	if err := r.prepare(ctx, p, a); err != nil {
		return nil, err
	}
	instance, err := r.start()
	if err != nil {
		return nil, err
	}
	outcome := &faultOutcome{creates: r.creates, deletes: r.deletes, tries: r.tries}
	for _, phase := range r.phases(p, a) {
		if err := phase.begin(ctx); err != nil {
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

func (r *faultRun) prepare(ctx context.Context, p platformOf, a *resources.Assembly) error {
	c := r.world.client
	objects := append([]client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}}, p.bystanders()...)
	for _, object := range append(objects, a) {
		if err := c.Create(ctx, object); err != nil {
			return err
		}
	}
	for _, object := range objects[1:] {
		r.foreign["configmaps/"+r.namespace+"/"+object.GetName()] = string(object.GetUID()) + " " + object.GetResourceVersion()
	}
	r.identify(a)
	return nil
}

// faultPhase is a step of the scenario: what the user does, and what is to come of it.
type faultPhase struct {
	name    string
	begin   func(ctx context.Context) error
	reached func(ctx context.Context) error
}

func (r *faultRun) phases(p platformOf, a *resources.Assembly) []faultPhase {
	c := r.world.client
	read := func(ctx context.Context) (*resources.Assembly, error) {
		live := &resources.Assembly{}
		return live, c.Get(ctx, client.ObjectKeyFromObject(a), live)
	}
	desire := func(objects []client.Object) func(context.Context) error {
		return func(ctx context.Context) error {
			live, err := read(ctx)
			if err != nil {
				return err
			}
			defer r.anotherWrote("assemblies")
			patch := live.DeepCopy()
			patch.SetObjects(objects...)
			return c.Patch(ctx, patch, client.MergeFrom(live))
		}
	}
	ready := func(ctx context.Context) error {
		live, err := read(ctx)
		if err == nil && (live.Status.State != apis.ComponentReady || live.Status.ObservedGeneration != live.Generation) {
			err = fmt.Errorf("not ready: %+v", live.Status.Conditions)
		}
		return err
	}
	foreign := p.gadget("default", "theirs-"+r.id)
	return []faultPhase{
		{"install", func(context.Context) error { return nil }, ready},
		{"upgrade", desire(p.second()), ready},
		{"drop the type", func(ctx context.Context) error {
			return errors.Join(r.use(ctx, foreign), desire(p.third())(ctx))
		}, func(ctx context.Context) error {
			live, err := read(ctx)
			if err == nil && !r.typeIsKept(live) {
				err = fmt.Errorf("the type is not kept: %+v", live.Status)
			}
			return err
		}},
		{"delete", func(ctx context.Context) error {
			defer r.anotherWrote("assemblies")
			return c.Delete(ctx, a)
		}, func(ctx context.Context) error {
			live, err := read(ctx)
			if err == nil {
				err = hasReason(live, components.ReasonDeletionBlocked)
			}
			return err
		}},
		{"let it go", func(ctx context.Context) error { return r.unuse(ctx, foreign) }, func(ctx context.Context) error {
			if _, err := read(ctx); !apierrs.IsNotFound(err) {
				return errors.Join(errors.New("it is still there"), err)
			}
			return nil
		}},
	}
}

func hasReason(a *resources.Assembly, reason string) error {
	ready := meta.FindStatusCondition(a.Status.Conditions, apis.ConditionReady)
	if ready == nil || ready.Reason != reason || ready.ObservedGeneration != a.Generation {
		return fmt.Errorf("the condition is %+v", ready)
	}
	return nil
}

// typeIsKept reports whether the component has dropped all but the type that others use.
func (r *faultRun) typeIsKept(a *resources.Assembly) bool {
	ready := meta.FindStatusCondition(a.Status.Conditions, apis.ConditionReady)
	if ready == nil || ready.ObservedGeneration != a.Generation {
		return false
	}
	kept := false
	for _, record := range a.Status.Inventory {
		if record.Kind == "Gadget" {
			return false
		}
		kept = kept || record.Kind == "CustomResourceDefinition" && strings.Contains(record.Message, "in use by")
	}
	return kept
}

// use creates the instance of another owner.
func (r *faultRun) use(ctx context.Context, instance *unstructured.Unstructured) error {
	if err := r.world.client.Create(ctx, instance); err != nil {
		return err
	}
	r.anotherWrote("gadgets")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inUse = true
	r.foreign["gadgets/default/"+instance.GetName()] = string(instance.GetUID()) + " " + instance.GetResourceVersion()
	return nil
}

// unuse checks that the instance of another owner was not touched, and removes it.
func (r *faultRun) unuse(ctx context.Context, instance *unstructured.Unstructured) error {
	live := instance.DeepCopy()
	if err := r.world.client.Get(ctx, client.ObjectKeyFromObject(instance), live); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := "gadgets/default/" + instance.GetName()
	if is := string(live.GetUID()) + " " + live.GetResourceVersion(); is != r.foreign[key] {
		r.violated("L4: the instance of somebody else was touched")
	}
	r.inUse = false
	delete(r.foreign, key)
	delete(r.history, "gadgets")
	return r.world.client.Delete(ctx, live)
}

// await waits until operators that run by themselves have reached the goal.
func (r *faultRun) await(ctx context.Context, reached func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, faultPatience)
	defer cancel()
	for {
		err := reached(ctx)
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
func (r *faultRun) untilIdle(ctx context.Context, instance *faultInstance, reached func(context.Context) error) (*faultInstance, error) {
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
		err := reached(ctx)
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

package observe_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/clusters"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	"go.uber.org/goleak"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var plane = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

// online is an observer on the real API server.
type online struct {
	*observe.Watching
	t         testing.TB
	namespace string
	// admin is not counted.
	admin     client.Client
	requests  *controlplane.Requests
	http      *http.Client
	component observe.Component

	mu    sync.Mutex
	woken map[string]int
}

// adminScheme returns a scheme with CustomResourceDefinitions.
func adminScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.SchemeBuilder{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme}
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func newOnline(t testing.TB, config *rest.Config) *online {
	t.Helper()
	o := &online{t: t, namespace: plane.Namespace(t), woken: map[string]int{}}
	admin, err := client.New(plane.Config(t), client.Options{Scheme: adminScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	o.admin = admin
	if config == nil {
		config = plane.Config(t)
	}
	config, o.requests = controlplane.CountRequests(config)
	reached, err := (&clusters.Pool{Home: config}).Get(t.Context(), clusters.Identity{})
	if err != nil {
		t.Fatal(err)
	}
	o.http = reached.HTTPClient
	o.Watching, err = observe.NewWatching(observe.Options{
		Config: reached.Config, HTTPClient: o.http, Mapper: reached.Client.RESTMapper(), Client: reached.Client,
		Prefix: prefix, FieldManager: manager, Evaluate: evaluate, Wake: o.wake,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Stop)
	o.component = observe.Component{
		Watcher: types.NamespacedName{Namespace: o.namespace, Name: "shop"}, UID: "uid-1",
		OwnerID: o.namespace, Owner: "Shop.example.com/" + o.namespace + "/shop/uid-1", Now: epoch,
	}
	return o
}

func (o *online) wake(watcher types.NamespacedName, low bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.woken[fmt.Sprint(watcher.Name, " ", low)]++
}

// resetWakes forgets which components were woken.
func (o *online) resetWakes() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.woken)
}

func (o *online) wakes(name string, low bool) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.woken[fmt.Sprint(name, " ", low)]
}

// awaitWake waits until the component is woken.
func (o *online) awaitWake(name string, low bool) {
	o.t.Helper()
	controlplanetest.Eventually(o.t, name+" is woken", func(context.Context) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.woken[fmt.Sprint(name, " ", low)] == 0 {
			return fmt.Errorf("with low priority %t it is not, others are: %v", low, o.woken)
		}
		return nil
	})
}

func (o *online) observe(interests ...observe.Interest) *observe.Observation {
	o.t.Helper()
	got, err := o.Observe(o.t.Context(), o.component, interests)
	if err != nil {
		o.t.Fatal(err)
	}
	return got
}

// awaitLive observes until all types are live.
func (o *online) awaitLive(interests ...observe.Interest) *observe.Observation {
	o.t.Helper()
	var got *observe.Observation
	controlplanetest.Eventually(o.t, "the watches begin", func(context.Context) error {
		if got = o.observe(interests...); got.Syncing != nil || got.Polled != nil {
			return fmt.Errorf("syncing %v, polled %v", got.Syncing, got.Polled)
		}
		return nil
	})
	o.resetWakes()
	return got
}

// until observes until the object is as it should be.
func (o *online) until(what string, in observe.Interest, ok func(got plan.Observed) bool, others ...observe.Interest) plan.Observed {
	o.t.Helper()
	var got plan.Observed
	controlplanetest.Eventually(o.t, what, func(context.Context) error {
		if got = o.observe(append(others, in)...).Objects[in.Key]; !ok(got) {
			return fmt.Errorf("observed %+v", got)
		}
		return nil
	})
	return got
}

func (o *online) interest(gk schema.GroupKind, name string, change ...func(*observe.Interest)) observe.Interest {
	return interest(gk, name, append(change, func(in *observe.Interest) { in.Key.Namespace = o.namespace })...)
}

// ours is an object of the component, not written yet.
func (o *online) ours(gvk schema.GroupVersionKind, name string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range fields {
		u.Object[key] = value
	}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(o.namespace)
	u.SetName(name)
	u.SetLabels(map[string]string{prefix + "/owner-id": o.component.OwnerID})
	u.SetAnnotations(map[string]string{prefix + "/owner-id": o.component.Owner, prefix + "/digest": "d1"})
	return u
}

func (o *online) configMap(name, value string) *unstructured.Unstructured {
	return o.ours(configMaps.WithVersion("v1"), name, map[string]any{"data": map[string]any{"a": value}})
}

func (o *online) deployment(name string) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	return o.ours(deployments.WithVersion("v1"), name, map[string]any{"spec": map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "x", "image": "x"}}},
		},
	}})
}

// create creates an object as the component does.
func (o *online) create(object *unstructured.Unstructured) *unstructured.Unstructured {
	o.t.Helper()
	if err := o.admin.Create(o.t.Context(), object, client.FieldOwner(manager)); err != nil {
		o.t.Fatal(err)
	}
	return object
}

// patch merges into an object as another field manager.
func (o *online) patch(object client.Object, patch string, opts ...client.PatchOption) {
	o.t.Helper()
	err := o.admin.Patch(o.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch)), append(opts, client.FieldOwner("another-manager"))...)
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *online) delete(object client.Object) {
	o.t.Helper()
	if err := o.admin.Delete(o.t.Context(), object); err != nil {
		o.t.Fatal(err)
	}
}

func TestLiveChangesAreSeen(t *testing.T) {
	t.Parallel()
	o := newOnline(t, nil)
	in, deploy := o.interest(configMaps, "a"), o.interest(deployments, "d", wanting)
	made, deployed := o.create(o.configMap("a", "1")), o.create(o.deployment("d"))
	before := o.awaitLive(in, deploy)
	was := before.Objects[in.Key]
	want := plan.Observed{
		Presence: plan.Present, UID: made.GetUID(), ResourceVersion: made.GetResourceVersion(), Ownership: plan.Ours,
		Digest: "d1",
		Fields: managedfields.Digest([]string{made.GetManagedFields()[0].FieldsV1.GetRawString()}, nil),
	}
	if was != want || was.Fields == "" {
		t.Errorf("got %+v, want %+v", was, want)
	}
	o.requests.Reset()
	if got := o.observe(in, deploy).Objects[deploy.Key]; got.Status != apis.ObjectInProgress || got.Generation != 1 {
		t.Errorf("the Deployment shows %+v, want generation 1 in progress", got)
	}
	if n := o.requests.Total(); n != 0 {
		t.Errorf("there are %d requests, want none, for nothing changed:\n%s", n, o.requests)
	}

	o.patch(made, `{"data":{"a":"drift"}}`)
	o.awaitWake("shop", false)
	drifted := o.observe(in, deploy).Objects[in.Key]
	if drifted.Fields == was.Fields || drifted.Digest != was.Digest {
		t.Errorf("the drifted object shows %+v, want other fields than %q and the digest %q", drifted, was.Fields,
			was.Digest)
	}
	o.resetWakes()
	o.patch(made, `{"data":{"b":"a field of another manager"}}`)

	status := deployed.DeepCopy()
	if err := o.admin.Status().Patch(t.Context(), status, client.RawPatch(types.MergePatchType,
		[]byte(`{"status":{"replicas":1,"readyReplicas":1}}`))); err != nil {
		t.Fatal(err)
	}
	o.awaitWake("shop", false)
	o.requests.Reset()
	if got := o.observe(in, deploy).Objects[deploy.Key]; got.Status != apis.ObjectCurrent {
		t.Errorf("the Deployment shows %+v, want the status %s", got, apis.ObjectCurrent)
	}
	if n := o.requests.Total(); n != 1 {
		t.Errorf("there are %d requests to read a status, want 1:\n%s", n, o.requests)
	}
	if n := o.wakes("shop", false); n != 1 {
		t.Errorf("woken %d times, want once: a field of another manager does not matter", n)
	}

	in.UID = made.GetUID()
	o.resetWakes()
	o.patch(made, `{"metadata":{"labels":{"`+prefix+`/owner-id":null}}}`)
	o.awaitWake("shop", false)
	if got := o.observe(in, deploy).Objects[in.Key]; got.Presence != plan.Present || got.Ownership != plan.Unlabelled || got.UID != in.UID {
		t.Errorf("the object without a label shows %+v, want it present, without an owner, with the UID %s", got,
			in.UID)
	}
	o.resetWakes()
	o.patch(deployed, `{"metadata":{"finalizers":["x.example.com/y"]}}`)
	o.delete(deployed)
	o.until("the deletion shows", deploy, func(got plan.Observed) bool { return got.Terminating && got.Status == apis.ObjectTerminating }, in)
	o.patch(deployed, `{"metadata":{"finalizers":null}}`)
	o.until("the object goes", deploy, func(got plan.Observed) bool { return got.Presence == plan.Absent && !got.TypeMissing }, in)
}

func TestOwnWritesDoNotWakeLive(t *testing.T) {
	t.Parallel()
	o := newOnline(t, nil)
	var interests []observe.Interest
	for i := range 20 {
		interests = append(interests, o.interest(configMaps, fmt.Sprint("a", i), fresh))
	}
	other := o.interest(configMaps, "other")
	all := append(interests, other)
	o.awaitLive(all...)
	resume := o.Pause(o.component)
	for _, in := range interests {
		made := o.create(o.configMap(in.Key.Name, "1"))
		o.Wrote(o.component, in, made)
		changed := made.DeepCopy()
		o.patch(changed, `{"data":{"a":"2"}}`, client.FieldOwner(manager))
		if got := o.Wrote(o.component, in, changed); got.UID != made.GetUID() || got.Ownership != plan.Ours {
			t.Errorf("the written object shows %+v, want it ours, with the UID %s", got, made.GetUID())
		}
	}
	resume()
	for _, in := range interests[:10] {
		object := o.configMap(in.Key.Name, "")
		resume := o.Pause(o.component)
		if err := o.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		o.delete(object)
		o.Deleted(o.component, in.Key, object.GetUID(), true)
		resume()
	}
	// Events come in order, so what came before this one has come.
	o.create(o.configMap("other", "1"))
	o.awaitWake("shop", false)
	if n := o.wakes("shop", false); n != 1 || o.wakes("shop", true) != 0 {
		t.Errorf("woken %v, want once", o.woken)
	}
	got := o.observe(all...)
	for i, in := range interests {
		want := plan.Present
		if i < 10 {
			want = plan.Absent
		}
		if got.Objects[in.Key].Presence != want {
			t.Errorf("%s shows %+v, want the presence %v", in.Key, got.Objects[in.Key], want)
		}
	}
}

func TestSecretsAreComparedLive(t *testing.T) {
	t.Parallel()
	o := newOnline(t, nil)
	secrets := schema.GroupKind{Kind: "Secret"}
	enc := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	in := o.interest(secrets, "s", func(in *observe.Interest) {
		in.Confidential, in.Data = true, observe.FingerprintsOf(map[string]string{"password": enc("geheim")})
	})
	made := o.create(o.ours(secrets.WithVersion("v1"), "s", map[string]any{"data": map[string]any{"password": enc("geheim")}}))
	if got := o.awaitLive(in).Objects[in.Key]; got.Content != plan.ContentSame || got.Fields == "" {
		t.Errorf("the Secret shows %+v, want the same content and fields", got)
	}
	changed := in
	changed.Data = observe.FingerprintsOf(map[string]string{"password": enc("anders")})
	if got := o.observe(changed).Objects[in.Key]; got.Content != plan.ContentDifferent {
		t.Errorf("the Secret for other data shows %+v, want different content", got)
	}
	o.patch(made, `{"data":{"password":"`+enc("anders")+`"}}`, client.FieldOwner(manager))
	o.awaitWake("shop", false)
	if got := o.observe(in).Objects[in.Key]; got.Content != plan.ContentDifferent {
		t.Errorf("the Secret that was changed shows %+v, want different content", got)
	}
	if got := o.observe(changed).Objects[in.Key]; got.Content != plan.ContentSame {
		t.Errorf("the Secret shows %+v, want the same content", got)
	}
	if got := o.Wrote(o.component, in, made); got.Content != plan.ContentDifferent {
		t.Errorf("the Secret of the answer shows %+v, want different content", got)
	}
}

func TestComponentsShareAWatch(t *testing.T) {
	o := newOnline(t, nil)
	o.create(o.configMap("a", "1"))
	// Connections stay open.
	o.awaitLive(o.interest(configMaps, "a"))
	o.Release(o.component)
	leaks := goleak.IgnoreCurrent()
	o.requests.Reset()

	in := o.interest(configMaps, "a")
	o.awaitLive(in)
	other := o.component
	other.Watcher.Name, other.UID, other.OwnerID = "other", "uid-2", "other-id"
	other.Owner = "Shop.example.com/" + o.namespace + "/other/uid-2"
	got, err := o.Observe(t.Context(), other, []observe.Interest{in})
	if err != nil {
		t.Fatal(err)
	}
	if s := got.Objects[in.Key]; s.Ownership != plan.Foreign || got.Syncing != nil {
		t.Errorf("the second component sees %+v and syncs %v, want a foreign object and no sync", s, got.Syncing)
	}
	if n := o.requests.Watches(); n != 1 {
		t.Errorf("%d watches, want 1:\n%s", n, o.requests)
	}
	o.Release(o.component)
	o.patch(o.configMap("a", ""), `{"metadata":{"labels":{"`+prefix+`/owner-id":"other-id"}}}`)
	o.awaitWake("other", false)
	o.Release(other)
	controlplanetest.NoLeaks(t, leaks)

	o.awaitLive(in)
	o.Stop()
	controlplanetest.NoLeaks(t, leaks)
}

func TestManyStatusesAreListedLive(t *testing.T) {
	t.Parallel()
	o := newOnline(t, nil)
	var interests []observe.Interest
	for i := range 12 {
		name := fmt.Sprint("d", i)
		interests = append(interests, o.interest(deployments, name, wanting))
		o.create(o.deployment(name))
	}
	o.awaitLive(interests[0])
	o.requests.Reset()
	got := o.observe(interests...)
	for _, in := range interests {
		if got.Objects[in.Key].Status != apis.ObjectInProgress {
			t.Errorf("%s shows %+v, want the status %s", in.Key, got.Objects[in.Key], apis.ObjectInProgress)
		}
	}
	if n := o.requests.Total(); n != 1 {
		t.Errorf("%d requests, want 1:\n%s", n, o.requests)
	}
}

var gadgets = schema.GroupKind{Group: "observe.test", Kind: "Gadget"}

// gadgetDefinition defines gadgets in a group. Tests that run in parallel have a group each.
func gadgetDefinition(group string) *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve},
				},
			}},
		},
	}
}

func TestTypesComeAndGo(t *testing.T) {
	t.Parallel()
	o := newOnline(t, nil)
	in := o.interest(gadgets, "g")
	missing := func(got plan.Observed) bool { return got.Presence == plan.Absent && got.TypeMissing }
	if got := o.observe(in); !missing(got.Objects[in.Key]) || got.Syncing != nil || got.Polled != nil {
		t.Fatalf("the observation is %+v, want a missing type, neither synced nor polled", got)
	}
	o.component.Now = o.component.Now.Add(999 * time.Millisecond)
	// A goroutine asks for the type meanwhile, now and then.
	controlplanetest.Eventually(t, "an observation makes no request", func(context.Context) error {
		o.requests.Reset()
		o.observe(in)
		if n := o.requests.Total(); n != 0 {
			return fmt.Errorf("there are %d:\n%s", n, o.requests)
		}
		return nil
	})
	if err := o.admin.Create(t.Context(), gadgetDefinition(gadgets.Group)); err != nil {
		t.Fatal(err)
	}
	o.until("the type appears", in, func(got plan.Observed) bool {
		o.component.Now = o.component.Now.Add(time.Second)
		return got.Presence == plan.Absent && !got.TypeMissing
	})
	made := o.create(o.ours(gadgets.WithVersion("v1"), "g", nil))
	in.UID = made.GetUID()
	o.until("the object appears", in, func(got plan.Observed) bool { return got.Presence == plan.Present && got.UID == in.UID })
	o.resetWakes()

	o.delete(gadgetDefinition(gadgets.Group))
	o.awaitWake("shop", false)
	o.until("the type goes", in, missing)

	// One that the component itself brings is not waited for.
	definition := schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	brings := interest(definition, "gadgets.observe.test", func(in *observe.Interest) { in.Key.Namespace = "" })
	o.awaitLive(brings, in)
	crd := gadgetDefinition(gadgets.Group)
	crd.Labels = map[string]string{prefix + "/owner-id": o.component.OwnerID}
	controlplanetest.Eventually(o.t, "the definition can be created", func(ctx context.Context) error {
		return o.admin.Create(ctx, crd.DeepCopy())
	})
	controlplanetest.Eventually(o.t, "the type is there", func(context.Context) error {
		if got := o.observe(brings, in).Objects[in.Key]; got.TypeMissing {
			return fmt.Errorf("observed %+v", got)
		}
		return nil
	})
	o.awaitLive(brings, in)
	o.delete(gadgetDefinition(gadgets.Group))
}

func TestATypeThatMayNotBeListedIsPolled(t *testing.T) {
	t.Parallel()
	namespace := plane.Namespace(t)
	user, err := plane.Environment(t).User(namespace)
	if err != nil {
		t.Fatal(err)
	}
	o := newOnline(t, user)
	allow := func(name string, verbs ...string) {
		t.Helper()
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: namespace + name},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}},
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: role.ObjectMeta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: namespace}},
		}
		for _, object := range []client.Object{role, binding} {
			if err := o.admin.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	in := o.interest(configMaps, "a")
	made := o.create(o.configMap("a", "1"))
	o.observe(in)
	o.awaitWake("shop", true)
	got := o.observe(in)
	if s := got.Objects[in.Key]; s.Presence != plan.PresenceUnknown || got.Polled[configMaps] != "may not be listed in the whole cluster: forbidden" {
		t.Errorf("the object shows %+v and the polled types are %v, want an unknown presence and ConfigMaps polled",
			s, got.Polled)
	}
	allow("-get", "get")
	o.until("it is read by name", in, func(got plan.Observed) bool {
		o.component.Now = o.component.Now.Add(time.Minute)
		return got.Presence == plan.Present && got.UID == made.GetUID() && got.Ownership == plan.Ours
	})
	allow("-list", "list")
	controlplanetest.Eventually(o.t, "it may be listed, not watched", func(context.Context) error {
		if got := o.observe(in); got.Polled[configMaps] != "may not be watched in the whole cluster: forbidden" {
			return fmt.Errorf("polled: %v", got.Polled)
		}
		return nil
	})
	o.resetWakes()
	allow("-watch", "watch")
	o.awaitWake("shop", true)
	o.awaitLive(in)
	o.patch(made, `{"data":{"a":"2"}}`)
	o.awaitWake("shop", false)
}

func TestATypeWhoseAPIIsDownIsPolled(t *testing.T) {
	controlplanetest.Real(t, "an APIService has to name another API server")
	o := newOnline(t, nil)
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1.down.observe.test"},
		"spec": map[string]any{
			"group": "down.observe.test", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": o.namespace, "name": "nothing"},
		},
	}}
	o.create(service)
	t.Cleanup(func() {
		if err := o.admin.Delete(context.Background(), service); err != nil {
			t.Error(err)
		}
	})
	in := o.interest(schema.GroupKind{Group: "down.observe.test", Kind: "Thing"}, "a", recorded("1"))
	healthy := o.interest(configMaps, "a")
	// The group takes a moment to show up.
	controlplanetest.Eventually(o.t, "the API is known to be down", func(context.Context) error {
		o.component.Now = o.component.Now.Add(time.Minute)
		got := o.observe(in, healthy)
		if s := got.Objects[in.Key]; s.TypeMissing || s.Presence != plan.PresenceUnknown {
			return fmt.Errorf("got %+v", s)
		}
		if reason := got.Polled[in.Key.GroupKind()]; reason != "cannot be watched: the API is unavailable" {
			return fmt.Errorf("polled: %s", reason)
		}
		return nil
	})
	controlplanetest.Eventually(o.t, "other types are watched", func(context.Context) error {
		if got := o.observe(in, healthy); got.Objects[healthy.Key].Presence != plan.Absent {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
}

func TestTheAPIServerMayGoAway(t *testing.T) {
	env := plane.Environment(t)
	o := newOnline(t, nil)
	a, b := o.interest(configMaps, "a", recorded("x")), o.interest(configMaps, "b")
	made := o.create(o.configMap("a", "1"))
	a.UID = made.GetUID()
	o.awaitLive(a, b)
	if o.Managed(o.component, a.Key) == nil {
		t.Error("nothing is known of the managed fields while the watch is open, want their entries")
	}
	if err := env.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	o.requests.Reset()
	controlplanetest.Eventually(o.t, "the watch is tried again", func(context.Context) error {
		if n := o.requests.Watches(); n < 2 {
			return fmt.Errorf("there are %d watches: %s", n, o.requests)
		}
		return nil
	})
	got := o.observe(a, b)
	if got.Objects[a.Key].Presence != plan.Present || got.Objects[b.Key].Presence != plan.Absent || got.Polled != nil {
		t.Errorf("while there is no answer, the observation is %+v, want a present, b absent and nothing polled", got)
	}
	if o.Managed(o.component, a.Key) != nil {
		t.Errorf("the managed fields are %v while there is no answer, want none, for they may be old",
			o.Managed(o.component, a.Key))
	}
	if err := env.StartAPIServer(); err != nil {
		t.Fatal(err)
	}
	o.create(o.configMap("b", "1"))
	o.delete(made)
	o.until("what happened meanwhile shows", a, func(got plan.Observed) bool { return got.Presence == plan.Absent }, b)
	o.until("what happened meanwhile shows", b, func(got plan.Observed) bool { return got.Presence == plan.Present }, a)
}

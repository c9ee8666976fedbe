package component_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// gate is a way to an API server that can be shut.
type gate struct {
	address, target string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
	hangs    bool
	accepted atomic.Int64
	running  sync.WaitGroup
}

// newGate returns an open gate, and the config that leads through it.
func newGate(t *testing.T, config *rest.Config) (*gate, *rest.Config) {
	t.Helper()
	g := &gate{address: "127.0.0.1:0", target: strings.Trim(strings.TrimPrefix(config.Host, "https://"), "/"), open: map[net.Conn]bool{}}
	g.forward(t)
	t.Cleanup(func() {
		g.refuse()
		g.running.Wait()
	})
	config = rest.CopyConfig(config)
	config.Host = "https://" + g.address
	return g, config
}

// forward lets connections through.
func (g *gate) forward(t *testing.T) { g.listen(t, false) }

// hang accepts connections, and nothing comes back.
func (g *gate) hang(t *testing.T) { g.listen(t, true) }

func (g *gate) listen(t *testing.T, hangs bool) {
	t.Helper()
	g.refuse()
	var listener net.Listener
	controlplanetest.Eventually(t, "somebody else has taken its address", func(context.Context) (err error) {
		listener, err = net.Listen("tcp", g.address)
		return err
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.address, g.listener, g.hangs = listener.Addr().String(), listener, hangs
	g.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			g.accepted.Add(1)
			g.running.Go(func() { g.serve(conn) })
		}
	})
}

// refuse ends all connections, and accepts no others.
func (g *gate) refuse() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != nil {
		_ = g.listener.Close()
	}
	for conn := range g.open {
		_ = conn.Close()
	}
}

// keep closes a connection when the gate is shut.
func (g *gate) keep(conn net.Conn) (release func(), hangs bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[conn] = true
	return func() {
		_ = conn.Close()
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.open, conn)
	}, g.hangs
}

func (g *gate) serve(conn net.Conn) {
	release, hangs := g.keep(conn)
	defer release()
	if hangs {
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	server, err := net.Dial("tcp", g.target)
	if err != nil {
		return
	}
	releaseServer, _ := g.keep(server)
	defer releaseServer()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(conn, server)
		_ = conn.Close()
	})
	_, _ = io.Copy(server, conn)
	_ = server.Close()
	back.Wait()
}

// kubeconfigSecret has the kubeconfig of a config.
func kubeconfigSecret(t *testing.T, namespace string, config *rest.Config) *corev1.Secret {
	t.Helper()
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "remote"},
		Data:       map[string][]byte{"value": kubeconfigOf(t, config)},
	}
}

// remotely deploys an assembly with the kubeconfig of the Secret.
func remotely(assembly *resources.Assembly) *resources.Assembly {
	assembly.Spec.KubeConfig = &generator.KubeConfigSpec{SecretRef: generator.SecretKeyReference{Name: "remote"}}
	return assembly
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func isReady(t *testing.T, c client.Client, assembly *resources.Assembly) {
	t.Helper()
	controlplanetest.Eventually(t, assembly.Name+" is not ready", func(ctx context.Context) error {
		return hasState(ctx, c, assembly, apis.ComponentReady)
	})
}

func says(t *testing.T, c client.Client, assembly *resources.Assembly, reason string, texts ...string) {
	t.Helper()
	controlplanetest.Eventually(t, "it does not say "+reason, func(ctx context.Context) error {
		return conditionSays(ctx, c, assembly, reason, texts...)
	})
}

// A cluster that hangs is reported, is asked seldom, keeps nobody else from working, and is used again once it is back.
func TestRemoteClusterThatHangs(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{RequestTimeout: 500 * time.Millisecond})
	way, through := newGate(t, plane.Config(t))
	far := remotely(resources.NewAssembly(namespace, "far", partOf(namespace, "far", "0")))
	create(t, c, kubeconfigSecret(t, namespace, through), far)
	isReady(t, c, far)

	// Nobody asks for anything; the watches show it.
	way.hang(t)
	text := "The cluster of the Secret " + namespace + "/remote does not answer in time"
	says(t, c, far, component.ReasonUnreachable, text)
	version := far.ResourceVersion
	before := way.accepted.Load()
	for i := range 3 {
		near := resources.NewAssembly(namespace, fmt.Sprint("near-", i), partOf(namespace, fmt.Sprint("near-", i), "0"))
		create(t, c, near)
		isReady(t, c, near)
	}
	if tries := way.accepted.Load() - before; tries > 6 {
		t.Errorf("the cluster was asked %d times, want at most 6", tries)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(far), far); err != nil || far.ResourceVersion != version {
		t.Errorf("the resource version is %s (%v), want %s, for nothing changes", far.ResourceVersion, err, version)
	}

	way.forward(t)
	isReady(t, c, far)
	way.refuse()
	says(t, c, far, component.ReasonUnreachable, "The cluster of the Secret "+namespace+"/remote does not answer: connection refused")
	way.forward(t)
	isReady(t, c, far)
}

// The deletion waits for a cluster that does not answer, until somebody decides to give up the objects there.
func TestRemoteDeletionIsAbandoned(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{RequestTimeout: 500 * time.Millisecond})
	way, through := newGate(t, plane.Config(t))
	one, two := partOf(namespace, "one", "0"), partOf(namespace, "two", "0")
	far := remotely(resources.NewAssembly(namespace, "far", one, two))
	create(t, c, kubeconfigSecret(t, namespace, through), far)
	isReady(t, c, far)

	annotate := func(value string) {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, componentPrefix+"/"+generator.AnnotationAbandon, value)
		if err := c.Patch(t.Context(), far, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	// As long as the resource is not being deleted, it counts for nothing.
	annotate(string(far.UID))
	isReady(t, c, far)
	annotate("remote")

	way.refuse()
	unreachable := "The cluster of the Secret " + namespace + "/remote does not answer: connection refused"
	says(t, c, far, component.ReasonUnreachable, unreachable)
	if err := c.Delete(t.Context(), far); err != nil {
		t.Fatal(err)
	}
	key := componentPrefix + "/" + generator.AnnotationAbandon
	says(t, c, far, component.ReasonUnreachable,
		unreachable+"; the annotation "+key+" counts only if its value is the UID "+string(far.UID))
	seen := statusesOf(t, far)
	annotate(string(far.UID))
	controlplanetest.Eventually(t, "it is not abandoned", goneFrom(c, far))

	want := "Gave up 2 objects (ConfigMap " + namespace + "/one, ConfigMap " + namespace + "/two) in the cluster of the Secret " + namespace + "/remote: " +
		"the cluster of the Secret " + namespace + "/remote does not answer: connection refused"
	if !seen(component.ReasonAbandoned, want) {
		t.Errorf("the condition before the resource went is not %s, want it with %q", component.ReasonAbandoned, want)
	}
	controlplanetest.Eventually(t, "there is no event", func(ctx context.Context) error {
		return hasWarning(ctx, c, namespace, component.ReasonAbandoned, want)
	})
	for _, part := range []*corev1.ConfigMap{one, two} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(part), &corev1.ConfigMap{}); err != nil {
			t.Errorf("what was given up is not there: %v", err)
		}
	}
}

// statusesOf watches a resource. The function that it returns reports whether there was such a condition; the resource
// must be gone.
func statusesOf(t *testing.T, a *resources.Assembly) (seen func(reason, text string) bool) {
	t.Helper()
	watching, err := client.NewWithWatch(plane.Config(t), client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	events, err := watching.Watch(t.Context(), &resources.AssemblyList{}, client.InNamespace(a.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	return func(reason, text string) bool {
		defer events.Stop()
		for event := range events.ResultChan() {
			found, ok := event.Object.(*resources.Assembly)
			if !ok || found.UID != a.UID {
				continue
			}
			for _, condition := range found.Status.Conditions {
				if condition.Reason == reason && condition.Message == text {
					return true
				}
			}
			if event.Type == "DELETED" {
				return false
			}
		}
		return false
	}
}

func hasWarning(ctx context.Context, c client.Client, namespace, reason, text string) error {
	found := &corev1.EventList{}
	if err := c.List(ctx, found, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range found.Items {
		if event := &found.Items[i]; event.Reason == reason && event.Message == text && event.Type == corev1.EventTypeWarning {
			return nil
		}
	}
	return fmt.Errorf("none of %d events is it", len(found.Items))
}

// What a user may not delete can be given up as well, but never while it can be deleted.
func TestForbiddenDeletionIsAbandoned(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{DefaultServiceAccount: "tenant"})
	user := "system:serviceaccount:" + namespace + ":tenant"
	allow(t, c, namespace, "tenant", user, "get", "list", "watch", "create", "patch")
	part := partOf(namespace, "part", "0")
	assembly := resources.NewAssembly(namespace, "all", part)
	create(t, c, assembly)
	isReady(t, c, assembly)
	if err := c.Delete(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	key := componentPrefix + "/" + generator.AnnotationAbandon
	says(t, c, assembly, component.ReasonError,
		`Unable to delete ConfigMap `+namespace+`/part: forbidden: User "`+user+`" cannot delete resource "configmaps" in API group "" in the namespace "`+namespace+`"`,
		"; the annotation "+key+": "+string(assembly.UID)+" gives up 1 object")
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, assembly.UID)
	if err := c.Patch(t.Context(), assembly, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not abandoned", goneFrom(c, assembly))
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(part), part); err != nil {
		t.Error(err)
	}

	// The annotation changes nothing for objects that can be deleted.
	allow(t, c, namespace, "deleter", user, "delete")
	other := partOf(namespace, "other", "0")
	deletable := resources.NewAssembly(namespace, "deletable", other)
	create(t, c, deletable)
	isReady(t, c, deletable)
	patch = fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, deletable.UID)
	if err := c.Patch(t.Context(), deletable, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), deletable); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not deleted", goneFrom(c, deletable, other))
}

// ownerOf returns the marks of an object.
func ownerOf(ctx context.Context, c client.Client, object client.Object) (label, text string, err error) {
	found := &corev1.ConfigMap{}
	err = c.Get(ctx, client.ObjectKeyFromObject(object), found)
	return found.Labels[componentPrefix+"/owner-id"], found.Annotations[componentPrefix+"/owner-id"], err
}

// Two management clusters deploy to one cluster, resources of the same kind, namespace and name.
func TestRemoteOwnersOfTwoManagementClusters(t *testing.T) {
	controlplanetest.SkipIfShort(t)
	t.Parallel()
	target, namespace := live(t), plane.Namespace(t)
	second, c := startOwn(t, controlplane.Options{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.CRD(), resources.AssemblyCRD()},
	})
	create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	for _, management := range []client.Client{target, c} {
		create(t, management, kubeconfigSecret(t, namespace, plane.Config(t)))
	}
	systemOf := func(c client.Client) string {
		system := &corev1.Namespace{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
			t.Fatal(err)
		}
		return string(system.UID)
	}
	part := partOf(namespace, "part", "0")
	build := func() *resources.Assembly {
		assembly := remotely(resources.NewAssembly(namespace, "all", part))
		assembly.Spec.AdoptionPolicy = generator.AdoptionPolicy("if-unowned")
		return assembly
	}

	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	first := build()
	create(t, target, first)
	isReady(t, target, first)
	_, owner, err := ownerOf(t.Context(), target, part)
	want := "Assembly.test.espalier.dev/" + namespace + "/all/" + systemOf(target) + "/" + string(first.UID)
	if err != nil || owner != want {
		t.Errorf("the owner is %q, not %q: %v", owner, want, err)
	}

	// The other one does not take it, and says whose it is.
	op := startComponents(t, second.Config(), namespace, assemblyOptions{})
	other := build()
	create(t, c, other)
	says(t, c, other, component.ReasonProcessing, "it belongs to Assembly.test.espalier.dev "+namespace+"/all of the cluster "+systemOf(target))
	if err := c.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it does not go", goneFrom(c, other))
	if _, now, err := ownerOf(t.Context(), target, part); now != want {
		t.Errorf("the owner is %q (%v), want %q: the object was changed", now, err, want)
	}
	isReady(t, target, first)

	// As the successor of the first cluster, it may take over what that one had.
	op.stop()
	startComponents(t, second.Config(), namespace, assemblyOptions{ClusterID: systemOf(target)})
	successor := build()
	create(t, c, successor)
	isReady(t, c, successor)
}

// Where a kubeconfig leads, an impersonated service account may do what the roles there allow, and errors say what it
// may not.
func TestRemoteErrorsNameThePermission(t *testing.T) {
	controlplanetest.SkipIfShort(t)
	t.Parallel()
	target, namespace := live(t), plane.Namespace(t)
	second, c := startOwn(t, controlplane.Options{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.CRD(), resources.AssemblyCRD()},
	})
	create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, kubeconfigSecret(t, namespace, plane.Config(t)))
	user := "system:serviceaccount:" + namespace + ":deployer"
	allow(t, target, namespace, "deployer", user, "get", "list", "watch", "create", "patch", "delete")
	startComponents(t, second.Config(), namespace, assemblyOptions{})
	var objects []client.Object
	for i := range 42 {
		objects = append(objects, &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("secret-%02d", i)},
		})
	}
	allowed := partOf(namespace, "allowed", "0")
	assembly := remotely(resources.NewAssembly(namespace, "all", append(objects, allowed)...))
	assembly.Spec.ServiceAccountName = "deployer"
	create(t, c, assembly)
	says(t, c, assembly, component.ReasonError, `/secret-04 and 37 more: forbidden: User "`+user+`" cannot create resource "secrets" in API group "" in the namespace "`+namespace+`"`)
	if err := target.Get(t.Context(), client.ObjectKeyFromObject(allowed), allowed); err != nil {
		t.Errorf("what is allowed was not done: %v", err)
	}
}

// Objects that were written before owners had a cluster stay ours: they are marked anew, or deleted.
func TestRemoteObjectsWithFormerMarks(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	create(t, c, kubeconfigSecret(t, namespace, plane.Config(t)))
	op := startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	part := partOf(namespace, "part", "0")
	assembly := remotely(resources.NewAssembly(namespace, "all", part))
	create(t, c, assembly)
	isReady(t, c, assembly)
	label, owner, err := ownerOf(t.Context(), c, part)
	if err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupKind{Group: resources.GroupVersion.Group, Kind: "Assembly"}
	former := engine.OwnerText(kind, client.ObjectKeyFromObject(assembly), "", assembly.UID)
	if former == owner {
		t.Fatalf("the owner with the cluster is %q, want another than without", owner)
	}
	uid := types.UID("")
	mark := func() {
		t.Helper()
		key := componentPrefix + "/owner-id"
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q},"annotations":{%q:%q}}}`, key, engine.OwnerID(former), key, former)
		found := part.DeepCopy()
		if err := c.Patch(t.Context(), found, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(componentPrefix)); err != nil {
			t.Fatal(err)
		}
		uid = found.UID
	}

	op.stop()
	mark()
	op = startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	controlplanetest.Eventually(t, "it is not marked anew", func(ctx context.Context) error {
		nowLabel, now, err := ownerOf(ctx, c, part)
		if now != owner || nowLabel != label {
			return errors.Join(fmt.Errorf("the owner is %q", now), err)
		}
		return nil
	})
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(part), part); err != nil || part.UID != uid {
		t.Errorf("the UID is %s (%v), want %s: the object was created anew", part.UID, err, uid)
	}
	isReady(t, c, assembly)
	controlplanetest.Quiet(t, op.requests)

	op.stop()
	mark()
	if err := c.Delete(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	controlplanetest.Eventually(t, "it is not deleted", goneFrom(c, assembly, part))
}

// systemReader counts how often the Namespace kube-system is read.
type systemReader struct {
	client.Reader

	reads     atomic.Int64
	forbidden atomic.Bool
}

func (r *systemReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if key.Name == metav1.NamespaceSystem {
		r.reads.Add(1)
		if r.forbidden.Load() {
			return apierrs.NewForbidden(schema.GroupResource{Resource: "namespaces"}, key.Name, errors.New("no"))
		}
	}
	return r.Reader.Get(ctx, key, object, options...)
}

// The identity of the cluster is read once, and not without a kubeconfig.
func TestRemoteClusterIDIsReadOnce(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	reader := &systemReader{}
	reader.forbidden.Store(true)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{}, func(config *reconcilers.Config) {
		reader.Reader = config.APIReader
		config.APIReader = reader
	})
	near := resources.NewAssembly(namespace, "near", partOf(namespace, "near", "0"))
	create(t, c, near)
	isReady(t, c, near)
	if n := reader.reads.Load(); n != 0 {
		t.Errorf("the ID of the cluster was read %d times for a component in the own cluster, want none", n)
	}
	far := remotely(resources.NewAssembly(namespace, "far", partOf(namespace, "far", "0")))
	create(t, c, kubeconfigSecret(t, namespace, plane.Config(t)), far)
	says(t, c, far, component.ReasonError, "the operator needs the permission to get namespaces", "must define ClusterID")
	reader.forbidden.Store(false)
	isReady(t, c, far)
	read := reader.reads.Load()
	again := remotely(resources.NewAssembly(namespace, "again", partOf(namespace, "again", "0")))
	create(t, c, again)
	isReady(t, c, again)
	if n := reader.reads.Load(); n != read {
		t.Errorf("the ID of the cluster was read %d times more, want none", n-read)
	}
}

// A resource without a namespace has no default service account, and a group without limits is refused to all.
func TestIdentitiesThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		namespace string
		configure func(*generator.Configuration)
		want      string
	}{
		"no namespace": {"", func(*generator.Configuration) {},
			`the resource is in no namespace in which the default service account "tenant" could be, and names no user to deploy it`},
		"system:masters": {"default", func(c *generator.Configuration) { c.User, c.Groups = "jane", []string{"system:masters"} },
			"the configuration is invalid: impersonation: the group system:masters is refused: it may do anything, whatever the roles are"},
	} {
		t.Run(name, func(t *testing.T) {
			assembly := resources.NewAssembly(test.namespace, "all")
			assembly.UID = "uid"
			ctx, _ := exampleCluster(assembly)
			node := assembling()
			node.DefaultServiceAccount = "tenant"
			node.Configure = func(_ context.Context, _ *resources.Assembly, c *generator.Configuration) error {
				test.configure(c)
				return nil
			}
			if _, err := node.Reconcile(ctx, assembly); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	for _, node := range []*component.ComponentReconciler[*resources.Assembly]{
		{Prefix: componentPrefix, Generator: resources.AssemblyGenerator(), DefaultServiceAccount: "a:b"},
		{Prefix: componentPrefix, Generator: resources.AssemblyGenerator(), ClusterID: "a/b"},
	} {
		if err := node.Validate(t.Context()); err == nil {
			t.Error("the validation has no error, want one")
		}
	}
}

// The derived roles allow to read kubeconfigs, the identity of the cluster, and whether a namespace goes with the rights
// of a component.
func TestPermissionsForKubeconfigs(t *testing.T) {
	const want = "Namespace get, Secret get list watch"
	for _, id := range []string{"", "east"} {
		node := assembling()
		node.ClusterID = id
		var uses []string
		for _, use := range node.Describe().Uses {
			switch use.Object.(type) {
			case *corev1.Secret:
				uses = append(uses, "Secret "+strings.Join(use.Verbs, " "))
			case *corev1.Namespace:
				uses = append(uses, "Namespace "+strings.Join(use.Verbs, " "))
			}
		}
		slices.Sort(uses)
		if got := strings.Join(uses, ", "); got != want {
			t.Errorf("with ClusterID %q: got %q, want %q", id, got, want)
		}
	}
}

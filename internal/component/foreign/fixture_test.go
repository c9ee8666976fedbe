package foreign_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/component/foreign"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// plane serves a kind that no test uses. It takes seconds until a new group can be discovered, so most kinds share a
// group.
var plane = controlplanetest.Shared{Options: controlplane.Options{
	CRDs: []*apiextensionsv1.CustomResourceDefinition{crdOf("Anchor",
		func(crd *apiextensionsv1.CustomResourceDefinition) {
			second := *crd.Spec.Versions[0].DeepCopy()
			second.Name, second.Storage = "v2", false
			crd.Spec.Versions = append(crd.Spec.Versions, second)
		})},
}}

func TestMain(m *testing.M) {
	// The tests mostly wait for the API server, each for a type of its own. This is a default: -parallel overrides it.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(plane.Main(m))
}

const (
	ownerLabel = "platform.example.com/owner-id"
	annotation = "platform.example.com/fence"
	ours       = "us"
	fenceText  = "the type is being removed by " + ownerLabel + "=" + ours + ", no more instances can be created"
	fenceRule  = "oldSelf.hasValue() // fence of " + ownerLabel + "=" + ours
)

// newScheme makes the scheme of all clients once, since that takes a while.
var newScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
})

func newClient(t testing.TB, config *rest.Config) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// live returns a client of the API server. All tests share it, since a new one has to learn what types there are.
func live(t testing.TB) client.WithWatch {
	t.Helper()
	config := plane.Config(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.client == nil {
		shared.client = newClient(t, config)
	}
	return shared.client
}

var shared struct {
	sync.Mutex
	client client.WithWatch
}

// newGuard makes a guard with clients of its own.
func newGuard(t testing.TB, config *rest.Config) *foreign.Guard {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &foreign.Guard{
		Client:       newClient(t, config),
		Discovery:    d,
		OwnerLabel:   ownerLabel,
		OwnerID:      ours,
		FieldManager: "platform.example.com",
		Margin:       -1,
		// A busy machine takes its time.
		ProofTimeout: time.Minute,
	}
}

// guarded returns a guard and counts its requests, which funcs intercept.
func guarded(t testing.TB, funcs interceptor.Funcs) (*foreign.Guard, *controlplane.Requests) {
	t.Helper()
	config, requests := controlplane.CountRequests(plane.Config(t))
	g := newGuard(t, config)
	g.Client = interceptor.NewClient(g.Client.(client.WithWatch), funcs)
	return g, requests
}

func schemaOf(schema apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceValidation {
	schema.Type = "object"
	return &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema}
}

const smithy = "smithy.example.com"

// crdOf makes the definition of a namespaced kind, which has one version that accepts everything.
func crdOf(kind string,
	change ...func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	singular := strings.ToLower(kind)
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: singular + "s." + smithy},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: smithy,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: singular + "s", Singular: singular, Kind: kind, ListKind: kind + "List",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: schemaOf(apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true)}),
			}},
		},
	}
	for _, change := range change {
		change(crd)
	}
	return crd
}

func withSchema(schema apiextensionsv1.JSONSchemaProps) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Schema = schemaOf(schema) }
}

func clusterScoped(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Spec.Scope = apiextensionsv1.ClusterScoped
}

func keyOf(crd *apiextensionsv1.CustomResourceDefinition) plan.Key {
	return plan.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: crd.Name}
}

// install creates the definition and waits until its instances can be listed. It makes it an old one, since an API
// server holds up the creation of instances of a new one for two seconds. What the test leaves of it is deleted.
func install(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	installNew(t, crd)
	controlplanetest.Eventually(t, "the definition does not age", func(ctx context.Context) error {
		fresh := stored(t, crd)
		for i := range fresh.Status.Conditions {
			fresh.Status.Conditions[i].LastTransitionTime = metav1.NewTime(fresh.CreationTimestamp.Add(-time.Hour))
		}
		return live(t).Status().Update(ctx, fresh)
	})
	return crd
}

func installNew(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	c := live(t)
	if err := c.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { uninstall(t, crd) })
	controlplanetest.Eventually(t, "the type is not served", func(ctx context.Context) error {
		return live(t).List(ctx, listOf(crd))
	})
}

func uninstall(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if err := live(t).Delete(context.Background(), crd.DeepCopy()); client.IgnoreNotFound(err) != nil {
		t.Errorf("the clean-up ends with %v, want the definition deleted", err)
	}
}

func listOf(crd *apiextensionsv1.CustomResourceDefinition) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.APIVersion, list.Kind = crd.Spec.Group+"/"+crd.Spec.Versions[0].Name, crd.Spec.Names.Kind+"List"
	return list
}

// instance makes an instance in the namespace, which is left out for a cluster-wide type, with the owner, if there is
// one.
func instance(crd *apiextensionsv1.CustomResourceDefinition, namespace, name,
	ownerID string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
	object.SetKind(crd.Spec.Names.Kind)
	object.SetName(name)
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		object.SetNamespace(namespace)
	}
	if ownerID != "" {
		object.SetLabels(map[string]string{ownerLabel: ownerID})
	}
	return object
}

func create(t testing.TB, object client.Object) {
	t.Helper()
	if err := live(t).Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// stored reads the definition; nil if there is none.
func stored(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	fresh := &apiextensionsv1.CustomResourceDefinition{}
	err := live(t).Get(t.Context(), client.ObjectKeyFromObject(crd), fresh)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}

// fences counts the versions that have our rule.
func fences(crd *apiextensionsv1.CustomResourceDefinition) int {
	n := 0
	for _, v := range crd.Spec.Versions {
		for _, rule := range v.Schema.OpenAPIV3Schema.XValidations {
			if rule.Rule == fenceRule {
				n++
			}
		}
	}
	return n
}

// assertFences fails unless that many versions have the rule, and the annotation says the same.
func assertFences(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition, want int) {
	t.Helper()
	fresh := stored(t, crd)
	if fresh == nil {
		t.Fatalf("%s is gone, want it stored", crd.Name)
	}
	if got := fences(fresh); got != want {
		t.Errorf("%d versions are fenced, not %d", got, want)
	}
	if got := foreign.Fenced(fresh, annotation); got != (want > 0) {
		t.Errorf("that the definition is fenced is %v, want %v: %s", got, want > 0, fresh.Annotations[annotation])
	}
	if len(fresh.Finalizers) > 0 && fresh.DeletionTimestamp == nil {
		t.Errorf("the definition has the finalizers %v, want none", fresh.Finalizers)
	}
}

func assertGone(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	controlplanetest.Eventually(t, "the definition does not go", func(context.Context) error {
		if fresh := stored(t, crd); fresh != nil {
			return fmt.Errorf("deletion timestamp %v, fences %d", fresh.DeletionTimestamp, fences(fresh))
		}
		return nil
	})
}

func assertUse(t testing.TB, use plan.Use, err error, want plan.Use) {
	t.Helper()
	if err != nil {
		t.Fatalf("failed: %v", err)
	}
	// The reason says as well whether it is the fence that failed.
	use.Unfenced = want.Unfenced
	if fmt.Sprintf("%+v", use) != fmt.Sprintf("%+v", want) {
		t.Fatalf("the use is\n%+v, not\n%+v", use, want)
	}
}

var none = plan.Use{State: plan.ForeignNone}

func blocking(more int, instances ...string) plan.Use {
	return plan.Use{State: plan.ForeignBlocking, Instances: instances, More: more}
}

func unknown(reason string) plan.Use {
	return plan.Use{State: plan.ForeignUnknown, Reason: reason}
}

func eventuallyCreates(t *testing.T, object client.Object) {
	t.Helper()
	c := live(t)
	controlplanetest.Eventually(t, "it cannot be created", func(ctx context.Context) error {
		return c.Create(ctx, object)
	})
}

// afterMargin makes a call again until no margin runs, and waits for that.
func afterMargin(ctx context.Context, call func() (plan.Use, error)) (plan.Use, error) {
	for {
		use, err := call()
		if err != nil || use.State != plan.ForeignFenced {
			return use, err
		}
		sleep(ctx, time.Until(use.Until))
	}
}

// checkOne checks a type, and with fence also fences it off, as the engine does.
func checkOne(ctx context.Context, g *foreign.Guard, key plan.Key, fence bool) (plan.Use, error) {
	return afterMargin(ctx, func() (plan.Use, error) { return checkOnce(ctx, g, key, fence) })
}

func checkOnce(ctx context.Context, g *foreign.Guard, key plan.Key, fence bool) (plan.Use, error) {
	use, err := g.Check(ctx, key)
	if !fence || err != nil || use.State != plan.ForeignNone {
		return use, err
	}
	for _, dryRun := range []bool{true, false} {
		outcome := g.Fence(ctx, []plan.Key{key}, dryRun)[0]
		if use, err = outcome.Use, outcome.Err; err != nil || use.State != plan.ForeignNone {
			break
		}
	}
	return use, err
}

// deleteOne deletes one type.
func deleteOne(ctx context.Context, g *foreign.Guard, key plan.Key, uid types.UID) (plan.Use, error) {
	return afterMargin(ctx, func() (plan.Use, error) {
		outcome := g.Delete(ctx, []foreign.Target{{Key: key, UID: uid}})[0]
		return outcome.Use, outcome.Err
	})
}

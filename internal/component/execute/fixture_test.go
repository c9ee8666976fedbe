package execute_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{
	CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.CRD()},
}}

func TestMain(m *testing.M) {
	os.Exit(plane.Main(m))
}

const (
	prefix        = "platform.example.com"
	ownerLabel    = prefix + "/owner-id"
	ownerNote     = prefix + "/owner-id"
	digestNote    = prefix + "/digest"
	myOwner       = "App.example.com/shop/web/0001"
	predecessor   = "App.example.com/shop/web/0000"
	otherOwner    = "App.example.com/shop/db/0002"
	myID          = "mine"
	predecessorID = "predecessors"
	otherID       = "others"
)

// bench is an API server with a namespace for one test, and an executor of a component.
type bench struct {
	testing.TB
	client.Client
	namespace string
	requests  *controlplane.Requests
	executor  *execute.Executor
}

// newBench returns a bench with an executor; funcs intercept its requests.
func newBench(t testing.TB, funcs ...interceptor.Funcs) *bench {
	t.Helper()
	free, err := client.NewWithWatch(plane.Config(t), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	config, requests := controlplane.CountRequests(plane.Config(t))
	counted, err := client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range funcs {
		counted = interceptor.NewClient(counted, f)
	}
	return &bench{
		TB: t, Client: free, namespace: plane.Namespace(t), requests: requests,
		executor: &execute.Executor{
			Client:  counted,
			Mark:    execute.Mark{Prefix: prefix, ID: myID, Owner: myOwner},
			Reclaim: []string{"kubectl"},
			Objects: map[plan.Key]*manifest.Object{},
			Records: map[plan.Key]apis.InventoryRecord{},
		},
	}
}

// object parses YAML, and gives it the namespace of the bench if it has none and is namespaced.
func (b *bench) object(text string) *unstructured.Unstructured {
	b.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), o); err != nil {
		b.Fatal(err)
	}
	if namespaced, err := b.IsObjectNamespaced(o); err == nil && !namespaced {
		return o
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(b.namespace)
	}
	return o
}

func keyOf(o client.Object) plan.Key {
	kind := o.GetObjectKind().GroupVersionKind()
	return plan.Key{Group: kind.Group, Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// desire makes an object desired, with a digest, and returns its manifest.
func (b *bench) desire(text, digest string, change ...func(*manifest.Object)) *unstructured.Unstructured {
	b.Helper()
	o := b.object(text)
	key := keyOf(o)
	m := manifest.Given(o)
	m.Confidential = key.Kind == "Secret"
	m.Desired = plan.Desired{Key: key, Version: o.GroupVersionKind().Version, Digest: digest,
		AdoptionPolicy: apis.AdoptIfUnowned, UpdatePolicy: apis.UpdateApply}
	for _, c := range change {
		c(&m)
	}
	b.executor.Objects[key] = &m
	return o
}

func ignoring(pointers ...string) func(*manifest.Object) {
	return func(m *manifest.Object) { m.Settings = generator.Settings{IgnoreFields: pointers} }
}

func operation(action plan.Action, o client.Object) plan.Operation {
	return plan.Operation{Action: action, Key: keyOf(o), Version: o.GetObjectKind().GroupVersionKind().Version,
		UID: o.GetUID(), Pattern: -1}
}

// run executes one operation.
func (b *bench) run(op plan.Operation) execute.Result {
	b.Helper()
	results := b.executor.Run(b.Context(), plan.Stage{Operations: []plan.Operation{op}})
	if len(results) != 1 {
		b.Fatalf("there are %d results of one operation, want 1", len(results))
	}
	return results[0]
}

// do executes one operation. It has to succeed, and to make exactly that many requests.
func (b *bench) do(op plan.Operation, requests int) execute.Result {
	b.Helper()
	b.warm(op)
	result := b.run(op)
	if result.Err != nil {
		b.Fatalf("%s failed: %v", op.Action, result.Err)
	}
	if got := b.requests.Total(); got != requests {
		b.Errorf("%s made %d requests, want %d:\n%s", op.Action, got, requests, b.requests)
	}
	return result
}

// warm has the client discover the type, which is not what is counted.
func (b *bench) warm(op plan.Operation) {
	b.Helper()
	if _, err := b.executor.Client.RESTMapper().RESTMapping(op.Key.GroupKind(), op.Version); err != nil {
		b.Fatal(err)
	}
	b.requests.Reset()
}

// create creates a desired object by the executor.
func (b *bench) create(o client.Object) *unstructured.Unstructured {
	b.Helper()
	op := operation(plan.ActionCreate, o)
	op.UID = ""
	return b.do(op, 1).Object
}

// put creates an object as another client.
func (b *bench) put(text string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	b.Helper()
	o := b.object(text)
	for _, c := range change {
		c(o)
	}
	if err := b.Create(b.Context(), o, client.FieldOwner("somebody")); err != nil {
		b.Fatal(err)
	}
	return o
}

func ownedBy(id, owner string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		labels, notes := o.GetLabels(), o.GetAnnotations()
		if labels == nil {
			labels = map[string]string{}
		}
		if notes == nil {
			notes = map[string]string{}
		}
		if id != "" {
			labels[ownerLabel] = id
		}
		if owner != "" {
			notes[ownerNote] = owner
		}
		o.SetLabels(labels)
		o.SetAnnotations(notes)
	}
}

// live reads an object.
func (b *bench) live(o client.Object) *unstructured.Unstructured {
	b.Helper()
	live := named(o)
	if err := b.Get(b.Context(), client.ObjectKeyFromObject(o), live); err != nil {
		b.Fatal(err)
	}
	return live
}

func named(o client.Object) *unstructured.Unstructured {
	n := &unstructured.Unstructured{}
	n.SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
	n.SetNamespace(o.GetNamespace())
	n.SetName(o.GetName())
	return n
}

func (b *bench) absent(o client.Object) {
	b.Helper()
	if err := b.Get(b.Context(), client.ObjectKeyFromObject(o), named(o)); !apierrs.IsNotFound(err) {
		b.Errorf("%s is still there (%v), want it gone", o.GetName(), err)
	}
}

// another deletes an object, and makes another one of the same content.
func (b *bench) another(o *unstructured.Unstructured) *unstructured.Unstructured {
	b.Helper()
	if err := b.Delete(b.Context(), named(o)); err != nil {
		b.Fatal(err)
	}
	n := o.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(n.Object, "metadata", field)
	}
	if err := b.Create(b.Context(), n, client.FieldOwner("somebody")); err != nil {
		b.Fatal(err)
	}
	return n
}

// patch changes an object by a merge patch on behalf of manager.
func (b *bench) patch(ctx context.Context, o client.Object, manager, patch string) {
	b.Helper()
	if err := b.Patch(ctx, named(o), client.RawPatch(types.MergePatchType, []byte(patch)),
		client.FieldOwner(manager)); err != nil {
		b.Fatal(err)
	}
}

// field returns a string field, empty if there is none.
func field(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}

func number(o *unstructured.Unstructured, path ...string) int64 {
	n, _, _ := unstructured.NestedInt64(o.Object, path...)
	return n
}

// wantStale checks that the operation found that its object is not there any more.
func wantStale(t testing.TB, result execute.Result, replaced bool) {
	t.Helper()
	var stale *execute.StaleError
	if !errors.As(result.Err, &stale) || stale.Replaced != replaced {
		t.Errorf("%s: got the error %v, want one that says so (replaced: %t)", result.Operation.Action, result.Err,
			replaced)
	}
	if !result.Gone {
		t.Errorf("%s: the object counts as being there, want it gone", result.Operation.Action)
	}
}

// wantOwner checks that the operation was refused because of the ownership of the object.
func wantOwner(t testing.TB, result execute.Result, ownership plan.Ownership) {
	t.Helper()
	var owner *execute.OwnerError
	if !errors.As(result.Err, &owner) || owner.Ownership != ownership {
		t.Errorf("%s: got the error %v, want one about an owner (%d)", result.Operation.Action, result.Err, ownership)
	}
}

// wantText checks the text of an error, in which the namespace of the bench is called NS.
func (b *bench) wantText(err error, want string) {
	b.Helper()
	got := "no error"
	if err != nil {
		got = strings.ReplaceAll(err.Error(), b.namespace, "NS")
	}
	if got != want {
		b.Errorf("got the error\n\t%s\nwant\n\t%s", got, want)
	}
}

// managersOf lists the managed fields entries of an object, without those of subresources.
func managersOf(o client.Object) []string {
	var managers []string
	for _, entry := range o.GetManagedFields() {
		if entry.Subresource == "" {
			managers = append(managers, entry.Manager+" "+string(entry.Operation)+" "+entry.APIVersion)
		}
	}
	return managers
}

// observeManaged makes our managed fields of the object o known to the executor, as they were when the object existed
// last.
func (b *bench) observeManaged(o client.Object) {
	var entries []metav1.ManagedFieldsEntry
	b.executor.Managed = func(key plan.Key) []metav1.ManagedFieldsEntry {
		live := named(o)
		if key != keyOf(o) || b.Get(b.Context(), client.ObjectKeyFromObject(o), live) != nil ||
			live.GetUID() != o.GetUID() {
			return entries
		}
		entries = slices.DeleteFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Manager != prefix || entry.Subresource != ""
		})
		return entries
	}
	b.executor.Managed(keyOf(o))
}

// nothingToMerge makes managed fields known to the executor that need not be merged.
func (b *bench) nothingToMerge() {
	b.executor.Managed = func(plan.Key) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: prefix, Operation: metav1.ManagedFieldsOperationApply,
			APIVersion: "v1", FieldsType: "FieldsV1"}}
	}
}

const configMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
data: {a: "1", b: "2"}
`

var configMaps = schema.GroupResource{Resource: "configmaps"}

func conflict(name string) error {
	return apierrs.NewConflict(configMaps, name, errors.New("it was changed"))
}

func equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

func isConflict(err error) bool { return apierrs.IsConflict(err) }

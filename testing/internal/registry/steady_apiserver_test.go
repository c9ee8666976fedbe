package registry_test

import (
	"context"
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/registry/registrytest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	events "k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// silent is a client that refuses to write.
type silent struct{ client.Client }

var errWrite = errors.New("there is a write")

func (silent) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errWrite
}

func (silent) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errWrite
}

// asCached returns what a cache has of an object: it reads protobuf, which leaves out the kinds of what is nested.
func asCached(t *testing.T, obj client.Object) client.Object {
	t.Helper()
	codec := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme)
	data, err := runtime.Encode(codec, obj)
	if err != nil {
		t.Fatal(err)
	}
	read, err := runtime.Decode(codec, data)
	if err != nil {
		t.Fatal(err)
	}
	return read.(client.Object)
}

const steadyManager = "steady"

// manageOnce calls a new object manager, as the first request after a restart does.
func manageOnce(t *testing.T, c client.Client, actual, desired client.Object) (client.Object, error) {
	t.Helper()
	config := reconcilers.Config{Client: c, Recorder: events.NewFakeRecorder(100)}
	ctx := reconcilers.StashOriginalConfig(reconcilers.StashConfig(t.Context(), config), config)
	m := &reconcilers.ApplyingObjectManager[client.Object]{Type: desired, FieldManager: steadyManager}
	resource := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "resource"}}
	return m.Manage(ctx, resource, actual, desired.DeepCopyObject().(client.Object))
}

// writtenAgain are the samples that are written after a restart, with the reason.
var writtenAgain = map[string]string{
	"CertificateSigningRequest.v1/registry-x, created": "the API server keeps no owners of its spec",
	"CertificateSigningRequest.v1/registry-x, applied": "the API server keeps no owners of its spec",
	"LimitRange.v1/rich, applied":                      "the API server makes limits of each other",
	"LimitRange.v1/bare, applied":                      "the API server makes limits of each other",
}

// Invariant L1, of each kind: after a restart, nothing is written of an object that was created or applied before.
// Nothing is stored.
func TestL1NoSampleIsWrittenAfterARestart(t *testing.T) {
	t.Parallel()
	server := serverClient(t)
	dry := client.NewDryRunClient(server)
	for _, obj := range registrytest.Samples(t, plane.Namespace(t)) {
		obj.SetLabels(reconcilers.MergeMaps(obj.GetLabels(), map[string]string{"app": "steady"}))
		wanted, err := managedfields.FromObject(obj, obj.GetObjectKind().GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		name := registrytest.Name(obj)
		steady := func(t *testing.T, name string, there client.Object) {
			there = asCached(t, there)
			_, err := manageOnce(t, silent{server}, there, obj)
			if known := writtenAgain[name]; (err != nil) != (known != "") {
				content, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(there)
				owner := managedfields.Owner{Name: steadyManager}
				found := managedfields.Compare(wanted, content, there.GetManagedFields(), owner, false)
				t.Errorf("after a restart: %v, want none unless %q: %v", err, known, found)
			}
		}
		t.Run(name+", created", func(t *testing.T) {
			created, err := manageOnce(t, dry, nil, obj)
			if err != nil {
				t.Fatal(err)
			}
			steady(t, name+", created", created)
		})
		t.Run(name+", applied", func(t *testing.T) {
			body := wanted.Object()
			config := client.ApplyConfigurationFromUnstructured(body)
			if err := dry.Apply(t.Context(), config, client.FieldOwner(steadyManager)); err != nil {
				t.Skipf("it cannot be applied: %v", err)
			}
			applied := obj.DeepCopyObject().(client.Object)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(body.Object, applied); err != nil {
				t.Fatal(err)
			}
			steady(t, name+", applied", applied)
		})
	}
}

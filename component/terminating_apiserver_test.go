package component_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func deployerOf(namespace string) string { return "system:serviceaccount:" + namespace + ":deployer" }

// deploysInto has a component in a namespace of a tenant deploy into a namespace with the rights of the tenant.
func deploysInto(
	t *testing.T, c client.Client, namespace, into string, change ...func(*reconcilers.Config),
) *resources.Assembly {
	t.Helper()
	startComponents(t, plane.Config(t), namespace, assemblyOptions{}, change...)
	return installedInto(t, c, namespace, into)
}

// installedInto has an operator that runs install a component with the rights of a tenant.
func installedInto(t *testing.T, c client.Client, namespace, into string) *resources.Assembly {
	t.Helper()
	allow(t, c, into, "deployer", deployerOf(namespace), "get", "list", "watch", "create", "patch", "delete")
	assembly := resources.NewAssembly(namespace, "all", partOf(into, "part", "0"))
	assembly.Spec.ServiceAccountName = "deployer"
	create(t, c, assembly)
	isReady(t, c, assembly)
	return assembly
}

// loses takes the rights in a namespace from a tenant, and waits until they are gone.
func loses(t *testing.T, c client.Client, namespace, into string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: into, Name: "deployer"}
	remove(t, c, &rbacv1.RoleBinding{ObjectMeta: meta}, &rbacv1.Role{ObjectMeta: meta})
	config := rest.CopyConfig(plane.Config(t))
	config.Impersonate.UserName = deployerOf(namespace)
	as, err := client.New(config, client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the rights do not go", func(ctx context.Context) error {
		err := as.Get(ctx, client.ObjectKey{Namespace: into, Name: "part"}, &corev1.ConfigMap{})
		if !apierrs.IsForbidden(err) {
			return fmt.Errorf("the answer is %w, want it forbidden", err)
		}
		return nil
	})
}

func remove(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNamespaceOfATenantGoes: the rights of a component go with its namespace before the component does. Its objects
// there go with the namespace, too, so nothing waits for them.
func TestNamespaceOfATenantGoes(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	assembly := deploysInto(t, c, namespace, namespace)
	remove(t, c, namespaceOf(namespace))
	loses(t, c, namespace, namespace)
	remove(t, c, assembly)
	controlplanetest.Eventually(t, "it does not go", goneFrom(c, assembly))
	// No controller takes away what is in a namespace here.
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "part"}, &corev1.ConfigMap{}); err != nil {
		t.Errorf("the object is read with %v, want that it was left to the namespace", err)
	}
}

// accounts has an API server answer requests of service accounts with a status, unless that is 0.
type accounts struct {
	next   http.RoundTripper
	answer *atomic.Int32
}

func (a *accounts) RoundTrip(request *http.Request) (*http.Response, error) {
	code := int(a.answer.Load())
	if code == 0 || !strings.HasPrefix(request.Header.Get(transport.ImpersonateUserHeader), "system:serviceaccount:") {
		return a.next.RoundTrip(request)
	}
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: request,
	}, nil
}

// TestAccountThatIsGone: an account that is refused as such counts like one without rights, in deletes, and in the
// reads of an operator that has just started.
func TestAccountThatIsGone(t *testing.T) {
	t.Parallel()
	c := live(t)
	const deletes, reads = "gives up 1 object (ConfigMap ", "it is not known yet whether it exists"
	for name, test := range map[string]struct {
		answer       int32
		restarted    bool
		reason, text string
	}{
		"unauthorized to delete": {http.StatusUnauthorized, false, component.ReasonError, deletes},
		"unauthorized to read":   {http.StatusUnauthorized, true, component.ReasonDeletionProcessing, reads},
		"forbidden to read":      {http.StatusForbidden, true, component.ReasonDeletionProcessing, reads},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace, answer := plane.Namespace(t), &atomic.Int32{}
			config := rest.CopyConfig(plane.Config(t))
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &accounts{next, answer} })
			op := startComponents(t, config, namespace, assemblyOptions{})
			assembly := installedInto(t, c, namespace, namespace)
			answer.Store(test.answer)
			if test.restarted {
				op.stop()
				startComponents(t, config, namespace, assemblyOptions{})
			}
			remove(t, c, assembly)
			says(t, c, assembly, test.reason, test.text, namespace+"/part")
			remove(t, c, namespaceOf(namespace))
			controlplanetest.Eventually(t, "it does not go", goneFrom(c, assembly))
			part := client.ObjectKey{Namespace: namespace, Name: "part"}
			if err := c.Get(t.Context(), part, &corev1.ConfigMap{}); err != nil {
				t.Errorf("the object is read with %v, want that it was left to the namespace", err)
			}
		})
	}
}

// TestRightsThatAreGoneBlock: rights that are gone block the deletion where the namespace of the object stays, even if
// that of the resource goes, and where the operator may not find out.
func TestRightsThatAreGoneBlock(t *testing.T) {
	t.Parallel()
	c := live(t)
	t.Run("another namespace", func(t *testing.T) {
		t.Parallel()
		namespace, into := plane.Namespace(t), plane.Namespace(t)
		assembly := deploysInto(t, c, namespace, into)
		remove(t, c, namespaceOf(namespace))
		loses(t, c, namespace, into)
		remove(t, c, assembly)
		says(t, c, assembly, component.ReasonError, "forbidden", "gives up 1 object (ConfigMap "+into+"/part)")
		allow(t, c, into, "deployer", deployerOf(namespace), "get", "list", "watch", "create", "patch", "delete")
		controlplanetest.Eventually(t, "it does not go", goneFrom(c, assembly))
		if err := goneFrom(c, partOf(into, "part", "0"))(t.Context()); err != nil {
			t.Errorf("the object was not deleted: %v", err)
		}
	})
	t.Run("the right to read namespaces", func(t *testing.T) {
		t.Parallel()
		namespace := plane.Namespace(t)
		assembly := deploysInto(t, c, namespace, namespace, func(config *reconcilers.Config) {
			config.APIReader = noNamespaces{config.APIReader}
		})
		remove(t, c, namespaceOf(namespace))
		loses(t, c, namespace, namespace)
		remove(t, c, assembly)
		says(t, c, assembly, component.ReasonError, "it is not known whether it goes with its namespace",
			"unable to read the Namespace "+namespace, "gives up 1 object (ConfigMap "+namespace+"/part)")
	})
}

// noNamespaces reads for an operator that may not read Namespaces.
type noNamespaces struct{ client.Reader }

func (r noNamespaces) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	if object.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
		return apierrs.NewForbidden(corev1.Resource("namespaces"), key.Name, errors.New("no"))
	}
	return r.Reader.Get(ctx, key, object, options...)
}

// TestLastKubeConfigDeletes: the kubeconfig goes with the namespace of the resource before the resource does. The last
// one that worked deletes what is in the other cluster.
func TestLastKubeConfigDeletes(t *testing.T) {
	t.Parallel()
	c, namespace, into := live(t), plane.Namespace(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	secret, part := kubeconfigSecret(t, namespace, plane.Config(t)), partOf(into, "part", "0")
	assembly := remotely(resources.NewAssembly(namespace, "all", part))
	create(t, c, secret, assembly)
	isReady(t, c, assembly)
	remove(t, c, namespaceOf(namespace), secret, assembly)
	controlplanetest.Eventually(t, "it does not go", goneFrom(c, assembly))
	if err := goneFrom(c, part)(t.Context()); err != nil {
		t.Errorf("the object was not deleted: %v", err)
	}
}

// TestLastKubeConfigStaysUnused: the last kubeconfig that worked is used for nothing but a resource that is deleted
// with its namespace. In all other cases, a Secret that is gone keeps the component from the other cluster.
func TestLastKubeConfigStaysUnused(t *testing.T) {
	t.Parallel()
	c := live(t)
	for name, goes := range map[string]func(assembly *resources.Assembly) client.Object{
		"the namespace stays": func(assembly *resources.Assembly) client.Object { return assembly },
		"the resource stays":  func(assembly *resources.Assembly) client.Object { return namespaceOf(assembly.Namespace) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace, into := plane.Namespace(t), plane.Namespace(t)
			startComponents(t, plane.Config(t), namespace, assemblyOptions{})
			secret, part := kubeconfigSecret(t, namespace, plane.Config(t)), partOf(into, "part", "0")
			assembly := remotely(resources.NewAssembly(namespace, "all", part))
			create(t, c, secret, assembly)
			isReady(t, c, assembly)
			remove(t, c, secret, goes(assembly))
			desire(t, c, assembly, partOf(into, "other", "0"))
			reason, hint := component.ReasonRetrying, ""
			if name == "the namespace stays" {
				reason, hint = component.ReasonDeletionRetrying, "gives up 1 object (ConfigMap "+into+"/part)"
			}
			text := "The Secret " + namespace + "/remote of the kubeconfig does not exist"
			controlplanetest.Eventually(t, "the new generation is not refused", func(ctx context.Context) error {
				if err := conditionSays(ctx, c, assembly, reason, text, hint); err != nil {
					return err
				}
				if assembly.Status.ObservedGeneration != assembly.Generation {
					return fmt.Errorf("generation %d is not seen", assembly.Generation)
				}
				return nil
			})
			err := c.Get(t.Context(), client.ObjectKeyFromObject(part), part)
			if err != nil || part.DeletionTimestamp != nil {
				t.Errorf("the object is read with %v, and deleted at %v, want it as it was", err, part.DeletionTimestamp)
			}
			if err := goneFrom(c, partOf(into, "other", "0"))(t.Context()); err != nil {
				t.Errorf("something was written: %v", err)
			}
		})
	}
}

// TestTypeOfTheResourceGoes: the type of the resource is deleted before the resource is. The API server deletes the
// resource, and keeps the type until the component is deleted in its order.
func TestTypeOfTheResourceGoes(t *testing.T) {
	t.Parallel()
	controlplanetest.SkipIfShort(t)
	env, c := startOwn(t, controlplane.Options{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.AssemblyCRD()},
	})
	namespace := "crd-goes"
	create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	startComponents(t, env.Config(), namespace, assemblyOptions{})
	first, second := partOf(namespace, "first", "0"), partOf(namespace, "second", "0")
	first.Finalizers = []string{"example.com/archive"}
	second.Annotations[generator.SharedPrefix+"/"+generator.AnnotationDeleteOrder] = "1"
	assembly := resources.NewAssembly(namespace, "all", first, second)
	create(t, c, assembly)
	isReady(t, c, assembly)

	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	definition.SetName(resources.AssemblyCRD().Name)
	remove(t, c, definition)
	controlplanetest.Eventually(t, "the component is not being deleted", func(ctx context.Context) error {
		return hasState(ctx, c, assembly, apis.ComponentDeleting)
	})
	says(t, c, assembly, component.ReasonDeletionProcessing,
		"2 objects left to delete, waiting for ConfigMap "+namespace+"/first")
	for _, object := range []client.Object{second, definition} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Errorf("while the first object goes, %s is read with %v, want it there", object.GetName(), err)
		}
	}
	if second.DeletionTimestamp != nil || definition.GetDeletionTimestamp() == nil {
		t.Errorf("the second object is deleted at %v, and the type at %v, want the type alone",
			second.DeletionTimestamp, definition.GetDeletionTimestamp())
	}
	release := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := c.Patch(t.Context(), first, release); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "something stays", goneFrom(c, first, second, definition))
}

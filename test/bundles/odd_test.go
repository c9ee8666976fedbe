package bundles_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// othersWrite lets others write what no manifest of the odd bundle has: they scale, restart, label and authenticate. It
// waits until the component is ready with that.
func (b *bundle) othersWrite() {
	b.Helper()
	meta := metav1.ObjectMeta{Namespace: b.values.Namespace}
	patch := func(object client.Object, name, text string) {
		b.Helper()
		object.SetName(name)
		must(b, b.Patch(b.Context(), object, client.RawPatch(types.MergePatchType, []byte(text)), client.FieldOwner("somebody")))
	}
	patch(&appsv1.Deployment{ObjectMeta: meta}, "scaled", `{"spec":{"replicas":5,"template":{"metadata":{"annotations":`+
		`{"kubectl.kubernetes.io/restartedAt":"2020-01-02T03:04:05Z"}}}}}`)
	patch(&corev1.ServiceAccount{ObjectMeta: meta}, "user",
		`{"imagePullSecrets":[{"name":"theirs"}],"metadata":{"labels":{"theirs":"yes"}}}`)
	eventually(b, "the Deployment is not rolled out", func(ctx context.Context) error {
		deployment := &appsv1.Deployment{ObjectMeta: meta}
		deployment.Name = "scaled"
		if err := b.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		if deployment.Status.ObservedGeneration != deployment.Generation {
			return fmt.Errorf("the status is of generation %d", deployment.Status.ObservedGeneration)
		}
		return nil
	})
	eventually(b, "it is not ready", isReady(b, b.assembly))
}

// kept returns what others and the API server have written into the objects of the odd bundle.
func (b *bundle) kept() map[string]any {
	b.Helper()
	values := map[string]any{}
	get := func(object client.Object, name string) {
		b.Helper()
		must(b, b.Get(b.Context(), types.NamespacedName{Namespace: b.values.Namespace, Name: name}, object))
		values[name+" uid"] = object.GetUID()
	}
	deployment, user := &appsv1.Deployment{}, &corev1.ServiceAccount{}
	get(deployment, "scaled")
	values["replicas"], values["restart"] = *deployment.Spec.Replicas, deployment.Spec.Template.Annotations
	get(user, "user")
	values["secrets"], values["label"] = user.ImagePullSecrets, user.Labels["theirs"]
	for _, name := range []string{"clusterip", "nodeport", "loadbalancer", "headless"} {
		service := &corev1.Service{}
		get(service, name)
		values[name] = service.Spec
	}
	ingress := &networkingv1.Ingress{}
	get(ingress, "front")
	values["class"] = *ingress.Spec.IngressClassName
	return values
}

// Lists, exported objects, other spellings and null fields are installed as others install them, and cause no writes. What
// the API server and others have written stays over an upgrade.
func TestOddBundle(t *testing.T) {
	controlplanetest.Real(t, "a controller has to aggregate ClusterRoles")
	t.Parallel()
	c := live(t)
	class := &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}},
		Spec:       networkingv1.IngressClassSpec{Controller: "example.com/ingress"},
	}
	class.GenerateName = "odd-"
	must(t, c.Create(t.Context(), class))
	t.Cleanup(func() { must(t, c.Delete(context.Background(), class)) })
	b := newBundle(t, "odd")
	runDeployments(t, b, b.values.Namespace, nil)
	b.install()
	b.isAsDesired()
	b.log("install")
	b.rests()

	b.othersWrite()
	b.rests()
	before := b.kept()
	if want := fmt.Sprint(int32(5)); fmt.Sprint(before["replicas"]) != want || before["class"] != class.Name {
		t.Errorf("before the upgrade: %v", before)
	}
	b.upgrade()
	eventually(t, "it is not ready", isReady(b, b.assembly))
	if diff := cmp.Diff(before, b.kept()); diff != "" {
		t.Errorf("the upgrade has changed what it does not have: %s", diff)
	}
	b.log("upgrade")
	b.rests()
	b.heals()
	b.rests()
	b.goes()
}

// A policy that rewrites a field of an object is no fight: each change of the object is written once, and the component
// rests.
func TestPolicyThatRewrites(t *testing.T) {
	controlplanetest.Real(t, "a MutatingAdmissionPolicy has to rewrite objects")
	t.Parallel()
	c, home := live(t), plane.Namespace(t)
	for _, object := range expanded(t, manifests(t, "rewriting", values{Namespace: home})) {
		must(t, c.Create(t.Context(), object))
		t.Cleanup(func() { must(t, c.Delete(context.Background(), object)) })
	}
	eventually(t, "the policy is not in force", func(ctx context.Context) error {
		trial := configMap(home, "trial")
		if err := c.Create(ctx, trial, client.DryRunAll); err != nil || trial.Data["name"] != "rewritten" {
			return fmt.Errorf("%v, %w", trial.Data, err)
		}
		return nil
	})
	requests := startOperator(t, home, resources.AssemblyGenerator(), options{})
	mine := configMap(home, "mine")
	assembly := resources.NewAssembly(home, "all", mine)
	written := func(want int) {
		t.Helper()
		controlplanetest.Rest(t, requests)
		n := 0
		for request, count := range requests.Counts() {
			if strings.Contains(request.Path, "/configmaps") && slices.Contains([]string{"create", "patch", "update"}, request.Verb) {
				n += count
			}
		}
		if n != want {
			t.Errorf("%d writes, not %d:\n%s", n, want, requests)
		}
		requests.Reset()
		found := configMap(home, "mine")
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(mine), found))
		if found.Data["name"] != "rewritten" || found.Data["more"] != mine.Data["more"] {
			t.Errorf("it has %v", found.Data)
		}
	}
	must(t, c.Create(t.Context(), assembly))
	eventually(t, "it is not ready", isReady(c, assembly))
	written(1)
	mine.Data["more"] = "of it"
	eventually(t, "the component cannot be changed", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(assembly), assembly); err != nil {
			return err
		}
		assembly.SetObjects(mine)
		return c.Update(ctx, assembly)
	})
	eventually(t, "it is not ready again", isReady(c, assembly))
	written(1)
}

// An object of the wrong form, and one of a version that is not served, are named with the cause. Beside the first, the
// rest is installed.
func TestFaultyObjectsAreNamed(t *testing.T) {
	t.Parallel()
	c, home := live(t), plane.Namespace(t)
	startOperator(t, home, resources.AssemblyGenerator(), options{})
	object := func(text string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(text), &u.Object))
		u.SetNamespace(home)
		return u
	}
	for name, test := range map[string]struct {
		faulty client.Object
		rest   bool
		want   string
	}{
		"form": {object("{apiVersion: v1, kind: Service, metadata: {name: faulty}, spec: {ports: [{port: many}]}}"), true,
			"Service " + home + "/faulty: json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port"},
		"version": {object("{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: faulty}}"), false,
			"(Deployment " + home + `/faulty): neither the cluster nor any of the objects defines its kind: no matches for kind ` +
				`"Deployment" in version "apps/v1beta1"`},
		"twice": {configMap(home, "beside-twice"), false, "(ConfigMap " + home + "/beside-twice): it is the same object as objects[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			beside := configMap(home, "beside-"+name)
			assembly := resources.NewAssembly(home, name, test.faulty, beside)
			must(t, c.Create(t.Context(), assembly))
			eventually(t, "it is not named", says(c, assembly, component.ReasonError, test.want))
			err := gone(c, beside)(t.Context())
			if test.rest != (err != nil) {
				t.Errorf("the rest: %v", err)
			}
		})
	}
}

package component_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// saysError waits until the condition of a component is an error with a text that ok accepts.
func saysError(t *testing.T, c client.Client, assembly *resources.Assembly, ok func(text string) bool) {
	t.Helper()
	controlplanetest.Eventually(t, "the cause is not told", func(ctx context.Context) error {
		if err := hasState(ctx, c, assembly, apis.ComponentError); err != nil {
			return err
		}
		if text := assembly.Status.Conditions[0].Message; !ok(text) {
			return errors.New(text)
		}
		return nil
	})
}

// TestConditionsSayTheCause: what the API server refuses is told with the field and the reason, and not with the object.
func TestConditionsSayTheCause(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})

	t.Run("immutable fields", func(t *testing.T) {
		t.Parallel()
		image := func(image string) func(*batchv1.JobSpec) {
			return func(s *batchv1.JobSpec) { s.Suspend, s.Template.Spec.Containers[0].Image = new(true), image }
		}
		assembly := resources.NewAssembly(namespace, "jobs", job(namespace, "one", image("a")), job(namespace, "two", image("a")))
		if err := c.Create(t.Context(), assembly); err != nil {
			t.Fatal(err)
		}
		controlplanetest.Eventually(t, "it is not deployed", func(ctx context.Context) error {
			return hasState(ctx, c, assembly, apis.ComponentReady)
		})
		controlplanetest.Eventually(t, "it does not change", func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(assembly), assembly); err != nil {
				return err
			}
			assembly.SetObjects(job(namespace, "one", image("b")), job(namespace, "two", image("b")))
			return c.Update(ctx, assembly)
		})
		want := fmt.Sprintf("Unable to apply Job %[1]s/one, Job %[1]s/two: spec.template.spec: field is immutable "+
			"(update-policy: recreate deletes the object and creates it anew)", namespace)
		saysError(t, c, assembly, func(text string) bool { return text == want })
	})

	t.Run("keys that others changed", func(t *testing.T) {
		t.Parallel()
		service := manifestOf(t, namespace, "{apiVersion: v1, kind: Service, metadata: {name: web}, "+
			"spec: {ports: [{name: http, port: 80}]}}")
		server := manifestOf(t, namespace, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers: [{name: a, image: a}]
      volumes: [{name: v, configMap: {name: c}}]
`)
		assembly := resources.NewAssembly(namespace, "keys", service, server)
		if err := c.Create(t.Context(), assembly); err != nil {
			t.Fatal(err)
		}
		controlplanetest.Eventually(t, "it is not deployed", func(ctx context.Context) error {
			return errors.Join(c.Get(ctx, client.ObjectKeyFromObject(service), &corev1.Service{}),
				c.Get(ctx, client.ObjectKeyFromObject(server), &appsv1.Deployment{}))
		})
		for object, patch := range map[client.Object]string{
			service: `[{"op":"replace","path":"/spec/ports/0/port","value":81}]`,
			server:  `[{"op":"replace","path":"/spec/template/spec/volumes/0","value":{"name":"v","emptyDir":{}}}]`,
		} {
			other := object.DeepCopyObject().(client.Object)
			if err := c.Patch(t.Context(), other, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
				t.Fatal(err)
			}
		}
		saysError(t, c, assembly, func(text string) bool {
			return strings.Count(text, "(others changed it; update-policy: replace also removes what they added)") == 2
		})
		for _, object := range []client.Object{service, server} {
			object.SetAnnotations(map[string]string{"espalier.dev/update-policy": "replace"})
		}
		desire(t, c, assembly, service, server)
		controlplanetest.Eventually(t, "it is not put right", func(ctx context.Context) error {
			live := &corev1.Service{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(service), live); err != nil || live.Spec.Ports[0].Port != 80 {
				return errors.Join(err, fmt.Errorf("the ports are %v", live.Spec.Ports))
			}
			deployment := &appsv1.Deployment{}
			err := c.Get(ctx, client.ObjectKeyFromObject(server), deployment)
			if volumes := deployment.Spec.Template.Spec.Volumes; err != nil || volumes[0].ConfigMap == nil {
				return errors.Join(err, fmt.Errorf("the volumes are %v", volumes))
			}
			return nil
		})
	})

	t.Run("without rights", func(t *testing.T) {
		t.Parallel()
		var objects []client.Object
		for i := range 42 {
			objects = append(objects, partOf(namespace, fmt.Sprintf("part-%02d", i), "0"))
		}
		objects = append(objects, job(namespace, "job", completesAtOnce(0)))
		assembly := resources.NewAssembly(namespace, "foreign", objects...)
		assembly.Spec.ServiceAccountName = "nobody"
		if err := c.Create(t.Context(), assembly); err != nil {
			t.Fatal(err)
		}
		saysError(t, c, assembly, func(text string) bool {
			forbidden := func(resource string) string {
				return `: forbidden: User "system:serviceaccount:` + namespace + `:nobody" cannot create resource "` + resource
			}
			return strings.Contains(text, "/part-04 and 37 more"+forbidden("configmaps")) && strings.Contains(text, "/job"+forbidden("jobs")) &&
				strings.Count(text, "forbidden: User") == 2 && strings.Count(text, "part-") == 5
		})
	})
}

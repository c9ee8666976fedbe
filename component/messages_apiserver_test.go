package component_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// saysError waits until the condition of a component is an error with a text that ok accepts.
func saysError(t *testing.T, c client.Client, assembly *resources.Assembly, ok func(text string) bool) {
	t.Helper()
	eventually(t, "the cause is not told", func(ctx context.Context) error {
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
		eventually(t, "it is not deployed", func(ctx context.Context) error { return hasState(ctx, c, assembly, apis.ComponentReady) })
		eventually(t, "it does not change", func(ctx context.Context) error {
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

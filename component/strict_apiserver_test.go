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

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func manifestOf(t *testing.T, namespace, text string) client.Object {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetNamespace(namespace)
	return object
}

// deploymentWith is a Deployment whose container has more fields.
func deploymentWith(t *testing.T, namespace, name, fields string) client.Object {
	t.Helper()
	return manifestOf(t, namespace, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  replicas: 0
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec: {containers: [{name: a, image: a, %s}]}
`, name, fields))
}

// TestCreateIsStrict: what could not be written a second time is refused when it is created, and the condition names
// the object and the field. The other objects are created.
func TestCreateIsStrict(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	for name, test := range map[string]struct {
		object client.Object
		want   string
	}{
		"env": {deploymentWith(t, namespace, "env", "env: [{name: A, value: '1'}, {name: A, value: '2'}]"),
			"Deployment " + namespace + "/env: spec.template.spec.containers[0].env has two elements with name A"},
		"ports": {deploymentWith(t, namespace, "ports", "ports: [{containerPort: 80, name: a}, {containerPort: 80, name: b}]"),
			"Deployment " + namespace + "/ports: spec.template.spec.containers[0].ports has two elements with containerPort 80 and protocol TCP"},
		"typo": {manifestOf(t, namespace, "{apiVersion: v1, kind: ConfigMap, metadata: {name: typo}, dat: {a: b}}"),
			`ConfigMap ` + namespace + `/typo: unknown field "dat"`},
		"secret": {manifestOf(t, namespace, "{apiVersion: v1, kind: Secret, metadata: {name: secret}, stringDat: {a: hidden}}"),
			`Secret ` + namespace + `/secret: unknown field "stringDat"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := partOf(namespace, "beside-"+name, "0")
			assembly := resources.NewAssembly(namespace, name, test.object, good)
			if err := c.Create(t.Context(), assembly); err != nil {
				t.Fatal(err)
			}
			controlplanetest.Eventually(t, "the field is not named", func(ctx context.Context) error {
				if err := hasState(ctx, c, assembly, apis.ComponentError); err != nil {
					return err
				}
				if text := assembly.Status.Conditions[0].Message; !strings.Contains(text, test.want) || strings.Contains(text, "hidden") {
					return errors.New(text)
				}
				return nil
			})
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(good), &corev1.ConfigMap{}); err != nil {
				t.Errorf("the other object: %v", err)
			}
			live := test.object.DeepCopyObject().(client.Object)
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(live), live); !apierrs.IsNotFound(err) {
				t.Errorf("the read of the object ends with %v, want it not created", err)
			}
		})
	}
}

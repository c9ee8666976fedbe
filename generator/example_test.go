package generator_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
)

// A generator is a function from what the resource asks for to objects.
func ExampleGenerator() {
	var beds generator.Generator = generator.GeneratorFunc(
		func(ctx context.Context, namespace, name string, parameters generator.Unstructurable) ([]client.Object, error) {
			flowers, _ := parameters.ToUnstructured()["flowers"].([]any)
			var objects []client.Object
			for _, flower := range flowers {
				objects = append(objects, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%s", name, flower)},
				})
			}
			return objects, nil
		})

	objects, err := beds.Generate(context.Background(), "plots", "garden", generator.UnstructurableMap{"flowers": []any{"rose", "iris"}})
	for _, object := range objects {
		fmt.Println(object.GetNamespace(), object.GetName())
	}
	fmt.Println(err)
	// Output:
	// plots garden-rose
	// plots garden-iris
	// <nil>
}

// What is around a generator can be added from outside: here, a label on each object.
func ExampleNewGenerator() {
	beds := generator.GeneratorFunc(func(_ context.Context, namespace, name string, _ generator.Unstructurable) ([]client.Object, error) {
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}}, nil
	})
	label := generator.ObjectTransformerFunc(func(_, name string, objects []client.Object) ([]client.Object, error) {
		for _, object := range objects {
			object.SetLabels(map[string]string{"app.kubernetes.io/instance": name})
		}
		return objects, nil
	})

	objects, _ := generator.NewGenerator(beds).WithObjectTransformer(label).Generate(context.Background(), "plots", "garden", nil)
	fmt.Println(objects[0].GetLabels())
	// Output: map[app.kubernetes.io/instance:garden]
}

// A generator finds what else is known of the component in its context. Outside of a reconciler, it is given one like this.
func ExampleNewContext() {
	ctx := generator.NewContext(context.Background()).WithComponentName("garden").WithComponentRevision(3)

	name, err := generator.ComponentNameFromContext(ctx)
	fmt.Println(name, err)
	_, err = generator.ClientFromContext(ctx)
	fmt.Println(err)
	// Output:
	// garden <nil>
	// client not found in context
}

// The annotations of an object say how it is dealt with. Those under the prefix of the component win over the shared ones.
func ExampleReadSettings() {
	settings, err := generator.ReadSettings("platform.example.com", map[string]string{
		"espalier.dev/apply-order":           "-1",
		"espalier.dev/update-policy":         "recreate",
		"platform.example.com/update-policy": "ssa-override",
		"platform.example.com/ignore-fields": "/spec/replicas",
	})
	fmt.Println(settings.ApplyOrder, settings.UpdatePolicy, settings.IgnoreFields, err)

	_, err = generator.ReadSettings("platform.example.com", map[string]string{
		"espalier.dev/apply-order":           "first",
		"platform.example.com/delete-policy": "keep",
	})
	fmt.Println(err)
	// Output:
	// -1 ApplyOverride [/spec/replicas] <nil>
	// annotation platform.example.com/delete-policy: must be one of delete, orphan, orphan-on-apply, orphan-on-delete: "keep"
	// annotation espalier.dev/apply-order: must be a number from -32768 to 32767: "first"
}

type GardenSpec struct {
	generator.PlacementSpec `json:",inline"`
	generator.TimeoutSpec   `json:",inline"`
}

type Garden struct {
	metav1.ObjectMeta
	Spec GardenSpec
}

// GetTimeout makes the resource say itself what its spec could say as well.
func (g *Garden) GetTimeout() time.Duration { return time.Hour }

// Each thing that can be said about a deployment is an interface, which the resource or its spec implements.
func ExampleLookup() {
	garden := &Garden{Spec: GardenSpec{PlacementSpec: generator.PlacementSpec{Namespace: "plots"}}}

	placement, ok := generator.Lookup[generator.PlacementConfiguration](garden)
	fmt.Println(placement.GetDeploymentNamespace(), ok)
	timeout, ok := generator.Lookup[generator.TimeoutConfiguration](garden)
	fmt.Println(timeout.GetTimeout(), ok)
	_, ok = generator.Lookup[generator.SuspensionConfiguration](garden)
	fmt.Println(ok)
	// Output:
	// plots true
	// 1h0m0s true
	// false
}

// All that a resource says, with defaults where it says nothing.
func ExampleConfigurationOf() {
	garden := &Garden{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "garden"},
		Spec:       GardenSpec{PlacementSpec: generator.PlacementSpec{Namespace: "plots"}},
	}

	configuration, err := generator.ConfigurationOf(garden)
	fmt.Println(configuration, err)
	fmt.Println(configuration.Requeue, configuration.Timeout)
	// Output:
	// plots/garden <nil>
	// 10m0s 1h0m0s
}

// What a component needs and has not got yet is worth waiting for, and no failure.
func ExampleNewRetriableError() {
	after := 30 * time.Second
	err := fmt.Errorf("hook 0: %w", generator.NewRetriableError(errors.New("no certificate yet"), &after))

	var retriable *generator.RetriableError
	if errors.As(err, &retriable) {
		fmt.Println(retriable, *retriable.RetryAfter())
	}
	// Output: no certificate yet 30s
}

// A pattern stands for types in any version.
func ExampleTypePattern_Matches() {
	pattern := generator.TypePattern{Group: "*.example.com", Kind: "*"}
	fmt.Println(pattern.Matches(schema.GroupKind{Group: "garden.example.com", Kind: "Bed"}))
	fmt.Println(pattern.Matches(schema.GroupKind{Group: "example.com", Kind: "Bed"}))
	// Output:
	// true
	// false
}

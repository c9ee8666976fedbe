package component_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startWithDerivedRole starts an operator whose user may do what is derived from its tree and nothing else, but for
// the rules that drop selects.
func startWithDerivedRole(
	t *testing.T, c client.Client, namespace string, dependents []client.Object, drop func(rbacv1.PolicyRule) bool,
) *operator {
	t.Helper()
	options := assemblyOptions{Dependents: dependents}
	tree := component.NewComponentRoot(componentPrefix, resources.AssemblyGenerator(), options).Describe()
	rules, err := tree.PolicyRules(resources.NewScheme(), c.RESTMapper())
	if err != nil {
		t.Fatal(err)
	}
	user := "operator-of-" + namespace
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: slices.DeleteFunc(rules, drop),
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
	}
	create(t, c, role, binding)
	config, err := plane.Environment(t).User(user, "nobody")
	if err != nil {
		t.Fatal(err)
	}
	return startComponents(t, config, namespace, options)
}

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name},
	}
}

// goesWith waits until the namespace is being deleted, and lets it go: no controller does so here.
func goesWith(t *testing.T, c client.Client, name string) {
	t.Helper()
	found := &corev1.Namespace{}
	controlplanetest.Eventually(t, "the Namespace is not deleted", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKey{Name: name}, found); err != nil {
			return err
		}
		if found.DeletionTimestamp == nil {
			return errors.New("it is not being deleted")
		}
		return nil
	})
	found.Spec.Finalizers = nil
	if err := c.SubResource("finalize").Update(t.Context(), found); err != nil {
		t.Fatal(err)
	}
}

// Exactly the derived role is enough to install, to prune and to delete a component with a Namespace, and no namespace
// goes in which others have objects of a type that the component does not have.
func TestNamespaceWithDerivedRole(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startWithDerivedRole(t, c, namespace, []client.Object{&corev1.ConfigMap{}, &corev1.Namespace{}},
		func(rbacv1.PolicyRule) bool { return false })
	first, second := namespace+"-first", namespace+"-second"
	assembly := resources.NewAssembly(namespace, "all",
		namespaceOf(first), partOf(first, "part", "0"), namespaceOf(second), partOf(second, "part", "0"))
	create(t, c, assembly)
	isReady(t, c, assembly)

	controlplanetest.Eventually(t, "the component is not made smaller", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(assembly), assembly); err != nil {
			return err
		}
		assembly.SetObjects(namespaceOf(second), partOf(second, "part", "0"))
		return c.Update(ctx, assembly)
	})
	goesWith(t, c, first)
	isReady(t, c, assembly)

	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: second, Name: "theirs"}}
	create(t, c, theirs)
	if err := c.Delete(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	says(t, c, assembly, component.ReasonDeletionBlocked,
		"1 object left to delete, blocked: Namespace "+second+": in use by Secret "+second+"/theirs")
	if err := goneFrom(c, partOf(second, "part", "0"))(t.Context()); err != nil {
		t.Errorf("what is in the namespace: %v, want it gone", err)
	}
	if err := c.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	goesWith(t, c, second)
	controlplanetest.Eventually(t, "it does not go", goneFrom(c, assembly))
}

// Without the right to list all types, a namespace stays, is asked for with few requests, and can be given up.
func TestNamespaceThatCannotBeRead(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	op := startWithDerivedRole(t, c, namespace, []client.Object{&corev1.ConfigMap{}, &corev1.Namespace{}},
		func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "*") })
	own := namespace + "-own"
	assembly := resources.NewAssembly(namespace, "all", namespaceOf(own), partOf(own, "part", "0"))
	create(t, c, assembly)
	isReady(t, c, assembly)
	if err := c.Delete(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	key := componentPrefix + "/" + generator.AnnotationAbandon
	says(t, c, assembly, component.ReasonDeletionBlocked,
		"1 object left to delete, blocked: Namespace "+own+": it is not known whether others use it: ",
		"could not be listed: forbidden",
		"; the annotation "+key+": "+string(assembly.UID)+" gives up 1 object")
	op.requests.Reset()
	start, requests, polls := time.Now(), 0, 0
	controlplanetest.Eventually(t, "it is not asked for", func(context.Context) error {
		requests = op.requests.Total()
		if polls = countOf(op.requests, "get", "/namespaces/"+own); polls < 8 {
			return fmt.Errorf("there are %d polls, want 8", polls)
		}
		return nil
	})
	took := time.Since(start)
	t.Logf("%d polls take %d requests in %s", polls, requests, took)
	// A poll may have been under way at the start.
	if requests > 4*(polls+1) {
		t.Errorf("%d polls take %d requests, want at most 4 each, and 4 more:\n%s", polls, requests, op.requests)
	}
	// From one to the next it takes more than a second at first, and more than two after some.
	if took < 10*time.Second {
		t.Errorf("8 polls come in %s, want them in 10s at least", took)
	}
	patch := client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, assembly.UID))
	if err := c.Patch(t.Context(), assembly, patch); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not abandoned", goneFrom(c, assembly))
	if err := c.Get(t.Context(), client.ObjectKey{Name: own}, &corev1.Namespace{}); err != nil {
		t.Errorf("the Namespace that was given up: %v, want it there", err)
	}
}

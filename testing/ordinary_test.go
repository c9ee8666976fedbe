package testing_test

import (
	"context"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// ordinary are rows of all calls.
func ordinary() cmNodes {
	parent := settings.With(func(cm *corev1.ConfigMap) { cm.UID = "uid-of-settings" })
	ownedBy := func(cm *corev1.ConfigMap) *corev1.ConfigMap {
		controlled(cm).OwnerReferences[0].UID = "uid-of-settings"
		return cm
	}
	given := ownedBy(configMap("child", "k", "v"))
	given.UID, given.ResourceVersion = "uid-of-child", "7"
	changed := given.DeepCopy()
	changed.Data["k"] = "w"
	grandchild := configMap("grandchild")
	grandchild.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: "child", UID: "uid-of-child", BlockOwnerDeletion: new(true),
	}}
	uid, version := types.UID("uid-of-child"), "7"
	patched := `{"data":{"uid":"uid-of-child"},"metadata":{"resourceVersion":"7"}}`

	return cmNodes{
		"creates a child": {
			Resource:      parent.Object(),
			ExpectCreates: []client.Object{ownedBy(configMap("one"))},
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				return ensures(ctx, cm, "one")
			}),
		},
		"updates a child": {
			Resource:      parent.Object(),
			GivenObjects:  []client.Object{given},
			ExpectUpdates: []client.Object{changed},
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				child, err := childOf(ctx, cm, "uid-of-child")
				if err != nil || child.Data["k"] == "w" {
					return err
				}
				child.Data["k"] = "w"
				return reconcilers.RetrieveConfigOrDie(ctx).Update(ctx, child)
			}),
		},
		"deletes a child": {
			Resource:     parent.Object(),
			GivenObjects: []client.Object{given},
			ExpectDeletes: []rtesting.DeleteRef{{
				Kind: "ConfigMap", Namespace: "default", Name: "child",
				Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
			}},
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				child, err := childOf(ctx, cm, "uid-of-child")
				if err != nil {
					return client.IgnoreNotFound(err)
				}
				only := client.Preconditions{UID: &child.UID, ResourceVersion: &child.ResourceVersion}
				return reconcilers.RetrieveConfigOrDie(ctx).Delete(ctx, child, only)
			}),
		},
		"patches a child": {
			Resource:     parent.Object(),
			GivenObjects: []client.Object{given},
			ExpectPatches: []rtesting.PatchRef{{
				Kind: "ConfigMap", Namespace: "default", Name: "child",
				PatchType: types.MergePatchType, Patch: []byte(patched),
			}},
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				child, err := childOf(ctx, cm, "uid-of-child")
				if err != nil || child.Data["uid"] != "" {
					return err
				}
				patch := client.MergeFromWithOptions(child.DeepCopy(), client.MergeFromWithOptimisticLock{})
				child.Data["uid"] = string(child.UID)
				return reconcilers.RetrieveConfigOrDie(ctx).Patch(ctx, child, patch)
			}),
		},
		"applies until rest": {
			Resource: parent.Object(),
			Until:    rtesting.Rest(),
			ExpectApplies: []rtesting.ApplyRef{
				{Kind: "ConfigMap", Namespace: "default", Name: "a", ApplyConfiguration: corev1ac.ConfigMap("a", "default")},
				{Kind: "ConfigMap", Namespace: "default", Name: "a", ApplyConfiguration: corev1ac.ConfigMap("a", "default")},
			},
			Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
				c := reconcilers.RetrieveConfigOrDie(ctx)
				return c.Apply(ctx, corev1ac.ConfigMap("a", "default"), client.FieldOwner("me"))
			}),
		},
		"waits for garbage to be collected": {
			Resource:      parent.Object(),
			GivenObjects:  []client.Object{given, grandchild},
			Until:         rtesting.Rest(),
			ExpectDeletes: []rtesting.DeleteRef{{Kind: "ConfigMap", Namespace: "default", Name: "child"}},
			ExpectCreates: []client.Object{ownedBy(configMap("one"))},
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				return replaces(ctx, cm, client.PropagationPolicy(metav1.DeletePropagationBackground))
			}),
		},
		"waits for a deletion in the foreground": {
			Resource:      parent.Object(),
			GivenObjects:  []client.Object{given, grandchild},
			Until:         rtesting.Rest(),
			ExpectDeletes: []rtesting.DeleteRef{{Kind: "ConfigMap", Namespace: "default", Name: "child"}},
			ExpectCreates: []client.Object{ownedBy(configMap("one"))},
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				return replaces(ctx, cm, client.PropagationPolicy(metav1.DeletePropagationForeground))
			}),
		},
		"does not see yet what the cache has not seen": {
			Resource:        parent.Object(),
			APIGivenObjects: []client.Object{given},
			Replays:         rtesting.NoReplays("it is about the first request alone"),
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				c := reconcilers.RetrieveConfigOrDie(ctx)
				if _, err := childOf(ctx, cm, ""); !apierrors.IsNotFound(err) {
					return fmt.Errorf("the client sees it: %w", err)
				}
				return c.APIReader.Get(ctx, client.ObjectKeyFromObject(given), &corev1.ConfigMap{})
			}),
		},
	}
}

// replaces deletes the given child, waits until it and what it owns are gone, and makes another.
func replaces(ctx context.Context, cm *corev1.ConfigMap, policy client.DeleteOption) error {
	c := reconcilers.RetrieveConfigOrDie(ctx)
	for _, name := range []string{"child", "grandchild"} {
		there := &corev1.ConfigMap{}
		err := c.Get(ctx, client.ObjectKey{Namespace: cm.Namespace, Name: name}, there)
		switch {
		case apierrors.IsNotFound(err):
		case err == nil && name == "child" && there.DeletionTimestamp == nil:
			return c.Delete(ctx, there, policy)
		default:
			return err
		}
	}
	return ensures(ctx, cm, "one")
}

// childOf returns the given child, which must have a UID.
func childOf(ctx context.Context, cm *corev1.ConfigMap, uid types.UID) (*corev1.ConfigMap, error) {
	child := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: cm.Namespace, Name: "child"}
	if err := reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, key, child); err != nil {
		return nil, err
	}
	if child.UID != uid || child.OwnerReferences[0].UID != cm.UID || child.Namespace != "default" {
		return nil, fmt.Errorf("the child is %v", child.ObjectMeta)
	}
	return child, nil
}

func TestOrdinaryRows(t *testing.T) { runNodes(t, ordinary()) }

func init() {
	twins := []client.Object{configMap("a"), configMap("b")}
	twins[0].SetUID("u")
	twins[1].SetUID("u")
	const sameUID = `the given objects cannot be stored: ConfigMap default/b: ` +
		`its UID "u" is that of ConfigMap default/a too`
	expectingMore := func(row cmCase) func(t *testing.T) {
		row.Resource, row.Metadata = settings.Object(), does(nothing)
		row.ExpectResource = changed.Object()
		return func(t *testing.T) { runNodes(t, cmNodes{"case": row}) }
	}
	scenarios["two given objects of one UID"] = scenario{
		run: expectingMore(cmCase{GivenObjects: twins}), want: []string{sameUID}, unwanted: []string{"ExpectResource"},
	}
	scenarios["two given objects of one UID, one that the client has not seen"] = scenario{
		run:  expectingMore(cmCase{GivenObjects: twins[:1], APIGivenObjects: twins[1:]}),
		want: []string{sameUID}, unwanted: []string{"ExpectResource"},
	}
	scenarios["what has no effect in a row"] = scenario{
		run: expectingMore(cmCase{GivenObjects: []client.Object{
			&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "checks"}},
		}}),
		want: []string{"Note: ValidatingWebhookConfiguration checks has no effect: webhooks are not called; " +
			"test it with testing/simulation"},
	}
}

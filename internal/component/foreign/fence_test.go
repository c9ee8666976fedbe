package foreign_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestFenceHoldsOffCreationOnly(t *testing.T) {
	t.Parallel()
	author := apiextensionsv1.ValidationRule{Rule: "!has(self.size) || self.size < 10", Message: "too large"}
	crd := install(t, crdOf("Bellows", withSchema(apiextensionsv1.JSONSchemaProps{
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer"}},
		XValidations: apiextensionsv1.ValidationRules{author, {Rule: "oldSelf.hasValue() || true",
			OptionalOldSelf: new(true)}},
	})))
	before := stored(t, crd)
	namespace, c := plane.Namespace(t), live(t)
	mine := instance(crd, namespace, "mine", ours)
	mine.SetFinalizers([]string{"example.com/wait"})
	create(t, mine)

	g, requests := guarded(t, interceptor.Funcs{})
	use, err := checkOne(t.Context(), g, keyOf(crd), true)
	assertUse(t, use, err, none)

	t.Run("creation is refused", func(t *testing.T) {
		err := c.Create(t.Context(), instance(crd, namespace, "late", ""))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), fenceText) {
			t.Errorf("the create ends with %v, want it refused with %q", err, fenceText)
		}
		err = c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(instance(crd, namespace, "late", "")),
			client.FieldOwner("them"))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), fenceText) {
			t.Errorf("the apply ends with %v, want it refused with %q", err, fenceText)
		}
		assertFences(t, crd, 1)
		if rules := stored(t, crd).Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations; len(rules) != 3 ||
			rules[1] != author {
			t.Errorf("the rules are %v, want three, the second one that of the author", rules)
		}
	})
	t.Run("an instance can be updated and deleted", func(t *testing.T) {
		mine.Object["size"] = int64(3)
		if err := c.Update(t.Context(), mine); err != nil {
			t.Errorf("update: %v", err)
		}
		if err := c.Delete(t.Context(), mine); err != nil {
			t.Errorf("delete: %v", err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(mine), mine); err != nil {
			t.Fatal(err)
		}
		mine.SetFinalizers(nil)
		if err := c.Update(t.Context(), mine); err != nil {
			t.Errorf("removal of the finalizer: %v", err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(mine), mine); !apierrors.IsNotFound(err) {
			t.Errorf("the read of the instance ends with %v, want it gone", err)
		}
	})
	t.Run("done once", func(t *testing.T) {
		requests.Reset()
		use, err := checkOne(t.Context(), g, keyOf(crd), true)
		assertUse(t, use, err, none)
		// The second check is made again.
		if requests.Writes() != 0 || requests.Total() != 3 {
			t.Errorf("the requests are %v, want 3 and no write", requests.Counts())
		}
	})
	t.Run("lifted", func(t *testing.T) {
		if err := g.Lift(t.Context(), keyOf(crd)); err != nil {
			t.Fatal(err)
		}
		after := stored(t, crd)
		if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
			t.Errorf("the definition is not as before (-want +got): %s", diff)
		}
		if _, found := after.Annotations[annotation]; found {
			t.Errorf("the annotation %s is left in %v, want none", annotation, after.Annotations)
		}
		eventuallyCreates(t, instance(crd, namespace, "late", ""))
		requests.Reset()
		if err := g.Lift(t.Context(), keyOf(crd)); err != nil || requests.Writes() != 0 {
			t.Errorf("a second lift ends with %v and the requests %v, want no error and no write", err,
				requests.Counts())
		}
	})
}

func TestFenceIsRepaired(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Crucible", func(crd *apiextensionsv1.CustomResourceDefinition) {
		second := *crd.Spec.Versions[0].DeepCopy()
		second.Name, second.Storage = "v2", false
		third := *second.DeepCopy()
		third.Name, third.Served = "v3", false
		crd.Spec.Versions = append(crd.Spec.Versions, second, third)
	}))
	g := newGuard(t, plane.Config(t))
	use, err := checkOne(t.Context(), g, keyOf(crd), true)
	assertUse(t, use, err, none)
	assertFences(t, crd, 3)

	// Another writer makes the rule harmless, in one version only.
	fresh := stored(t, crd)
	fresh.Spec.Versions[1].Schema.OpenAPIV3Schema.XValidations[0].OptionalOldSelf = nil
	fresh.Spec.Versions[1].Schema.OpenAPIV3Schema.XValidations[0].Rule = "true"
	fresh.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations[0].Message = "go away"
	if err := live(t).Update(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	use, err = checkOne(t.Context(), g, keyOf(crd), true)
	assertUse(t, use, err, none)
	assertFences(t, crd, 3)
	if fresh := stored(t, crd); !strings.HasSuffix(fresh.Annotations[annotation],
		fmt.Sprintf("/%d", fresh.Generation)) {
		t.Errorf("generation %d has the proof %s, want its own", fresh.Generation, fresh.Annotations[annotation])
	}
	for i, v := range stored(t, crd).Spec.Versions {
		rules := v.Schema.OpenAPIV3Schema.XValidations
		if rules[0].Message != fenceText || len(rules) != []int{1, 2, 1}[i] {
			t.Errorf("%s has the rules %v, want %d, the first one ours", v.Name, rules, []int{1, 2, 1}[i])
		}
		err := live(t).Create(t.Context(), func() client.Object {
			object := instance(crd, plane.Namespace(t), "late", "")
			object.SetAPIVersion(crd.Spec.Group + "/" + v.Name)
			return object
		}())
		if v.Served && (err == nil || !strings.Contains(err.Error(), fenceText)) {
			t.Errorf("the creation in %s ends with %v, want it refused with %q", v.Name, err, fenceText)
		}
	}
}

// A forced apply of the manifest, as an upgrade that brings the type back makes it, drops the fence, since it owns the
// versions as a whole.
func TestApplyLiftsTheFence(t *testing.T) {
	t.Parallel()
	manifest := crdOf("Drill")
	manifest.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	apply := func() {
		t.Helper()
		data, err := json.Marshal(manifest)
		if err != nil {
			t.Fatal(err)
		}
		object := manifest.DeepCopy()
		force := client.PatchOptions{FieldManager: "platform.example.com", Force: new(true)}
		if err := live(t).Patch(t.Context(), object, client.RawPatch(types.ApplyPatchType, data), &force); err != nil {
			t.Fatal(err)
		}
	}
	apply()
	t.Cleanup(func() { uninstall(t, manifest) })
	g := newGuard(t, plane.Config(t))
	use, err := checkOne(t.Context(), g, keyOf(manifest), true)
	assertUse(t, use, err, none)
	assertFences(t, manifest, 1)
	owns := func(manager string) bool {
		for _, entry := range stored(t, manifest).ManagedFields {
			if entry.Manager == manager && strings.Contains(entry.FieldsV1.GetRawString(), `"f:versions"`) {
				return true
			}
		}
		return false
	}
	if owns("platform.example.com") || !owns("platform.example.com-fence") {
		t.Errorf("the versions are owned by the component: %t, by the fence: %t, want the fence alone",
			owns("platform.example.com"), owns("platform.example.com-fence"))
	}
	apply()
	// The annotation stays, but records another generation.
	if n := fences(stored(t, manifest)); n != 0 {
		t.Errorf("%d versions are fenced, want none", n)
	}
	if !owns("platform.example.com") || owns("platform.example.com-fence") {
		t.Errorf("the versions are owned by the component: %t, by the fence: %t, want the component alone",
			owns("platform.example.com"), owns("platform.example.com-fence"))
	}
}

// A fence that was left behind is lifted if others have instances.
func TestFenceThatWasLeft(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Wedge"))
	g := newGuard(t, plane.Config(t))
	use, err := checkOne(t.Context(), g, keyOf(crd), true)
	assertUse(t, use, err, none)
	use, err = checkOne(t.Context(), g, keyOf(crd), false)
	assertUse(t, use, err, none)
	assertFences(t, crd, 1)

	// Another writer removes the rule, creates an instance, and adds the rule again.
	fresh := stored(t, crd)
	rules := fresh.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations
	fresh.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = nil
	if err := live(t).Update(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	namespace := plane.Namespace(t)
	eventuallyCreates(t, instance(crd, namespace, "theirs", ""))
	fresh.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = rules
	if err := live(t).Update(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	assertFences(t, crd, 1)
	use, err = checkOne(t.Context(), g, keyOf(crd), false)
	assertUse(t, use, err, blocking(0, "Wedge "+namespace+"/theirs"))
	assertFences(t, crd, 0)
}

// A fence that cannot be lifted, because others write to the definition again and again, is an error.
func TestFenceThatCannotBeLifted(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Winch"))
	touches := 0
	g, _ := guarded(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object,
		patch client.Patch, opts ...client.PatchOption) error {
		if touches > 0 {
			touches--
			touch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"touched":"%d"}}}`,
				touches))
			if err := live(t).Patch(ctx, stored(t, crd), touch); err != nil {
				t.Error(err)
			}
		}
		return c.Patch(ctx, obj, patch, opts...)
	}})
	use, err := checkOne(t.Context(), g, keyOf(crd), true)
	assertUse(t, use, err, none)
	touches = 1000
	if err := g.Lift(t.Context(), keyOf(crd)); !apierrors.IsConflict(err) {
		t.Errorf("the error is %v, want a conflict", err)
	}
	assertFences(t, crd, 1)
	touches = 4
	if err := g.Lift(t.Context(), keyOf(crd)); err != nil {
		t.Error(err)
	}
	assertFences(t, crd, 0)
}

package foreign_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/plan"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestCheckTellsOursFromOthers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		owner []string
		scope func(*apiextensionsv1.CustomResourceDefinition)
		want  plan.Use
	}{
		{name: "nothing", want: none},
		{name: "our own", owner: []string{ours, ours}, want: none},
		{name: "nobody's", owner: []string{ours, ""}, want: blocking(0, "Anvil NS/n1")},
		{name: "somebody else's", owner: []string{"them", ours}, want: blocking(0, "Anvil NS/n0")},
		{name: "cluster-wide", owner: []string{"", ours}, scope: clusterScoped, want: blocking(0, "Anvil n0")},
		{name: "as many as are named", owner: []string{"", "", ""}, want: blocking(0, "Anvil NS/n0", "Anvil NS/n1", "Anvil NS/n2")},
		{name: "one more", owner: []string{"", "", "", ""}, want: blocking(1, "Anvil NS/n0", "Anvil NS/n1", "Anvil NS/n2")},
		{name: "nobody counts", owner: []string{"", "", "", "", ""}, want: blocking(-1, "Anvil NS/n0", "Anvil NS/n1", "Anvil NS/n2")},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			crd := crdOf(fmt.Sprintf("Anvil%d", i))
			if test.scope != nil {
				test.scope(crd)
			}
			install(t, crd)
			namespace := plane.Namespace(t)
			for n, owner := range test.owner {
				create(t, instance(crd, namespace, fmt.Sprintf("n%d", n), owner))
			}
			for j := range test.want.Instances {
				test.want.Instances[j] = strings.NewReplacer("Anvil", crd.Spec.Names.Kind, "NS", namespace).Replace(test.want.Instances[j])
			}
			for _, fence := range []bool{false, true} {
				g, requests := guarded(t, interceptor.Funcs{})
				use, err := g.Check(t.Context(), keyOf(crd), fence)
				assertUse(t, use, err, test.want)
				if fence && use.State == plan.ForeignNone {
					assertFences(t, crd, 1)
					continue
				}
				assertFences(t, crd, 0)
				if n := requests.Writes(); n != 0 {
					t.Errorf("%d writes for nothing: %v", n, requests.Counts())
				}
			}
		})
	}
}

func TestCheckOfWhatIsGoneOrDefinesNoTypes(t *testing.T) {
	t.Parallel()
	g := newGuard(t, plane.Config(t))
	gone := keyOf(crdOf("Gone"))
	service := plan.Key{Group: "apiregistration.k8s.io", Kind: "APIService", Name: "v1.gone.example.com"}
	for _, key := range []plan.Key{gone, service} {
		use, err := g.Check(t.Context(), key, true)
		assertUse(t, use, err, none)
		use, err = g.Delete(t.Context(), key, "uid")
		assertUse(t, use, err, none)
		if err := g.Lift(t.Context(), key); err != nil {
			t.Error(err)
		}
		if _, err := g.Delete(t.Context(), key, ""); err == nil {
			t.Error("deleted without a UID")
		}
	}
	other := plan.Key{Kind: "ConfigMap", Namespace: "app", Name: "x"}
	const want = "ConfigMap app/x: defines no types"
	if _, err := g.Check(t.Context(), other, false); err == nil || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
	if _, err := g.Delete(t.Context(), other, "uid"); err == nil || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
	if err := g.Lift(t.Context(), other); err == nil || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
}

func TestFenceHoldsOffCreationOnly(t *testing.T) {
	t.Parallel()
	author := apiextensionsv1.ValidationRule{Rule: "!has(self.size) || self.size < 10", Message: "too large"}
	crd := install(t, crdOf("Bellows", withSchema(apiextensionsv1.JSONSchemaProps{
		Properties:   map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer"}},
		XValidations: apiextensionsv1.ValidationRules{author, {Rule: "oldSelf.hasValue() || true", OptionalOldSelf: new(true)}},
	})))
	before := stored(t, crd)
	namespace, c := plane.Namespace(t), live(t)
	mine := instance(crd, namespace, "mine", ours)
	mine.SetFinalizers([]string{"example.com/wait"})
	create(t, mine)

	g, requests := guarded(t, interceptor.Funcs{})
	use, err := g.Check(t.Context(), keyOf(crd), true)
	assertUse(t, use, err, none)

	t.Run("creation is refused", func(t *testing.T) {
		err := c.Create(t.Context(), instance(crd, namespace, "late", ""))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), fenceText) {
			t.Errorf("create: %v", err)
		}
		err = c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(instance(crd, namespace, "late", "")), client.FieldOwner("them"))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), fenceText) {
			t.Errorf("apply: %v", err)
		}
		assertFences(t, crd, 1)
		if rules := stored(t, crd).Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations; len(rules) != 3 || rules[1] != author {
			t.Errorf("the author's rules are not kept: %v", rules)
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
			t.Errorf("it is still there: %v", err)
		}
	})
	t.Run("done once", func(t *testing.T) {
		requests.Reset()
		use, err := g.Check(t.Context(), keyOf(crd), true)
		assertUse(t, use, err, none)
		if requests.Writes() != 0 || requests.Total() != 2 {
			t.Errorf("requests: %v", requests.Counts())
		}
	})
	t.Run("lifted", func(t *testing.T) {
		if err := g.Lift(t.Context(), keyOf(crd)); err != nil {
			t.Fatal(err)
		}
		after := stored(t, crd)
		if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
			t.Errorf("the definition is not as before: %s", diff)
		}
		if _, found := after.Annotations[annotation]; found {
			t.Errorf("a note is left: %v", after.Annotations)
		}
		eventuallyCreates(t, instance(crd, namespace, "late", ""))
		requests.Reset()
		if err := g.Lift(t.Context(), keyOf(crd)); err != nil || requests.Writes() != 0 {
			t.Errorf("lifted twice: %v, %v", err, requests.Counts())
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
	use, err := g.Check(t.Context(), keyOf(crd), true)
	assertUse(t, use, err, none)
	assertFences(t, crd, 3)

	// Somebody makes the rule harmless, in one version only.
	fresh := stored(t, crd)
	fresh.Spec.Versions[1].Schema.OpenAPIV3Schema.XValidations[0].OptionalOldSelf = nil
	fresh.Spec.Versions[1].Schema.OpenAPIV3Schema.XValidations[0].Rule = "true"
	fresh.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations[0].Message = "go away"
	if err := live(t).Update(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	use, err = g.Check(t.Context(), keyOf(crd), true)
	assertUse(t, use, err, none)
	assertFences(t, crd, 3)
	if fresh := stored(t, crd); !strings.HasSuffix(fresh.Annotations[annotation], fmt.Sprintf("/%d", fresh.Generation)) {
		t.Errorf("generation %d is not proven: %s", fresh.Generation, fresh.Annotations[annotation])
	}
	for i, v := range stored(t, crd).Spec.Versions {
		rules := v.Schema.OpenAPIV3Schema.XValidations
		if rules[0].Message != fenceText || len(rules) != []int{1, 2, 1}[i] {
			t.Errorf("%s has %v", v.Name, rules)
		}
		err := live(t).Create(t.Context(), func() client.Object {
			object := instance(crd, plane.Namespace(t), "late", "")
			object.SetAPIVersion(crd.Spec.Group + "/" + v.Name)
			return object
		}())
		if v.Served && (err == nil || !strings.Contains(err.Error(), fenceText)) {
			t.Errorf("creation in %s: %v", v.Name, err)
		}
	}
}

func eventuallyCreates(t *testing.T, object client.Object) {
	t.Helper()
	c := live(t)
	eventuallyNil(t, func() error { return c.Create(t.Context(), object) })
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
	use, err := g.Check(t.Context(), keyOf(manifest), true)
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
		t.Error("the fence does not own the versions")
	}
	apply()
	// The note stays, but is about another generation.
	if n := fences(stored(t, manifest)); n != 0 {
		t.Errorf("%d versions are fenced", n)
	}
	if !owns("platform.example.com") || owns("platform.example.com-fence") {
		t.Error("the versions are not taken back")
	}
}

func eventuallyNil(t *testing.T, check func() error) {
	t.Helper()
	eventually(t, "it does not succeed", func(context.Context) error { return check() })
}

package helm

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-dev/espalier/generator"
)

const testPrefix = "shop.example.com"

// annotated returns a Job with annotations, which are keys and values in turn.
func annotated(pairs ...string) *unstructured.Unstructured {
	set := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{"namespace": "db", "name": "migrate", "annotations": set},
	}}
}

// added returns the annotations that object has more than before, without our prefix.
func added(object, before *unstructured.Unstructured) map[string]string {
	all := object.GetAnnotations()
	for key := range before.GetAnnotations() {
		delete(all, key)
	}
	out := map[string]string{}
	for key, text := range all {
		out[strings.TrimPrefix(key, testPrefix+"/")] = text
	}
	return out
}

// once and each are what hooks of installations and of upgrades have.
func once(order string) map[string]string {
	return map[string]string{"reconcile-policy": "once", "update-policy": "recreate", "apply-order": order}
}

func each(order string) map[string]string {
	out := once(order)
	out["reconcile-policy"] = "on-object-or-component-change"
	return out
}

func with(set map[string]string, pairs ...string) map[string]string {
	out := maps.Clone(set)
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

func TestTranslateHooks(t *testing.T) {
	t.Parallel()
	const hook, weight, policy = "helm.sh/hook", "helm.sh/hook-weight", "helm.sh/hook-delete-policy"
	dropDeletes := Options{DropHooks: []string{"pre-delete", "post-delete"}}
	for name, test := range map[string]struct {
		object  *unstructured.Unstructured
		options Options
		// install and upgrade are what is added; nil if the object is left out.
		install, upgrade map[string]string
	}{
		"no hook": {annotated(), Options{}, map[string]string{}, map[string]string{}},
		"weight without a hook": {annotated(weight, "many", policy, "never"), Options{},
			map[string]string{}, map[string]string{}},
		"pre-install":  {annotated(hook, "pre-install"), Options{}, once("-101"), once("-101")},
		"post-install": {annotated(hook, "post-install"), Options{}, once("101"), once("101")},
		"pre-upgrade":  {annotated(hook, "pre-upgrade"), Options{}, nil, each("-101")},
		"post-upgrade": {annotated(hook, "post-upgrade"), Options{}, nil, each("101")},
		"pre-install and pre-upgrade": {annotated(hook, "pre-install,pre-upgrade"), Options{},
			once("-101"), each("-101")},
		"post-install and pre-upgrade": {annotated(hook, " Post-Install , PRE-upgrade"), Options{},
			once("101"), each("-101")},
		"before and after": {annotated(hook, "post-install,pre-install", policy, "hook-succeeded"), Options{},
			with(once("-101"), "purge-order", "201"), with(once("-101"), "purge-order", "201")},
		"before and after an upgrade": {annotated(hook, "post-upgrade,pre-upgrade", policy, "hook-succeeded"),
			Options{}, nil, with(each("-101"), "purge-order", "201")},
		"all": {annotated(hook, "pre-install,post-install,pre-upgrade,post-upgrade"), Options{},
			once("-101"), each("-101")},
		"removed after success, before": {annotated(hook, "pre-install,post-upgrade", policy, "hook-succeeded"),
			Options{}, with(once("-101"), "purge-order", "-1"), with(each("101"), "purge-order", "201")},
		"recreated and removed": {annotated(hook, "post-install", policy, "before-hook-creation, Hook-Succeeded"),
			Options{}, with(once("101"), "purge-order", "201"), with(once("101"), "purge-order", "201")},
		"recreated": {annotated(hook, "post-install", policy, "before-hook-creation"), Options{},
			once("101"), once("101")},
		"removed after failure, ignored": {annotated(hook, "post-install", policy, "hook-failed"),
			Options{DropHookFailed: true}, once("101"), once("101")},
		"first":    {annotated(hook, "pre-install", weight, "-100"), Options{}, once("-201"), once("-201")},
		"last":     {annotated(hook, "post-install", weight, "100"), Options{}, once("201"), once("201")},
		"last pre": {annotated(hook, "pre-install", weight, "100"), Options{}, once("-1"), once("-1")},
		"test":     {annotated(hook, "test"), Options{}, nil, nil},
		"test of Helm 2, with a weight that does not count": {annotated(hook, "test-success", weight, "x"),
			Options{}, nil, nil},
		"test and installation": {annotated(hook, "test,post-install"), Options{}, once("101"), once("101")},
		"rollback":              {annotated(hook, "pre-rollback,post-rollback"), Options{}, nil, nil},
		"upgrade and rollback":  {annotated(hook, "pre-upgrade,pre-rollback"), Options{}, nil, each("-101")},
		"deletion, dropped":     {annotated(hook, "pre-delete,post-delete"), dropDeletes, nil, nil},
		"installation and deletion, dropped": {annotated(hook, "pre-install,post-delete"), dropDeletes,
			once("-101"), once("-101")},
		"installation, dropped": {annotated(hook, "pre-install"), Options{DropHooks: []string{"pre-install"}},
			nil, nil},
		"output is ignored": {annotated(hook, "pre-install", "helm.sh/hook-output-log-policy", "x"), Options{},
			once("-101"), once("-101")},
		"the chart has an order": {annotated(hook, "pre-install", "espalier.dev/apply-order", "7"), Options{},
			map[string]string{"reconcile-policy": "once", "update-policy": "recreate"},
			map[string]string{"reconcile-policy": "once", "update-policy": "recreate"}},
		"the chart says when it is written": {annotated(hook, "pre-upgrade",
			testPrefix+"/reconcile-policy", "on-object-change", "espalier.dev/update-policy", "default",
			policy, "hook-succeeded", testPrefix+"/purge-order", "0"), Options{},
			nil, map[string]string{"apply-order": "-101"}},
		"a hook that is kept": {annotated(hook, "pre-install", "helm.sh/resource-policy", "keep"), Options{},
			with(once("-101"), "delete-policy", "orphan"), with(once("-101"), "delete-policy", "orphan")},
	} {
		for _, install := range []bool{true, false} {
			want := test.upgrade
			if install {
				want = test.install
			}
			before := test.object.DeepCopy()
			got, err := translate([]*unstructured.Unstructured{before.DeepCopy()},
				release{prefix: testPrefix, install: install}, &test.options)
			switch {
			case err != nil:
				t.Errorf("%s, install %v: the error is %v, want none", name, install, err)
			case want == nil && len(got) > 0:
				t.Errorf("%s, install %v: the result is %v, want the hook left out", name, install, got)
			case want != nil && len(got) != 1:
				t.Errorf("%s, install %v: there are %d objects, want 1", name, install, len(got))
			case want != nil:
				if diff := cmp.Diff(want, added(got[0], before)); diff != "" {
					t.Errorf("%s, install %v (-want +got):\n%s", name, install, diff)
				}
			}
		}
	}
}

func TestTranslatePolicies(t *testing.T) {
	t.Parallel()
	const keep = "helm.sh/resource-policy"
	takeOver := Options{TakeOver: true}
	for name, test := range map[string]struct {
		object  *unstructured.Unstructured
		options Options
		want    map[string]string
	}{
		"keep": {annotated(keep, " Keep"), Options{}, map[string]string{"delete-policy": "orphan"}},
		"keep, and the chart says when": {annotated(keep, "keep", "espalier.dev/delete-policy", "orphanOnDelete"),
			Options{}, map[string]string{}},
		"taken over": {annotated(), takeOver,
			map[string]string{"adoption-policy": "always", "delete-policy": "delete"}},
		"taken over and kept": {annotated(keep, "keep"), takeOver,
			map[string]string{"adoption-policy": "always", "delete-policy": "orphan"}},
		"taken over as the chart says": {annotated("espalier.dev/adoption-policy", "never",
			"espalier.dev/delete-policy", "orphan"), takeOver, map[string]string{}},
		"taken over, but only read": {annotated("espalier.dev/presence", "read-only"), takeOver,
			map[string]string{}},
		"taken over, a hook": {annotated("helm.sh/hook", "post-install"), takeOver,
			with(once("101"), "adoption-policy", "always", "delete-policy", "delete")},
	} {
		before := test.object.DeepCopy()
		got, err := translate([]*unstructured.Unstructured{test.object}, release{prefix: testPrefix}, &test.options)
		if err != nil || len(got) != 1 {
			t.Errorf("%s: the objects are %v (%v), want one", name, got, err)
			continue
		}
		if diff := cmp.Diff(test.want, added(got[0], before)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTranslateRefuses(t *testing.T) {
	t.Parallel()
	const hook, weight, policy = "helm.sh/hook", "helm.sh/hook-weight", "helm.sh/hook-delete-policy"
	object := func(metadata any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "Job", "metadata": metadata}}
	}
	namespace := annotated(hook, "pre-install", policy, "hook-succeeded")
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	for name, test := range map[string]struct {
		object *unstructured.Unstructured
		want   string
	}{
		"deletion": {annotated(hook, "post-install,pre-delete"), "Job db/migrate: annotation helm.sh/hook: a component " +
			"runs no hook of the kind pre-delete; to leave it out, list the kind in Options.DropHooks"},
		"Helm 2": {annotated(hook, "crd-install"), "Job db/migrate: annotation helm.sh/hook: the kind crd-install is " +
			"of Helm 2; move the definition into the folder crds of the chart"},
		"unknown kind": {annotated(hook, "pre-instal"),
			`Job db/migrate: annotation helm.sh/hook: "pre-instal" is not a kind of hook`},
		"no kind": {annotated(hook, ""), `Job db/migrate: annotation helm.sh/hook: "" is not a kind of hook`},
		"high weight": {annotated(hook, "pre-install", weight, "101"),
			`Job db/migrate: annotation helm.sh/hook-weight: must be a number from -100 to 100: "101"`},
		"low weight": {annotated(hook, "pre-install", weight, "-101"),
			`Job db/migrate: annotation helm.sh/hook-weight: must be a number from -100 to 100: "-101"`},
		"no number": {annotated(hook, "pre-install", weight, "heavy"),
			`Job db/migrate: annotation helm.sh/hook-weight: must be a number from -100 to 100: "heavy"`},
		"hook-failed": {annotated(hook, "pre-install", policy, "hook-failed"), "Job db/migrate: annotation " +
			"helm.sh/hook-delete-policy: a component does not delete a hook that has failed; to ignore hook-failed, " +
			"set Options.DropHookFailed"},
		"unknown policy": {annotated(hook, "pre-install", policy, "later"),
			`Job db/migrate: annotation helm.sh/hook-delete-policy: "later" is not a policy`},
		"purged namespace": {namespace, "Namespace db/migrate: annotation helm.sh/hook-delete-policy: hook-succeeded " +
			"is not possible: deleting a Namespace, a CustomResourceDefinition or an APIService deletes other objects"},
		"unknown resource policy": {annotated("helm.sh/resource-policy", "retain"),
			`Job db/migrate: annotation helm.sh/resource-policy: must be keep: "retain"`},
		"kept and deleted": {annotated("helm.sh/resource-policy", "keep", "espalier.dev/delete-policy", "delete"),
			`Job db/migrate: annotation helm.sh/resource-policy: it contradicts espalier.dev/delete-policy: "delete"`},
		"kept and by default": {annotated("helm.sh/resource-policy", "keep", testPrefix+"/delete-policy", "default"),
			`Job db/migrate: annotation helm.sh/resource-policy: it contradicts shop.example.com/delete-policy: "default"`},
		"a hook that is only read": {annotated(hook, "pre-install", "espalier.dev/presence", "read-only"),
			`Job db/migrate: annotation helm.sh/hook: it contradicts espalier.dev/presence: "read-only"`},
		"not valid": {annotated("espalier.dev/apply-order", "first"), "Job db/migrate: annotation " +
			`espalier.dev/apply-order: must be a number from -32768 to 32767: "first"`},
		"no texts": {object(map[string]any{"name": "a", "annotations": map[string]any{weight: int64(1)}}),
			"Job a: annotation helm.sh/hook-weight: must be a string"},
		"no annotations": {object(map[string]any{"name": "a", "annotations": "none"}),
			"Job a: metadata.annotations must be an object"},
		"no metadata": {object([]any{}), "Job: metadata must be an object"},
	} {
		_, err := translate([]*unstructured.Unstructured{test.object}, release{prefix: testPrefix, install: true},
			&Options{})
		if err == nil || err.Error() != test.want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, test.want)
		}
	}
}

// An object without metadata or annotations gets them.
func TestTranslateCreatesAnnotations(t *testing.T) {
	t.Parallel()
	for _, content := range []map[string]any{
		{"kind": "Job"},
		{"kind": "Job", "metadata": nil},
		{"kind": "Job", "metadata": map[string]any{"annotations": nil}},
		{"kind": "Job", "metadata": map[string]any{"annotations": map[string]any(nil)}},
	} {
		got, err := translate([]*unstructured.Unstructured{{Object: content}}, release{prefix: testPrefix},
			&Options{TakeOver: true})
		if err != nil || len(got) != 1 || got[0].GetAnnotations()[testPrefix+"/adoption-policy"] != "always" {
			t.Errorf("%v: the objects are %v (%v), want one that is always adopted", content, got, err)
		}
	}
}

// The items of a list are translated. The annotations of Helm that the list has count for them too.
func TestTranslateLists(t *testing.T) {
	t.Parallel()
	list := func(set map[string]any, items ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "List", "items": items, "metadata": map[string]any{"annotations": set},
		}}
	}
	item := func(pairs ...string) any { return annotated(pairs...).Object }
	got, err := translate([]*unstructured.Unstructured{
		list(map[string]any{"helm.sh/hook": "post-install", "helm.sh/hook-weight": "1"},
			item(), item("helm.sh/hook", "test"), item("helm.sh/hook-weight", "2"), "no object"),
	}, release{prefix: testPrefix}, &Options{TakeOver: true})
	if err != nil || len(got) != 1 {
		t.Fatalf("the objects are %v (%v), want one", got, err)
	}
	items := got[0].Object["items"].([]any)
	if len(items) != 3 || items[2] != "no object" {
		t.Fatalf("the list has %v, want 3 items and the last as it was", items)
	}
	for i, order := range []string{"102", "103"} {
		annotations := (&unstructured.Unstructured{Object: items[i].(map[string]any)}).GetAnnotations()
		if annotations[testPrefix+"/apply-order"] != order || annotations[testPrefix+"/adoption-policy"] != "always" {
			t.Errorf("item %d has %v, want the order %s and to be always adopted", i, annotations, order)
		}
	}
	_, err = translate([]*unstructured.Unstructured{list(nil, item(), item("helm.sh/hook", "x"))},
		release{prefix: testPrefix}, &Options{})
	const want = `List: items[1]: Job db/migrate: annotation helm.sh/hook: "x" is not a kind of hook`
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// Each problem of each object is named.
func TestTranslateJoinsErrors(t *testing.T) {
	t.Parallel()
	second := annotated("helm.sh/resource-policy", "x")
	second.SetName("second")
	_, err := translate([]*unstructured.Unstructured{annotated("helm.sh/hook", "x"), annotated(), second},
		release{prefix: testPrefix}, &Options{})
	if err == nil || !strings.Contains(err.Error(), "Job db/migrate: ") || !strings.Contains(err.Error(), "Job db/second: ") {
		t.Error(err)
	}
}

func TestDropHooksAreChecked(t *testing.T) {
	t.Parallel()
	const want = `option DropHooks[1]: "pre-remove" is not a kind of hook; kinds are pre-install, post-install, ` +
		`pre-upgrade, post-upgrade, pre-delete, post-delete, pre-rollback, post-rollback, test, test-success`
	if err := checkDropHooks(&Options{DropHooks: []string{"pre-delete", "pre-remove"}}); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	if err := checkDropHooks(&Options{DropHooks: []string{"test", "post-rollback"}}); err != nil {
		t.Error(err)
	}
}

// FuzzTranslate: no annotation panics; an error names the object and an annotation; what remains has annotations that a
// component accepts, and those that the chart has set.
func FuzzTranslate(f *testing.F) {
	f.Add("pre-install,post-upgrade", "5", "hook-succeeded", "keep", "apply-order", "3", uint8(0))
	f.Add("pre-delete", "-100", "hook-failed", "", "delete-policy", "delete", uint8(7))
	f.Add("test", "x", "", "x", "presence", "read-only", uint8(8))
	f.Add("post-install", "", "before-hook-creation", "KEEP", "update-policy", "default", uint8(13))
	f.Fuzz(func(t *testing.T, hook, weight, policy, keep, name, text string, bits uint8) {
		pairs := []string{"espalier.dev/" + name, text, testPrefix + "/" + name, text}
		for i, pair := range [][2]string{{"hook", hook}, {"hook-weight", weight}, {"hook-delete-policy", policy},
			{"resource-policy", keep}} {
			if bits&(1<<i) == 0 {
				pairs = append(pairs, "helm.sh/"+pair[0], pair[1])
			}
		}
		options := Options{TakeOver: bits&16 != 0, DropHookFailed: bits&32 != 0}
		before := annotated(pairs...)
		got, err := translate([]*unstructured.Unstructured{before.DeepCopy()},
			release{prefix: testPrefix, install: bits&64 != 0}, &options)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "Job db/migrate: annotation ") {
				t.Errorf("the error is %v, want it to name the object and the annotation", err)
			}
			return
		}
		for _, object := range got {
			if _, err := generator.ReadSettings(testPrefix, object.GetAnnotations()); err != nil {
				t.Errorf("a component refuses %v: %v", object.GetAnnotations(), err)
			}
			for key, text := range before.GetAnnotations() {
				if object.GetAnnotations()[key] != text {
					t.Errorf("annotation %s is %q, want %q", key, object.GetAnnotations()[key], text)
				}
			}
		}
	})
}

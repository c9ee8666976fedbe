package manifest_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWhatIsDesired(t *testing.T) {
	purge := int16(7)
	got := prepare(t, annotated(object("apps/v1 Deployment", "a"),
		"apply-order", "-3", "delete-order", "4", "purge-order", "7", "update-policy", "recreate"))[0].Desired
	want := plan.Desired{
		Key:     plan.Key{Group: "apps", Kind: "Deployment", Namespace: "home", Name: "a"},
		Version: "v1", Digest: got.Digest,
		AdoptionPolicy: apis.AdoptNever, ReconcilePolicy: apis.ReconcileOnObjectChange, UpdatePolicy: apis.UpdateRecreate,
		ApplyOrder: -3, DeleteOrder: 4, PurgeOrder: &purge,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected (-want, +got):\n%s", diff)
	}
}

func TestPoliciesOfTheComponentAreInForceWhereAnObjectHasNone(t *testing.T) {
	o := options(func(o *manifest.Options) {
		o.AdoptionPolicy, o.ReconcilePolicy, o.UpdatePolicy = apis.AdoptIfUnowned, apis.ReconcileOnce, apis.UpdateReplace
		o.DeletePolicy, o.PrunePolicy, o.ReapplyInterval = apis.DeleteOrphan, apis.PruneAfter, time.Hour
	})
	got := prepareWith(t, o, nil, object("v1 ConfigMap", "a"), annotated(object("v1 ConfigMap", "b"),
		"adoption-policy", "always", "reconcile-policy", "on-object-change", "update-policy", "apply-override",
		"delete-policy", "orphan-on-apply", "prune-policy", "before", "reapply-interval", "0s"))
	a, b := got[0].Desired, got[1].Desired
	if a.AdoptionPolicy != apis.AdoptIfUnowned || a.ReconcilePolicy != apis.ReconcileOnce || a.UpdatePolicy != apis.UpdateReplace ||
		a.DeletePolicy != apis.DeleteOrphan || a.PrunePolicy != apis.PruneAfter || a.ReapplyInterval != time.Hour {
		t.Errorf("without annotations %+v is desired, want the policies of the component", a)
	}
	if b.AdoptionPolicy != apis.AdoptAlways || b.ReconcilePolicy != apis.ReconcileOnObjectChange ||
		b.UpdatePolicy != apis.UpdateApplyOverride || b.DeletePolicy != apis.DeleteOrphanOnApply ||
		b.PrunePolicy != apis.PruneBefore || b.ReapplyInterval != 0 {
		t.Errorf("with annotations %+v is desired, want the policies of the annotations", b)
	}
	o.ReapplyInterval = -time.Hour
	if got := prepareWith(t, o, nil, object("v1 ConfigMap", "a"))[0].Desired.ReapplyInterval; got != 0 {
		t.Errorf("a negative interval became %v, want 0", got)
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	wantError(t, manifest.Options{UpdatePolicy: "Apply", DeletePolicy: "Burn"}, nil,
		`delete policy "Burn" of the component is none of ["Delete" "Orphan" "OrphanOnApply" "OrphanOnDelete"]`,
		`the scope of kinds cannot be told`)
}

// Only what the API server or the component itself sets is taken off.
func TestWhatIsStripped(t *testing.T) {
	generated := &unstructured.Unstructured{Object: m{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": m{
			"name": "a", "generateName": "", "managedFields": []any{}, "resourceVersion": "666", "uid": "u", "generation": 99,
			"creationTimestamp": nil, "selfLink": "s", "deletionTimestamp": "now", "deletionGracePeriodSeconds": 1,
			"labels":      m{prefix + "/owner-id": "x", "other.example.com/owner-id": "y"},
			"annotations": m{prefix + "/owner-id": "x", prefix + "/digest": "x", prefix + "/fence": "x"},
			"finalizers":  []any{"f"},
		},
		"spec":   m{"invented": m{"tomorrow": true}, "template": m{"metadata": m{"creationTimestamp": nil}}},
		"status": m{"replicas": 1},
	}}
	want := m{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": m{
			"name": "a", "namespace": "home", "labels": m{"other.example.com/owner-id": "y"}, "finalizers": []any{"f"},
		},
		"spec": m{"invented": m{"tomorrow": true}, "template": m{"metadata": m{"creationTimestamp": nil}}},
	}
	if diff := cmp.Diff(want, made(t, prepare(t, generated)[0]).Object); diff != "" {
		t.Errorf("unexpected (-want, +got):\n%s", diff)
	}
}

type text string

func TestValuesThatCodeMakesBecomeJSON(t *testing.T) {
	cases := map[string]struct{ is, want any }{
		"int":               {1, int64(1)},
		"int32":             {int32(-1), int64(-1)},
		"uint64":            {uint64(math.MaxInt64), int64(math.MaxInt64)},
		"float32":           {float32(0.1), 0.1},
		"whole float":       {1.0, 1.0},
		"number":            {json.Number("12"), int64(12)},
		"broken number":     {json.Number("1.5"), 1.5},
		"named string":      {text("a"), "a"},
		"duration":          {time.Second, int64(time.Second)},
		"strings":           {[]string{"a"}, []any{"a"}},
		"array":             {[1]int{1}, []any{int64(1)}},
		"map of strings":    {map[string]string{"a": "b"}, m{"a": "b"}},
		"map by text":       {map[text]int{"a": 1}, m{"a": int64(1)}},
		"list of maps":      {[]m{{"a": 1}}, []any{m{"a": int64(1)}}},
		"nil map":           {m(nil), nil},
		"nil map of string": {map[string]string(nil), nil},
		"nil list":          {[]any(nil), nil},
		"nil strings":       {[]string(nil), nil},
		"empty list":        {[]any{}, []any{}},
		"null":              {nil, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := made(t, prepare(t, object("v1 ConfigMap", "a", m{"x": c.is}))[0])
			if diff := cmp.Diff(c.want, got.Object["x"]); diff != "" {
				t.Errorf("unexpected (-want, +got):\n%s", diff)
			}
			got.DeepCopy()
		})
	}
}

// Anything that is wrong with an object is an error that says so.
func TestFaultyObjects(t *testing.T) {
	loop := m{}
	loop["self"] = []any{loop, loop}
	many := m{}
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		many[key] = math.NaN()
	}
	with := func(fields m) client.Object { return object("v1 ConfigMap", "a", fields) }
	cases := map[string]struct {
		object client.Object
		want   []string
	}{
		"nil":         {nil, []string{"objects[0]: it is nil"}},
		"nil pointer": {(*unstructured.Unstructured)(nil), []string{"objects[0]: it is nil"}},
		"empty":       {&unstructured.Unstructured{}, []string{"objects[0]: it has no kind", "objects[0]: it has no apiVersion", "objects[0]: it has no name"}},
		"a question": {object("authentication.k8s.io/v1 TokenReview", "a"), []string{
			"objects[0] (TokenReview a): the API server keeps no objects of its kind, so it cannot be part of a component",
		}},
		"finalizers twice": {with(m{"metadata": m{"name": "a", "finalizers": []any{"a/b", "c/d", "a/b"}}}), []string{
			`objects[0] (ConfigMap a): its finalizers have "a/b" twice`,
		}},
		"owner references twice": {with(m{"metadata": m{"name": "a", "ownerReferences": []any{
			m{"uid": "1", "name": "x"}, m{"uid": "2", "name": "x"}, m{"uid": "1", "name": "y"},
		}}}), []string{`objects[0] (ConfigMap a): its ownerReferences have "1" twice`}},
		"no name":          {object("v1 ConfigMap", ""), []string{"objects[0] (ConfigMap): it has no name"}},
		"no metadata":      {with(m{"metadata": nil}), []string{"objects[0] (ConfigMap): it has no name"}},
		"no kind":          {with(m{"kind": nil}), []string{"objects[0] (a): it has no kind"}},
		"kind of 1":        {with(m{"kind": 1}), []string{"objects[0] (a): its kind is not a string"}},
		"no apiVersion":    {with(m{"apiVersion": ""}), []string{"objects[0] (ConfigMap a): it has no apiVersion"}},
		"apiVersion of []": {with(m{"apiVersion": []any{}}), []string{"objects[0] (ConfigMap a): its apiVersion is not a string"}},
		"no version":       {with(m{"apiVersion": "apps/"}), []string{`objects[0] (ConfigMap a): its apiVersion "apps/" is not of the form group/version`}},
		"long apiVersion":  {with(m{"apiVersion": "a/b/c"}), []string{`objects[0] (ConfigMap a): its apiVersion "a/b/c" is not of the form group/version`}},
		"metadata a list":  {with(m{"metadata": []any{}}), []string{"objects[0] (ConfigMap): its metadata is not an object"}},
		"name a number": {with(m{"metadata": m{"name": 1, "namespace": true}}), []string{
			"objects[0] (ConfigMap): its namespace is not a string", "objects[0] (ConfigMap): its name is not a string",
			"objects[0] (ConfigMap): it has no name"}},
		"name of a path": {with(m{"metadata": m{"name": "../b"}}), []string{
			`objects[0] (ConfigMap ../b): its name or namespace "../b" may not contain '/'`}},
		"generateName": {with(m{"metadata": m{"generateName": "a-"}}), []string{"objects[0] (ConfigMap): it has a generateName; names have to be known"}},
		"labels and annotations": {with(m{"metadata": m{"name": "a", "labels": m{"y": nil, "x": 1, "z": ""}, "annotations": "x"}}), []string{
			`objects[0] (ConfigMap a): the value of "x" in its labels is not a string`,
			`objects[0] (ConfigMap a): the value of "y" in its labels is not a string`,
			"objects[0] (ConfigMap a): its annotations are not an object"}},
		"bad annotation": {annotated(object("v1 ConfigMap", "a"), "apply-order", "x", "delete-order", "40000"), []string{
			`objects[0] (ConfigMap a): annotation platform.example.com/apply-order: must be a number from -32768 to 32767: "x"`,
			`objects[0] (ConfigMap a): annotation platform.example.com/delete-order: must be a number from -32768 to 32767: "40000"`}},
		"an unknown setting": {annotated(object("v1 ConfigMap", "a"), "apply-ordr", "1"), []string{
			`objects[0] (ConfigMap a): annotation platform.example.com/apply-ordr: is unknown; the nearest is platform.example.com/apply-order`}},
		"channel": {with(m{"x/y": []any{m{"~": make(chan int)}}}), []string{
			`objects[0]: "/x~1y/0/~0" is of the Go type chan int, which is not a JSON value`}},
		"several": {with(m{"b": struct{ A int }{}, "a": func() {}, "c": []byte("x"), "d": time.Time{}, "e": map[int]int{}, "f": new("x")}), []string{
			`objects[0]: "/a" is of the Go type func(), which is not a JSON value; ` +
				`"/b" is of the Go type struct { A int }, which is not a JSON value; ` +
				`"/c" is of the Go type []uint8, which is not a JSON value; ` +
				`"/d" is of the Go type time.Time, which is not a JSON value; ` +
				`"/e" is of the Go type map[int]int, which is not a JSON value; ` +
				`"/f" is of the Go type *string, which is not a JSON value`}},
		"numbers": {with(m{"a": math.NaN(), "b": math.Inf(1), "c": uint64(math.MaxUint64), "d": json.Number("1e999"),
			"e": json.Number("99999999999999999999"), "f": float32(math.Inf(-1)), "g": json.Number("x")}), []string{
			`objects[0]: "/a" is not a finite number; "/b" is not a finite number; "/c" is a number out of range; ` +
				`"/d" is not a number in range; "/e" is a number out of range; "/f" is not a finite number; "/g" is not a number in range`}},
		"not UTF-8": {with(m{"a": "\xff", "b": m{"\xff": "c"}}), []string{`objects[0]: "/a" is not valid UTF-8; "/b/\xff" is not valid UTF-8`}},
		"many": {with(many), []string{`objects[0]: "/a" is not a finite number; "/b" is not a finite number; "/c" is not a finite number; ` +
			`"/d" is not a finite number; "/e" is not a finite number; "/f" is not a finite number; "/g" is not a finite number; ` +
			`"/h" is not a finite number; "/i" is not a finite number; "/j" is not a finite number; and 2 more`}},
		"loop":            {with(loop), []string{"objects[0]: it holds itself, more than 262144 values, or values nested more than 256 levels deep"}},
		"purge of a type": {annotated(crd("example.com", "Widget", "Cluster"), "purge-order", "1"), []string{"objects[0] (CustomResourceDefinition widgets.example.com): an object of the kind CustomResourceDefinition cannot have a purge order"}},
		"purge of a namespace": {annotated(object("v1 Namespace", "a"), "purge-order", "1"), []string{
			"objects[0] (Namespace a): an object of the kind Namespace cannot have a purge order"}},
		"purge of an API": {annotated(apiService("example.com", "v1"), "purge-order", "1"), []string{
			"objects[0] (APIService v1.example.com): an object of the kind APIService cannot have a purge order"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				wantError(t, options(), []client.Object{c.object}, c.want...)
			}
		})
	}
}

func TestErrorsNameAllObjectsInTheirOrder(t *testing.T) {
	wantError(t, options(), []client.Object{
		object("v1 ConfigMap", "a"),
		object("example.com/v1 Gadget", "g"),
		nil,
		object("v1 ConfigMap", "home/a"),
		object("v1 List", "l", m{"items": []any{object("v1 ConfigMap", "b").Object, "x", object("v1 ConfigMap", "").Object}}),
	},
		`objects[1] (Gadget g): neither the cluster nor any of the objects defines its kind: no matches for kind "Gadget" in version "example.com/v1"`,
		"objects[2]: it is nil",
		"objects[3] (ConfigMap home/a): it is the same object as objects[0] (ConfigMap home/a)",
		"objects[4].items[1]: it is not an object",
		"objects[4].items[2] (ConfigMap): it has no name",
	)
}

func TestLists(t *testing.T) {
	inner := m{"apiVersion": "v1", "kind": "ConfigMapList", "items": []any{m{"metadata": m{"name": "b"}}}}
	list := &unstructured.Unstructured{Object: m{"apiVersion": "v1", "kind": "List", "items": []any{
		object("v1 ConfigMap", "a").Object, inner, m{"apiVersion": "v1", "kind": "List", "items": nil},
	}}}
	var names []string
	for _, o := range prepare(t, list, object("example.com/v1 AllowList", "c", m{"items": []any{}}), crd("example.com", "AllowList", "Cluster")) {
		names = append(names, o.Desired.Kind+" "+o.Desired.Name)
	}
	want := []string{"ConfigMap a", "ConfigMap b", "AllowList c", "CustomResourceDefinition allowlists.example.com"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("unexpected (-want, +got):\n%s", diff)
	}
	if _, ok := inner["items"].([]any)[0].(m)["kind"]; ok {
		t.Errorf("the list was changed to %v, want no kind added", inner["items"])
	}
	wantError(t, options(), []client.Object{object("v1 List", "l", m{"items": "x"})}, "objects[0]: it is a list whose items are not an array")
}

func TestSecrets(t *testing.T) {
	secret := prepare(t, object("v1 Secret", "a", m{
		"data": m{"a": "b2xk", "b": "Yg==", "n": nil}, "stringData": m{"a": "new", "c": "c", "": nil}, "type": "Opaque",
	}), object("v1 Secret", "b", m{"data": nil}), object("v1 ConfigMap", "c", m{"data": m{"a": "!"}}))
	want := m{"a": "bmV3", "b": "Yg==", "c": "Yw==", "n": "", "": ""}
	if diff := cmp.Diff(want, made(t, secret[0]).Object["data"]); diff != "" {
		t.Errorf("unexpected (-want, +got):\n%s", diff)
	}
	for _, s := range secret[:2] {
		if _, ok := made(t, s).Object["stringData"]; ok || !s.Confidential {
			t.Errorf("%v: stringData is there: %t, confidential: %t, want false and true", s.Desired.Key, ok,
				s.Confidential)
		}
	}
	if _, ok := made(t, secret[1]).Object["data"]; ok {
		t.Errorf("null became the data %v, want none", made(t, secret[1]).Object["data"])
	}
	if secret[2].Confidential {
		t.Error("the ConfigMap is confidential, want that it is not")
	}
	wantError(t, options(), []client.Object{
		object("v1 Secret", "a", m{"data": m{"k": "hunter2!", "l": 4711}, "stringData": m{"z": true}}),
		object("v1 Secret", "b", m{"data": "hunter2", "stringData": []any{"hunter2"}}),
	},
		`objects[0] (Secret a): the value of "l" in its data is not a string`,
		`objects[0] (Secret a): the value of "z" in its stringData is not a string`,
		`objects[0] (Secret a): the value of "k" in its data is not base64`,
		"objects[1] (Secret b): its data is not an object",
		"objects[1] (Secret b): its stringData is not an object",
	)
}

func TestScopes(t *testing.T) {
	widget := func(name string) client.Object { return object("example.com/v1 Widget", name) }
	cases := map[string]struct {
		objects []client.Object
		want    string
	}{
		"namespaced":                   {[]client.Object{object("v1 ConfigMap", "a")}, "ConfigMap home/a"},
		"namespaced, elsewhere":        {[]client.Object{object("v1 ConfigMap", "b/a")}, "ConfigMap b/a"},
		"cluster":                      {[]client.Object{object("v1 Namespace", "a")}, "Namespace a"},
		"cluster, with namespace":      {[]client.Object{object("v1 Namespace", "b/a")}, "Namespace a"},
		"defined, namespaced":          {[]client.Object{widget("a"), crd("example.com", "Widget", "Namespaced")}, "Widget home/a"},
		"defined, cluster":             {[]client.Object{widget("b/a"), crd("example.com", "Widget", "Cluster")}, "Widget a"},
		"defined against the cluster":  {[]client.Object{object("apps/v1 Deployment", "b/a"), crd("apps", "Deployment", "Cluster")}, "Deployment a"},
		"served, without namespace":    {[]client.Object{widget("a"), apiService("example.com", "v1")}, "Widget a"},
		"served, with namespace":       {[]client.Object{widget("b/a"), apiService("example.com", "v1")}, "Widget b/a"},
		"served, known to the cluster": {[]client.Object{object("apps/v1 Deployment", "a"), apiService("apps", "v1")}, "Deployment home/a"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := prepare(t, c.objects...)[0]
			if got.Desired.Key.String() != c.want {
				t.Errorf("it is %s, but wanted %s", got.Desired.Key, c.want)
			}
			if made(t, got).GetNamespace() != got.Desired.Namespace {
				t.Errorf("the namespace of the manifest is %q, want %q", made(t, got).GetNamespace(),
					got.Desired.Namespace)
			}
		})
	}
}

func TestScopesThatCannotBeTold(t *testing.T) {
	widget := object("example.com/v1 Widget", "a")
	unknown := `objects[0] (Widget a): neither the cluster nor any of the objects defines its kind: no matches for kind "Widget" in version "example.com/v1"`
	wantError(t, options(), []client.Object{widget}, unknown)
	wantError(t, options(), []client.Object{widget, crd("example.com", "Gadget", "Cluster"), crd("example.org", "Widget", "Cluster"),
		apiService("example.com", "v2")}, unknown)
	_, err := manifest.Prepare([]client.Object{widget}, options(), nil)
	if !meta.IsNoMatchError(err) {
		t.Errorf("the error is %v, want one that tells that the kind is not known", err)
	}

	broken := errors.New("broken")
	o := options(func(o *manifest.Options) {
		o.Namespaced = func(schema.GroupVersionKind) (bool, bool, error) { return false, false, broken }
	})
	if _, err := manifest.Prepare([]client.Object{widget}, o, nil); !errors.Is(err, broken) {
		t.Errorf("the error is %v, want that of the look-up, %v", err, broken)
	}
	wantError(t, o, []client.Object{widget}, "objects[0] (Widget a): the scope of its kind cannot be found out: broken")

	nowhere := options(func(o *manifest.Options) { o.Namespace = "" })
	wantError(t, nowhere, []client.Object{object("v1 ConfigMap", "a")}, "objects[0] (ConfigMap a): it is namespaced, and no namespace is known for it")
}

func TestKindsOfAFaultyDefinitionAreNotMissed(t *testing.T) {
	wantError(t, options(), []client.Object{object("example.com/v1 Widget", "a"), crd("example.com", "Widget", "Galaxy")},
		`objects[1] (CustomResourceDefinition widgets.example.com): its spec.scope "Galaxy" is neither Namespaced nor Cluster`)
}

func TestDuplicates(t *testing.T) {
	wantError(t, options(), []client.Object{
		object("apps/v1 Deployment", "a"), object("apps/v1beta1 Deployment", "home/a"), object("apps/v1 Deployment", "b/a"), object("v1 ConfigMap", "a"),
		object("v1 Namespace", "n"), object("v1 Namespace", "x/n"),
	},
		"objects[1] (Deployment home/a): it is the same object as objects[0] (Deployment home/a)",
		"objects[5] (Namespace n): it is the same object as objects[4] (Namespace n)")
	other := crd("example.com", "Widget", "Cluster")
	other.SetName("widgets2.example.com")
	wantError(t, options(), []client.Object{crd("example.com", "Widget", "Cluster"), other},
		"objects[1] (CustomResourceDefinition widgets2.example.com): it defines the same type as objects[0] (CustomResourceDefinition widgets.example.com)")
}

func TestOrders(t *testing.T) {
	widgets := annotated(crd("example.com", "Widget", "Namespaced"), "apply-order", "1", "delete-order", "1")
	api := annotated(apiService("example.org", "v1"), "apply-order", "1", "delete-order", "1")
	namespace := annotated(object("v1 Namespace", "n"), "apply-order", "1", "delete-order", "1")
	of := func(kind, name, apply, remove string) client.Object {
		return annotated(object(kind, name), "apply-order", apply, "delete-order", remove)
	}
	prepare(t, widgets, api, namespace,
		of("example.com/v1 Widget", "a", "1", "1"), of("example.com/v1 Widget", "b", "2", "0"), of("example.org/v1 Thing", "c", "2", "0"),
		of("v1 ConfigMap", "n/d", "1", "1"), of("v1 ConfigMap", "home/d", "0", "2"))
	wantError(t, options(), []client.Object{
		of("example.com/v2 Widget", "a", "0", "1"), of("example.org/v1 Thing", "b", "1", "2"), of("v1 ConfigMap", "n/c", "-1", "3"),
		widgets, api, namespace,
	},
		"objects[0] (Widget home/a): its apply order 0 is less than the apply order 1 of its type, objects[3] (CustomResourceDefinition widgets.example.com)",
		"objects[1] (Thing b): its delete order 2 is greater than the delete order 1 of its type, objects[4] (APIService v1.example.org)",
		"objects[2] (ConfigMap n/c): its apply order -1 is less than the apply order 1 of its namespace, objects[5] (Namespace n)",
		"objects[2] (ConfigMap n/c): its delete order 3 is greater than the delete order 1 of its namespace, objects[5] (Namespace n)",
	)
}

func TestManagedTypes(t *testing.T) {
	beta := crd("example.com", "Widget", "Cluster")
	beta.SetAPIVersion("apiextensions.k8s.io/v1beta1")
	got := prepare(t, beta, apiService("example.org", "v2"), object("v1 ConfigMap", "a"))
	want := [][]apis.ManagedType{
		{{Group: "example.com", Version: "*", Kind: "Widget"}}, {{Group: "example.org", Version: "v2", Kind: "*"}}, nil,
	}
	for i, o := range got {
		if diff := cmp.Diff(want[i], o.Desired.ManagedTypes); diff != "" {
			t.Errorf("%v (-want, +got):\n%s", o.Desired.Key, diff)
		}
	}
	wantError(t, options(), []client.Object{
		object("apiextensions.k8s.io/v1 CustomResourceDefinition", "a"),
		object("apiextensions.k8s.io/v1 CustomResourceDefinition", "b", m{"spec": m{"group": "*", "names": "x", "scope": 1}}),
		object("apiregistration.k8s.io/v1 APIService", "c", m{"spec": []any{}}),
	},
		"objects[0] (CustomResourceDefinition a): it has no spec.group that is a name",
		"objects[0] (CustomResourceDefinition a): it has no spec.names.kind that is a name",
		"objects[0] (CustomResourceDefinition a): it has no spec.scope that is a name",
		"objects[1] (CustomResourceDefinition b): it has no spec.group that is a name",
		"objects[1] (CustomResourceDefinition b): it has no spec.names.kind that is a name",
		"objects[1] (CustomResourceDefinition b): it has no spec.scope that is a name",
		"objects[2] (APIService c): it has no spec.group that is a name",
		"objects[2] (APIService c): it has no spec.version that is a name")
}

// The namespaces to make are those that the component does not have.
func TestMissingNamespaces(t *testing.T) {
	objects := prepare(t, object("v1 ConfigMap", "z/a"), object("v1 ConfigMap", "a"), object("v1 ConfigMap", "b/a"), object("v1 Secret", "z/a"),
		object("v1 Namespace", "b"), object("v1 Namespace", "unused"), object("rbac.authorization.k8s.io/v1 ClusterRole", "q/a"))
	if diff := cmp.Diff([]string{"home", "z"}, manifest.MissingNamespaces(objects)); diff != "" {
		t.Errorf("unexpected (-want, +got):\n%s", diff)
	}
	if got := manifest.MissingNamespaces(nil); len(got) != 0 {
		t.Errorf("the missing namespaces of no objects are %v, want none", got)
	}
}

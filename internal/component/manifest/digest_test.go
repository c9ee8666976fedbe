package manifest_test

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func digestOf(t *testing.T, object client.Object) string {
	t.Helper()
	return prepare(t, object)[0].Desired.Digest
}

// Digests are stored in clusters: if one of these changes, all users write all objects again, and lose those that are recreated.
func TestDigestsNeverChange(t *testing.T) {
	cases := map[string]struct {
		object client.Object
		want   string
	}{
		"ConfigMap": {object("v1 ConfigMap", "a", m{"data": m{"a": "b"}}), "nmhi7bzs2xor3bdn2tbgrgjnem"},
		"all sorts of values": {object("example.com/v1 Widget", "n/a", m{"spec": m{
			"null": nil, "true": true, "false": false, "empty": m{}, "none": []any{}, "list": []any{"b", "a", int64(1)},
			"int": int64(-12), "float": 0.1, "large": 1e300, "long": int64(9007199254740993),
			"text": "a\"\\\n\x00é\u2028<>&", "": "no key", "é": "later", "z": "earlier",
		}}), "ph7ujdplkf3g5iwv6qt2au5afq"},
		"Secret": {object("v1 Secret", "a", m{"data": m{"password": "YQ=="}, "type": "Opaque"}), "azpamjkehl2gpssshstczm76dq"},
		"typed":  {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"a": "b"}}, "nmhi7bzs2xor3bdn2tbgrgjnem"},
		"once":   {annotated(object("v1 ConfigMap", "a"), "reconcile-policy", "once"), plan.DigestOnce},
		"with that of the component": {
			annotated(object("v1 ConfigMap", "a"), "reconcile-policy", "on-object-or-component-change"), "rdaduqtjoztsjk2nooo3umxhdq@state1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := prepare(t, c.object, crd("example.com", "Widget", "Namespaced"))[0].Desired.Digest
			if got != c.want {
				t.Errorf("the digest is %s, but wanted %s", got, c.want)
			}
		})
	}
}

func TestDigestsAreShort(t *testing.T) {
	if got := digestOf(t, object("v1 ConfigMap", "a")); !regexp.MustCompile(`^[a-z2-7]{26}$`).MatchString(got) {
		t.Errorf("the digest is %q, want 26 letters and digits", got)
	}
}

// The same object has the same digest, however it was made.
func TestWhatDigestsDoNotDependOn(t *testing.T) {
	spec := func(template, n any) m { return m{"spec": m{"template": template, "n": n, "list": []any{n}}} }
	want := digestOf(t, object("apps/v1 Deployment", "a", spec(m{"metadata": m{}}, int64(3))))
	stripped := object("apps/v1 Deployment", "a", spec(m{"metadata": m{}}, 3))
	stripped.SetUID("u")
	stripped.SetGeneration(3)
	stripped.SetResourceVersion("7")
	for name, same := range map[string]client.Object{
		"float":              object("apps/v1 Deployment", "a", spec(m{"metadata": m{}}, 3.0)),
		"int":                object("apps/v1 Deployment", "a", spec(m{"metadata": m{}}, 3)),
		"namespace filled":   object("apps/v1 Deployment", "home/a", spec(m{"metadata": m{}}, 3)),
		"null time inside":   object("apps/v1 Deployment", "a", spec(m{"metadata": m{"creationTimestamp": nil}}, 3)),
		"fields of a server": stripped,
		"status":             object("apps/v1 Deployment", "a", spec(m{"metadata": m{}}, 3), m{"status": m{"n": 1}}),
		"mark of the component": annotated(object("apps/v1 Deployment", "a", spec(m{"metadata": m{}}, 3)),
			"owner-id", "x", "digest", "y"),
	} {
		if got := digestOf(t, same); got != want {
			t.Errorf("%s: the digest is %s, want %s", name, got, want)
		}
	}
	typed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"x": "y"}}, Data: map[string]string{"a": "b"}}
	untyped := object("v1 ConfigMap", "a", m{"data": m{"a": "b"}, "metadata": m{"name": "a", "creationTimestamp": nil, "labels": m{"x": "y"}}})
	if digestOf(t, typed) != digestOf(t, untyped) {
		t.Errorf("the digest depends on the Go type: %s and %s, want the same", digestOf(t, typed),
			digestOf(t, untyped))
	}
}

func TestWhatDigestsDependOn(t *testing.T) {
	meta := func(field string, value any) client.Object {
		return object("v1 ConfigMap", "a", m{"metadata": m{"name": "a", field: value}})
	}
	seen := map[string]string{}
	for name, other := range map[string]client.Object{
		"nothing":     object("v1 ConfigMap", "a"),
		"name":        object("v1 ConfigMap", "b"),
		"namespace":   object("v1 ConfigMap", "b/a"),
		"version":     object("v2 ConfigMap", "a"),
		"kind":        object("v1 Secret", "a"),
		"label":       meta("labels", m{"a": "b"}),
		"annotation":  meta("annotations", m{"a": "b"}),
		"order":       annotated(object("v1 ConfigMap", "a"), "apply-order", "1"),
		"finalizer":   meta("finalizers", []any{"f"}),
		"int":         object("v1 ConfigMap", "a", m{"x": 1}),
		"float":       object("v1 ConfigMap", "a", m{"x": 1.5}),
		"text":        object("v1 ConfigMap", "a", m{"x": "1"}),
		"true":        object("v1 ConfigMap", "a", m{"x": true}),
		"null":        object("v1 ConfigMap", "a", m{"x": nil}),
		"text null":   object("v1 ConfigMap", "a", m{"x": "null"}),
		"map":         object("v1 ConfigMap", "a", m{"x": m{}}),
		"list":        object("v1 ConfigMap", "a", m{"x": []any{}}),
		"ordered":     object("v1 ConfigMap", "a", m{"x": []any{"a", "b"}}),
		"reordered":   object("v1 ConfigMap", "a", m{"x": []any{"b", "a"}}),
		"joined":      object("v1 ConfigMap", "a", m{"x": []any{`a","b`}}),
		"long":        object("v1 ConfigMap", "a", m{"x": int64(9007199254740993)}),
		"long, less":  object("v1 ConfigMap", "a", m{"x": int64(9007199254740992)}),
		"secret key":  object("v1 Secret", "a", m{"data": m{"k": ""}}),
		"secret time": object("v1 Secret", "a", m{"data": m{"creationTimestamp": ""}}),
		"secret type": object("v1 Secret", "a", m{"type": "Opaque"}),
		"immutable":   object("v1 Secret", "a", m{"immutable": true}),
	} {
		got := digestOf(t, other)
		if same, ok := seen[got]; ok {
			t.Errorf("%s and %s have the same digest %s, want different ones", name, same, got)
		}
		seen[got] = name
	}
}

func TestDigestsDoNotTellSecrets(t *testing.T) {
	secret := func(value string) client.Object {
		return object("v1 Secret", "a", m{
			"metadata":   m{"name": "a", "annotations": m{"kubectl.kubernetes.io/last-applied-configuration": value, "x": "y"}},
			"data":       m{"a": base64.StdEncoding.EncodeToString([]byte(value)), "c": ""},
			"stringData": m{"b": value},
		})
	}
	cache := &manifest.Cache{}
	one := prepareWith(t, options(), cache, secret("hunter2"))[0]
	two := prepareWith(t, options(), cache, secret("correct horse"))[0]
	if one.Desired.Digest != two.Desired.Digest {
		t.Errorf("the digest depends on values: %s and %s, want the same", one.Desired.Digest, two.Desired.Digest)
	}
	if got := made(t, two).Object["data"].(m)["b"]; got != base64.StdEncoding.EncodeToString([]byte("correct horse")) {
		t.Errorf("the manifest holds %v, want the encoded value", got)
	}
	if got := made(t, two).GetAnnotations(); len(got) != 2 || !strings.Contains(got["kubectl.kubernetes.io/last-applied-configuration"], "horse") {
		t.Errorf("the annotations are %v, want two, with the value in last-applied-configuration", got)
	}
}

func TestPoliciesOfTheComponentDoNotChangeDigests(t *testing.T) {
	a := prepare(t, object("v1 ConfigMap", "a"))[0].Desired.Digest
	b := prepareWith(t, options(func(o *manifest.Options) {
		o.DeletePolicy, o.ComponentDigest = apis.DeleteOrphan, "other"
	}), nil, object("v1 ConfigMap", "a"))[0].Desired.Digest
	if a != b {
		t.Errorf("the digests are %s and %s, want the same", a, b)
	}
}

package manifest_test

import (
	"encoding/base64"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/manifest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What a known controller maintains is not written, since each would undo what the other wrote.
func TestMaintainedFieldsAreLeftOut(t *testing.T) {
	bundle := base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----"))
	role := func(fields m) client.Object {
		return object("rbac.authorization.k8s.io/v1 ClusterRole", "a", fields)
	}
	injected := func(o client.Object, key string) client.Object {
		o.SetAnnotations(map[string]string{key: "space/name"})
		return o
	}
	webhooks := func(kind string, bundles ...any) client.Object {
		var list []any
		for _, b := range bundles {
			list = append(list, m{"name": "x.example.com", "clientConfig": m{"url": "https://x", "caBundle": b}})
		}
		return object("admissionregistration.k8s.io/v1 "+kind, "a", m{"webhooks": list})
	}
	withoutBundle := m{"name": "x.example.com", "clientConfig": m{"url": "https://x"}}
	withBundle := m{"name": "x.example.com", "clientConfig": m{"url": "https://x", "caBundle": bundle}}
	api := func(fields m) client.Object {
		return object("apiregistration.k8s.io/v1 APIService", "v1.example.com", m{"spec": fields})
	}
	withSpec := func(extra m) m {
		spec := m{"group": "example.com", "version": "v1", "groupPriorityMinimum": int64(1), "versionPriority": int64(1)}
		for key, value := range extra {
			spec[key] = value
		}
		return spec
	}
	converted := func(b any) client.Object {
		c := crd("example.com", "Widget", "Cluster")
		c.Object["spec"].(m)["conversion"] = m{"strategy": "Webhook", "webhook": m{"clientConfig": m{"caBundle": b}}}
		return c
	}
	noted := object("apps/v1 Deployment", "a", m{"spec": m{}})
	noted.SetAnnotations(map[string]string{"deployment.kubernetes.io/revision": "3", "other": "x"})

	rules := []any{m{"verbs": []any{"get"}}}
	some := m{"clusterRoleSelectors": []any{m{}}}
	tests := map[string]struct {
		object client.Object
		path   []string
		want   any
	}{
		"rules of an aggregated role":   {role(m{"aggregationRule": some, "rules": rules}), []string{"rules"}, nil},
		"no rules of an aggregated one": {role(m{"aggregationRule": some, "rules": []any{}}), []string{"rules"}, nil},
		"null of an aggregated one":     {role(m{"aggregationRule": some, "rules": nil}), []string{"rules"}, nil},
		"rules of any other role":       {role(m{"rules": rules}), []string{"rules"}, rules},
		"empty rules of any other role": {role(m{"rules": []any{}}), []string{"rules"}, []any{}},

		"placeholders":    {webhooks("ValidatingWebhookConfiguration", "Cg==", "", nil, "XG4="), []string{"webhooks"}, []any{withoutBundle, withoutBundle, withoutBundle, withoutBundle}},
		"a real bundle":   {webhooks("MutatingWebhookConfiguration", "Cg==", bundle), []string{"webhooks"}, []any{withoutBundle, withBundle}},
		"no base64":       {webhooks("MutatingWebhookConfiguration", "%"), []string{"webhooks"}, []any{m{"name": "x.example.com", "clientConfig": m{"url": "https://x", "caBundle": "%"}}}},
		"asked for":       {injected(webhooks("MutatingWebhookConfiguration", bundle), "cert-manager.io/inject-ca-from"), []string{"webhooks"}, []any{withoutBundle}},
		"from a Secret":   {injected(webhooks("MutatingWebhookConfiguration", bundle), "cert-manager.io/inject-ca-from-secret"), []string{"webhooks"}, []any{withoutBundle}},
		"of the server":   {injected(webhooks("MutatingWebhookConfiguration", bundle), "cert-manager.io/inject-apiserver-ca"), []string{"webhooks"}, []any{withoutBundle}},
		"by another":      {injected(api(withSpec(m{"caBundle": bundle})), "service.beta.openshift.io/inject-cabundle"), []string{"spec"}, withSpec(nil)},
		"of an API":       {api(withSpec(m{"caBundle": "Cg=="})), []string{"spec"}, withSpec(nil)},
		"real, of an API": {api(withSpec(m{"caBundle": bundle})), []string{"spec"}, withSpec(m{"caBundle": bundle})},
		"of a conversion": {converted("Cg=="), []string{"spec", "conversion", "webhook"}, m{"clientConfig": m{}}},
		"real, of a type": {converted(bundle), []string{"spec", "conversion", "webhook"}, m{"clientConfig": m{"caBundle": bundle}}},
		"a revision":      {noted, []string{"metadata", "annotations"}, m{"other": "x"}},

		"nothing to look into": {object("admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration", "a", m{"webhooks": "x"}), []string{"webhooks"}, "x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			prepared := prepareWith(t, options(func(o *manifest.Options) {
				o.Namespaced = func(schema.GroupVersionKind) (bool, bool, error) { return false, true, nil }
			}), nil, test.object)
			var got any = made(t, prepared[0]).Object
			for _, name := range test.path {
				got = got.(m)[name]
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected (-want, +got):\n%s", diff)
			}
		})
	}
}

// An object whose annotations are all maintained by others has no annotations, like one that was made without.
func TestMaintainedAnnotationsLeaveNothing(t *testing.T) {
	plain := object("apps/v1 Deployment", "a", m{"spec": m{}})
	noted := plain.DeepCopy()
	noted.SetAnnotations(map[string]string{"deployment.kubernetes.io/revision": "3"})
	if a, b := prepare(t, plain)[0], prepare(t, noted)[0]; a.Desired.Digest != b.Desired.Digest {
		t.Errorf("the digests are %s and %s, want the same, for what differs is not written", a.Desired.Digest,
			b.Desired.Digest)
	}
}

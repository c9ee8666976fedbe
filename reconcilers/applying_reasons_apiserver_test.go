package reconcilers_test

import (
	"encoding/json"
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// database is a StatefulSet with claims, which the API server completes, and of which it keeps a quantity in another way.
func (s *clusterSite) database(image string) *unstructured.Unstructured {
	labels := map[string]any{"app": "data"}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet",
		"metadata": map[string]any{"namespace": s.namespace, "name": "data"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels}, "serviceName": "data",
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}},
			},
			"volumeClaimTemplates": []any{map[string]any{
				"metadata": map[string]any{"name": "disk"},
				"spec": map[string]any{
					"accessModes": []any{"ReadWriteOnce"},
					"resources":   map[string]any{"requests": map[string]any{"storage": "1024Mi"}},
				},
			}},
		},
	}}
}

// The reason of an apply names what is other after it than before. It does not name what the API server keeps in
// another way than it is desired, whether that is known from a write before or not.
func TestTheReasonOfAnApplyNamesWhatItChanges(t *testing.T) {
	t.Parallel()
	s := newClusterSite(t)
	var reasons []string
	s.ctx = logr.NewContext(s.ctx, funcr.NewJSON(func(line string) {
		var entry struct{ Msg, Reason string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Error(err)
		}
		reasons = append(reasons, entry.Msg+": "+entry.Reason)
	}, funcr.Options{}))
	newManager := func() *reconcilers.ApplyingObjectManager[*unstructured.Unstructured] {
		kind := &unstructured.Unstructured{}
		kind.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
		return &reconcilers.ApplyingObjectManager[*unstructured.Unstructured]{Type: kind, FieldManager: "databases"}
	}
	m := newManager()
	const container = `.spec.template.spec.containers[name="main"]`
	check := func(when string, actual, desired *unstructured.Unstructured, want ...string) *unstructured.Unstructured {
		t.Helper()
		reasons = nil
		managed, err := m.Manage(s.ctx, widget.Object(), actual, desired)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if diff := cmp.Diff(want, reasons); diff != "" {
			t.Errorf("%s: logs differ (-expected, +actual):\n%s", when, diff)
		}
		return managed
	}

	d := check("create", nil, s.database("x:1"), "created: it did not exist")
	d = check("the same", fresh(s, d), s.database("x:1"))
	d = check("another image", fresh(s, d), s.database("x:2"), "applied: "+container+".image differs")
	d = check("yet another image", fresh(s, d), s.database("x:3"), "applied: "+container+".image differs")
	m = newManager()
	check("after a restart", fresh(s, d), s.database("x:3"))
	m = newManager()
	d = check("another image after a restart", fresh(s, d), s.database("x:4"), "applied: "+container+".image differs")

	patch := client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"main","image":"theirs"}]}}}}`))
	s.must(s.Patch(t.Context(), d, patch, client.FieldOwner("somebody")))
	d = check("after a drift", fresh(s, d), s.database("x:4"), "applied: "+container+".image was set by another client")
	more := s.database("x:4")
	more.SetLabels(map[string]string{"a": "b"})
	d = check("another field", fresh(s, d), more, "applied: .metadata.labels.a is missing")
	d = check("without that field", fresh(s, d), s.database("x:4"), "applied: .metadata.labels.a is not desired")
	stripped := fresh(s, d)
	stripped.SetManagedFields(nil)
	m = newManager()
	check("another image without managed fields", stripped, s.database("x:5"),
		"applied: .spec.template.spec.containers differs")
}

package reconcilers_test

import (
	"encoding/json"
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// database is a StatefulSet with claims, which the API server completes, and of which it writes a quantity in another
// way.
func (s *clusterSite) database(image string) *appsv1.StatefulSet {
	labels := map[string]string{"app": "data"}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "data"},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, ServiceName: "data",
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "disk"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1024Mi")},
					},
				},
			}},
		},
	}
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
	newManager := func() *reconcilers.ApplyingObjectManager[*appsv1.StatefulSet] {
		return &reconcilers.ApplyingObjectManager[*appsv1.StatefulSet]{FieldManager: "databases"}
	}
	m := newManager()
	const container = `.spec.template.spec.containers[name="main"]`
	check := func(when string, actual, desired *appsv1.StatefulSet, want ...string) *appsv1.StatefulSet {
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
	d = check("after a drift", fresh(s, d), s.database("x:4"), "applied: "+container+".image not ours")
	stripped := fresh(s, d)
	stripped.ManagedFields = nil
	m = newManager()
	check("another image without managed fields", stripped, s.database("x:5"),
		"applied: .spec.template.spec.containers differs")
}

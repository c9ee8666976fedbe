package reconcilers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Additions are applied to what is desired, which has no generation as a rule.
func TestAdditionsAreForWhatIsDesired(t *testing.T) {
	written := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 3}, Data: map[string]string{"desired": "true", "added": "true"},
	}
	desired := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"desired": "true"}}
	manager := &UpdatingObjectManager[*corev1.ConfigMap]{
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
	}
	additions, err := manager.additions(t.Context(), written, desired)
	if err != nil {
		t.Fatal(err)
	}
	if none, err := manager.additions(t.Context(), desired, desired); none != nil || err != nil {
		t.Errorf("the additions of nothing are %v (%v), want none", none, err)
	}
	if err := additions.Apply(desired); err != nil || desired.Data["added"] != "true" {
		t.Errorf("the data are %v (%v), want what was added", desired.Data, err)
	}
}

package reconcilers_test

import (
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMergeLabels(t *testing.T) {
	entries := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	for name, test := range map[string]struct {
		current, desired, want metav1.ObjectMeta
	}{
		"nothing is desired": {},
		"others stay": {
			current: metav1.ObjectMeta{Labels: entries("theirs", "1", "ours", "old"), Annotations: entries("theirs", "1")},
			desired: metav1.ObjectMeta{Labels: entries("ours", "new"), Annotations: entries("ours", "new")},
			want: metav1.ObjectMeta{
				Labels: entries("theirs", "1", "ours", "new"), Annotations: entries("theirs", "1", "ours", "new"),
			},
		},
		"the first labels": {
			desired: metav1.ObjectMeta{Labels: entries("ours", "new")},
			want:    metav1.ObjectMeta{Labels: entries("ours", "new")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			current, desired := &corev1.ConfigMap{ObjectMeta: test.current}, &corev1.ConfigMap{ObjectMeta: test.desired}
			reconcilers.MergeLabels(current, desired)
			if diff := cmp.Diff(test.want, current.ObjectMeta); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

package reconcilers_test

import (
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPatch(t *testing.T) {
	base := givenConfigMap.With(func(c *corev1.ConfigMap) { c.Generation = 1 })
	update := base.With(func(c *corev1.ConfigMap) {
		c.Data = map[string]string{"color": "red", "size": "big"}
		c.Labels = map[string]string{"a": "b"}
	})
	patch, err := reconcilers.NewPatch(base.Object(), update.Object())
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		rebase   *corev1.ConfigMap
		expected *corev1.ConfigMap
		fails    error
	}{
		"what it was made of": {rebase: base.Object(), expected: update.Object()},
		"another object": {
			rebase: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Generation: 1}, Data: map[string]string{"color": "green"}},
			expected: &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "other", Generation: 1, Labels: map[string]string{"a": "b"}},
				Data:       map[string]string{"color": "red", "size": "big"},
			},
		},
		"another generation": {
			rebase:   base.With(func(c *corev1.ConfigMap) { c.Generation = 2 }).Object(),
			expected: base.With(func(c *corev1.ConfigMap) { c.Generation = 2 }).Object(),
			fails:    reconcilers.PatchGenerationMismatch,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := patch.Apply(test.rebase); !errors.Is(err, test.fails) {
				t.Errorf("returned %v, expected %v", err, test.fails)
			}
			if diff := cmp.Diff(test.expected, test.rebase); diff != "" {
				t.Errorf("differs (-expected, +actual):\n%s", diff)
			}
		})
	}
}

func TestPatchThatDoesNotFit(t *testing.T) {
	update := givenConfigMap.With(func(c *corev1.ConfigMap) { delete(c.Data, "color"); c.Data["size"] = "big" })
	patch, err := reconcilers.NewPatch(givenConfigMap.Object(), update.Object())
	if err != nil {
		t.Fatal(err)
	}
	rebase := givenConfigMap.With(func(c *corev1.ConfigMap) { c.Data = nil })
	actual := rebase.Object()
	if err := patch.Apply(actual); err == nil {
		t.Error("a patch was applied that removes what is not there, want an error")
	}
	if diff := cmp.Diff(rebase.Object(), actual); diff != "" {
		t.Errorf("the object was changed by a patch that does not fit (-expected, +actual):\n%s", diff)
	}
}

func TestPatchLeavesNothingOfTheOldObject(t *testing.T) {
	update := givenConfigMap.With(func(c *corev1.ConfigMap) { c.Data, c.OwnerReferences = nil, nil })
	patch, err := reconcilers.NewPatch(givenConfigMap.Object(), update.Object())
	if err != nil {
		t.Fatal(err)
	}
	actual := givenConfigMap.Object()
	if err := patch.Apply(actual); err != nil {
		t.Fatal(err)
	}
	if actual.Data != nil || actual.OwnerReferences != nil {
		t.Errorf("the patch left %v, want neither data nor owners", actual)
	}
}

// unmarshallable cannot be written as JSON.
type unmarshallable struct{ corev1.ConfigMap }

func (unmarshallable) MarshalJSON() ([]byte, error) { return nil, errBoom }

func TestPatchOfWhatIsNoJSON(t *testing.T) {
	bad := &unmarshallable{}
	if _, err := reconcilers.NewPatch(bad, givenConfigMap.Object()); !errors.Is(err, errBoom) {
		t.Errorf("the error is %v, want %v", err, errBoom)
	}
	if _, err := reconcilers.NewPatch(givenConfigMap.Object(), bad); !errors.Is(err, errBoom) {
		t.Errorf("the error is %v, want %v", err, errBoom)
	}
	patch, err := reconcilers.NewPatch(givenConfigMap.Object(), givenConfigMap.Object())
	if err != nil {
		t.Fatal(err)
	}
	if err := patch.Apply(bad); !errors.Is(err, errBoom) {
		t.Errorf("the error is %v, want %v", err, errBoom)
	}
}

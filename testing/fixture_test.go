package testing_test

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rtesting "github.com/espalier-dev/espalier/testing"
)

func TestFixtureNeverChanges(t *testing.T) {
	original := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}}
	fixture := rtesting.NewFixture(original)
	want, _ := json.Marshal(fixture)

	original.Data["k"] = "changed"
	fixture.Object().Data["k"] = "changed"
	fixture.SetName("changed")
	fixture.DeepCopyObject().(*corev1.ConfigMap).Data["k"] = "changed"
	other := fixture.With(
		func(c *corev1.ConfigMap) { c.Data["k"] = "w" },
		func(c *corev1.ConfigMap) { c.Data["k"] += "w" },
	)
	if got, _ := json.Marshal(fixture); string(got) != string(want) {
		t.Errorf("want %s, got %s", want, got)
	}
	if got := other.Object().Data["k"]; got != "ww" {
		t.Errorf("want both changes, got %q", got)
	}
	if fixture.String() != fmt.Sprint(fixture.Object()) {
		t.Errorf("got %s", fixture)
	}
}

func ExampleFixture() {
	quota := rtesting.NewFixture(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "quota"},
		Data:       map[string]string{"pods": "10"},
	})
	raised := quota.With(func(c *corev1.ConfigMap) { c.Data["pods"] = "20" })

	// Both go wherever the harness takes an object.
	for _, obj := range []client.Object{quota, raised} {
		fmt.Println(obj.GetName(), obj.DeepCopyObject().(*corev1.ConfigMap).Data["pods"])
	}
	// Output:
	// quota 10
	// quota 20
}

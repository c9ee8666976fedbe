package webhook_test

import (
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/common/webhook"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/tree/api/v9alpha9"
)

func TestDefaulting(t *testing.T) {
	for name, tc := range map[string]struct {
		image   string
		changes int
	}{
		"no image": {"", 1},
		"an image": {"busybox", 0},
	} {
		t.Run(name, func(t *testing.T) {
			hook, err := webhook.Defaulting().BuildWithContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			object := &v9alpha9.Placeholder{Spec: v9alpha9.PlaceholderSpec{Image: tc.image}}
			object.TypeMeta = metav1.TypeMeta{APIVersion: v9alpha9.GroupVersion.String(), Kind: "Placeholder"}
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			response := hook.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
			}})
			if !response.Allowed || len(response.Patches) != tc.changes {
				t.Errorf("want %d changes, got %+v", tc.changes, response)
			}
		})
	}
}

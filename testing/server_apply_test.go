package testing_test

import (
	"context"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// A webhook case runs against a server, and what it applies by a patch goes with it.
func TestWebhookCasesRunOnARealServer(t *testing.T) {
	server := newServer(t)
	patch := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"patched","namespace":"default"}}`)
	webhookTests{"applies by a patch": {
		Request:          asked(),
		ExpectedResponse: allowed,
		Server:           server,
		GivenObjects:     []client.Object{settings},
		ExpectPatches: []rtesting.PatchRef{{
			Kind: "ConfigMap", Namespace: "default", Name: "patched", PatchType: types.ApplyPatchType, Patch: patch,
		}},
		Metadata: answers(func(ctx context.Context, c reconcilers.Config, _ admission.Request) admission.Response {
			obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "patched"}}
			if err := c.Get(ctx, client.ObjectKeyFromObject(settings), &corev1.ConfigMap{}); err != nil {
				return admission.Errored(http.StatusInternalServerError, err)
			}
			if err := c.Patch(ctx, obj, client.RawPatch(types.ApplyPatchType, patch), client.FieldOwner("me")); err != nil {
				return admission.Errored(http.StatusInternalServerError, err)
			}
			return admission.Allowed("")
		}),
	}}.RunWithContext(t, scheme, newWebhook)

	for _, name := range []string{"settings", "patched"} {
		err := server.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &corev1.ConfigMap{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s is left behind: %v", name, err)
		}
	}
}

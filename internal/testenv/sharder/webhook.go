package sharder

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// WebhookPath is where [Sharder.Webhook] is served. The name of a ring follows.
const WebhookPath = "/webhooks/sharder/controllerring/"

// Webhook returns the handler of the webhooks of all rings.
func (s *Sharder) Webhook() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutPrefix(r.URL.Path, WebhookPath)
		if !ok {
			http.NotFound(w, r)
			return
		}
		admit := func(ctx context.Context, request admission.Request) admission.Response {
			return s.admit(ctx, name, request)
		}
		(&admission.Webhook{Handler: admission.HandlerFunc(admit)}).ServeHTTP(w, r)
	})
}

// admit labels an object with its shard.
func (s *Sharder) admit(ctx context.Context, name string, request admission.Request) admission.Response {
	ring, _, err := s.ring(ctx, name)
	if err == nil && ring == nil {
		err = fmt.Errorf("there is no ControllerRing %s", name)
	}
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	obj := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(request.Object.Raw, obj); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	assignment, err := s.assignment(ctx, *ring)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	resource := metav1.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Resource}
	shard, err := assignment.Admit(resource, obj)
	switch {
	case err != nil:
		return admission.Errored(http.StatusBadRequest, err)
	case shard == "":
		return admission.Allowed("")
	}
	labelled, err := withLabel(request.Object.Raw, ShardLabel(ring.Name), shard)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, labelled)
}

// withLabel returns an object with a label.
func withLabel(raw []byte, label, value string) ([]byte, error) {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[label] = value
	obj.SetLabels(labels)
	return obj.MarshalJSON()
}

package reconcilers_test

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// A webhook that completes Widgets, checks them, and keeps some from being deleted. In a program the webhook is registered
// with the manager: mgr.GetWebhookServer().Register("/widgets", webhook).
func ExampleAdmissionWebhookAdapter() {
	hook := &reconcilers.AdmissionWebhookAdapter[*resources.Widget]{
		Reconciler: reconcilers.Sequence[*resources.Widget]{
			&reconcilers.SyncReconciler[*resources.Widget]{
				Name: "Keep",
				Sync: func(ctx context.Context, widget *resources.Widget) error {
					deleted := reconcilers.RetrieveAdmissionRequest(ctx).Operation == admissionv1.Delete
					if deleted && widget.Spec.Fields["keep"] == "yes" {
						return reconcilers.Deny("%s is to be kept", widget.Name)
					}
					return nil
				},
			},
			&reconcilers.SyncReconciler[*resources.Widget]{
				Name: "Check",
				Sync: func(ctx context.Context, widget *resources.Widget) error {
					var invalid field.ErrorList
					at := field.NewPath("spec", "fields")
					if widget.Spec.Fields["color"] == "" {
						invalid = append(invalid, field.Required(at.Key("color"), "it has to be visible"))
					}
					return reconcilers.InvalidFields(ctx, widget, invalid)
				},
			},
			&reconcilers.SyncReconciler[*resources.Widget]{
				Name: "Complete",
				Sync: func(ctx context.Context, widget *resources.Widget) error {
					if widget.Spec.Fields["color"] == "gray" {
						reconcilers.Warn(ctx, "gray is now called grey")
						widget.Spec.Fields["color"] = "grey"
					}
					return nil
				},
			},
		},
	}
	webhook, err := hook.BuildWithContext(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}

	// What follows is done by the API server.
	ask := func(operation admissionv1.Operation, raw string) {
		request := ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation, Name: "gadget"}}
		if operation == admissionv1.Delete {
			request.OldObject = runtime.RawExtension{Raw: []byte(raw)}
		} else {
			request.Object = runtime.RawExtension{Raw: []byte(raw)}
		}
		response := webhook.Handle(context.Background(), request)
		if !response.Allowed {
			fmt.Println(operation, response.Result.Code, response.Result.Message)
			return
		}
		fmt.Println(operation, "is allowed")
		for _, warning := range response.Warnings {
			fmt.Println("  warning:", warning)
		}
		fmt.Println("  patch:", string(response.Patch))
	}
	const head = `{"apiVersion":"test.espalier.dev/v1","kind":"Widget","metadata":{"name":"gadget"},`
	ask(admissionv1.Create, head+`"spec":{"fields":{}}}`)
	ask(admissionv1.Create, head+`"spec":{"unknown":1,"fields":{"color":"gray"}}}`)
	ask(admissionv1.Delete, head+`"spec":{"fields":{"keep":"yes"}}}`)
	// Output:
	// CREATE 422 Widget.test.espalier.dev "gadget" is invalid: spec.fields[color]: Required value: it has to be visible
	// CREATE is allowed
	//   warning: gray is now called grey
	//   patch: [{"op":"replace","path":"/spec/fields/color","value":"grey"}]
	// DELETE 403 gadget is to be kept
}

package controllers_test

import (
	"encoding/json"
	"testing"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"reconciler.io/runtime/reconcilers"
	rtesting "reconciler.io/runtime/testing"
	"reconciler.io/runtime/tracker"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	mailv1 "example.com/mailbox/api/v1"
	"example.com/mailbox/controllers"
)

var (
	scheme = runtime.NewScheme()
	now    = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
)

func init() {
	_ = clientgoscheme.AddToScheme(scheme)
	_ = mailv1.AddToScheme(scheme)
}

func mailbox(folders ...string) *mailv1.Mailbox {
	return &mailv1.Mailbox{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mail", Name: "ada", UID: "5"},
		Spec:       mailv1.MailboxSpec{Quota: 10, Folders: folders},
	}
}

func settings() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "mail", Name: "ada-settings",
			Annotations: map[string]string{"example.com/at": "2024-05-06"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "mail.example.com/v1", Kind: "Mailbox", Name: "ada", UID: "5",
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Data: map[string]string{"quota": "10"},
	}
}

func TestSettingsReconciler(t *testing.T) {
	created := mailbox()
	created.Status.Conditions = []metav1.Condition{
		{Type: mailv1.ConditionSettings, Status: metav1.ConditionTrue, Reason: "Stored"},
	}
	rtesting.SubReconcilerTests[*mailv1.Mailbox]{
		"created": {
			Resource: mailbox(), ExpectResource: created, Now: now,
			ExpectCreates: []client.Object{settings()},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(mailbox(), scheme, corev1.EventTypeNormal, "Created", `Created ConfigMap "ada-settings"`),
			},
		},
		"refused": {
			Resource: mailbox(), Now: now, ShouldErr: true,
			WithReactors:  []rtesting.ReactionFunc{rtesting.InduceFailure("create", "ConfigMap")},
			ExpectCreates: []client.Object{settings()},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(mailbox(), scheme, corev1.EventTypeWarning, "CreationFailed",
					`Failed to create ConfigMap "ada-settings": inducing failure for create ConfigMap`),
			},
		},
	}.Run(t, scheme, func(_ *testing.T, _ *rtesting.SubReconcilerTestCase[*mailv1.Mailbox], _ reconcilers.Config) reconcilers.SubReconciler[*mailv1.Mailbox] {
		return controllers.SettingsReconciler()
	})
}

func TestLookupDomain(t *testing.T) {
	domain := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mail", Name: "domain"}, Data: map[string]string{"domain": "example.com"},
	}
	tracked := rtesting.TrackRequest{
		Tracker:          client.ObjectKeyFromObject(mailbox()),
		TrackedReference: tracker.Reference{Kind: "ConfigMap", Namespace: "mail", Name: "domain"},
	}
	rtesting.SubReconcilerTests[*mailv1.Mailbox]{
		"found": {
			Resource: mailbox(), GivenObjects: []client.Object{domain},
			ExpectTracks:        []rtesting.TrackRequest{tracked},
			ExpectStashedValues: map[reconcilers.StashKey]interface{}{"example.com/domain": "example.com"},
		},
		"missing": {
			Resource: mailbox(), ExpectTracks: []rtesting.TrackRequest{tracked}, ShouldErr: true,
			ExpectedResult: reconcile.Result{RequeueAfter: time.Minute},
			Verify: func(t *testing.T, _ reconcilers.Result, err error) {
				if err != reconcilers.ErrHaltSubReconcilers {
					t.Errorf("want a halt, got %v", err)
				}
			},
		},
	}.Run(t, scheme, func(_ *testing.T, _ *rtesting.SubReconcilerTestCase[*mailv1.Mailbox], _ reconcilers.Config) reconcilers.SubReconciler[*mailv1.Mailbox] {
		return controllers.LookupDomain()
	})
}

func TestDirectoryReconciler(t *testing.T) {
	known := mailbox()
	known.Status.Address = "ada@example.com"
	directory := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mail", Name: "directory"}, Data: map[string]string{"ada": "ada@example.com"},
	}
	rtesting.ReconcilerTests{
		"created": {
			Request:      reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(directory)},
			GivenObjects: []client.Object{known},
			ExpectTracks: []rtesting.TrackRequest{{
				Tracker:          client.ObjectKeyFromObject(directory),
				TrackedReference: tracker.Reference{APIGroup: "mail.example.com", Kind: "Mailbox", Namespace: "mail"},
			}},
			ExpectCreates: []client.Object{directory},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(directory, scheme, corev1.EventTypeNormal, "Created", `Created ConfigMap "directory"`),
			},
		},
	}.Run(t, scheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return controllers.DirectoryReconciler(c)
	})
}

func TestMailboxWebhook(t *testing.T) {
	raw, err := json.Marshal(mailbox())
	if err != nil {
		t.Fatal(err)
	}
	rtesting.AdmissionWebhookTests{
		"an inbox": {
			Request: &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				UID: "7", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
			}},
			ExpectedResponse: admission.Response{
				AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true},
				Patches:           []jsonpatch.Operation{{Operation: "add", Path: "/spec/folders", Value: []any{"inbox"}}},
			},
		},
	}.Run(t, scheme, func(_ *testing.T, _ *rtesting.AdmissionWebhookTestCase, c reconcilers.Config) *admission.Webhook {
		return controllers.MailboxWebhook(c)
	})
}

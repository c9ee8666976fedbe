package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	nodes "reconciler.io/runtime/reconcilers"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	mailv1 "example.com/mailbox/api/v1"
)

// DirectoryReconciler lists all mailboxes in one ConfigMap.
func DirectoryReconciler(c nodes.Config) *nodes.AggregateReconciler[*corev1.ConfigMap] {
	return &nodes.AggregateReconciler[*corev1.ConfigMap]{
		Name:    "Directory",
		Request: nodes.Request{NamespacedName: types.NamespacedName{Namespace: "mail", Name: "directory"}},
		DesiredResource: func(ctx context.Context, directory *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			mailboxes := &mailv1.MailboxList{}
			if err := nodes.RetrieveConfigOrDie(ctx).TrackAndList(ctx, mailboxes, client.InNamespace("mail")); err != nil {
				return nil, err
			}
			directory.Data = map[string]string{}
			for _, mailbox := range mailboxes.Items {
				directory.Data[mailbox.Name] = mailbox.Status.Address
			}
			return directory, nil
		},
		AggregateObjectManager: &nodes.UpdatingObjectManager[*corev1.ConfigMap]{
			MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		},
		Config: c,
	}
}

// MailboxWebhook gives mailboxes an inbox.
func MailboxWebhook(c nodes.Config) *admission.Webhook {
	return (&nodes.AdmissionWebhookAdapter[*mailv1.Mailbox]{
		Name: "MailboxDefaults",
		Reconciler: &nodes.SyncReconciler[*mailv1.Mailbox]{
			Sync: func(_ context.Context, mailbox *mailv1.Mailbox) error {
				if len(mailbox.Spec.Folders) == 0 {
					mailbox.Spec.Folders = []string{"inbox"}
				}
				return nil
			},
		},
		Config: c,
	}).Build()
}

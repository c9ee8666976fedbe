// Package controllers reconciles mailboxes.
//
// Its nodes are those of [reconciler.io/runtime/reconcilers], such as
// [reconciler.io/runtime/reconcilers.ChildReconciler].
package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"reconciler.io/runtime/reconcilers"
	"reconciler.io/runtime/stash"
	rtime "reconciler.io/runtime/time"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"

	mailv1 "example.com/mailbox/api/v1"
)

// The path in a string is no import: "reconciler.io/runtime/reconcilers".
const userAgent = "reconciler.io/runtime/reconcilers"

const domainKey reconcilers.StashKey = "example.com/domain"

var folderStasher = stash.New[[]string]("example.com/folders")

// MailboxReconciler is the root.
func MailboxReconciler(c reconcilers.Config) *reconcilers.ResourceReconciler[*mailv1.Mailbox] {
	return &reconcilers.ResourceReconciler[*mailv1.Mailbox]{
		Name: "Mailbox",
		SkipResource: func(ctx context.Context, mailbox *mailv1.Mailbox) bool {
			return mailbox.Annotations["example.com/skip"] != ""
		},
		Reconciler: &reconcilers.WithFinalizer[*mailv1.Mailbox]{
			Finalizer: "mail.example.com/mailbox",
			Reconciler: reconcilers.Sequence[*mailv1.Mailbox]{
				LookupDomain(),
				&reconcilers.TryCatch[*mailv1.Mailbox]{
					Try: SettingsReconciler(),
					Catch: func(_ context.Context, _ *mailv1.Mailbox, result reconcilers.Result, err error) (reconcilers.Result, error) {
						if apierrs.IsInvalid(err) {
							return result, errors.Join(err, reconcilers.ErrDurable)
						}
						return result, err
					},
					Finally: &reconcilers.SyncReconciler[*mailv1.Mailbox]{
						Name: "Address",
						Sync: func(ctx context.Context, mailbox *mailv1.Mailbox) error {
							mailbox.Status.Address = mailbox.Name + "@" + reconcilers.RetrieveValue(ctx, domainKey).(string)
							return nil
						},
					},
				},
				&reconcilers.IfThen[*mailv1.Mailbox]{
					If:   func(_ context.Context, mailbox *mailv1.Mailbox) bool { return len(mailbox.Spec.Folders) > 0 },
					Then: FolderReconciler(),
					Else: &reconcilers.SyncReconciler[*mailv1.Mailbox]{
						Name: "NoFolders",
						Sync: func(ctx context.Context, mailbox *mailv1.Mailbox) error {
							mailbox.Status.MarkFolders(ctx, 0)
							return nil
						},
					},
				},
				reconcilers.Always[*mailv1.Mailbox]{
					CountFolders(),
					&reconcilers.While[*mailv1.Mailbox]{
						MaxIterations: ptr.To(3),
						Condition:     func(ctx context.Context, _ *mailv1.Mailbox) bool { return reconcilers.RetrieveIteration(ctx) < 2 },
						Reconciler:    &reconcilers.SyncReconciler[*mailv1.Mailbox]{Name: "Twice", Sync: nothing},
					},
				},
			},
		},
		Config: c,
	}
}

func nothing(context.Context, *mailv1.Mailbox) error { return nil }

// LookupDomain reads the domain from a ConfigMap, and waits for it.
func LookupDomain() reconcilers.SubReconciler[*mailv1.Mailbox] {
	return &reconcilers.SyncReconciler[*mailv1.Mailbox]{
		Name: "Domain",
		Setup: func(ctx context.Context, mgr ctrl.Manager, bldr *builder.Builder) error {
			bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
			return nil
		},
		SyncWithResult: func(ctx context.Context, mailbox *mailv1.Mailbox) (reconcilers.Result, error) {
			c := reconcilers.RetrieveConfigOrDie(ctx)
			domain := &corev1.ConfigMap{}
			key := types.NamespacedName{Namespace: mailbox.Namespace, Name: "domain"}
			if err := c.TrackAndGet(ctx, key, domain); apierrs.IsNotFound(err) {
				return reconcilers.Result{RequeueAfter: time.Minute}, reconcilers.ErrHaltSubReconcilers
			} else if err != nil {
				return reconcilers.Result{}, err
			}
			reconcilers.StashValue(ctx, domainKey, domain.Data["domain"])
			return reconcilers.Result{}, nil
		},
	}
}

// SettingsReconciler keeps the settings of a mailbox.
func SettingsReconciler() reconcilers.SubReconciler[*mailv1.Mailbox] {
	return &reconcilers.ChildReconciler[*mailv1.Mailbox, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name: "Settings",
		DesiredChild: func(ctx context.Context, mailbox *mailv1.Mailbox) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: mailbox.Namespace, Name: mailbox.Name + "-settings",
					Annotations: map[string]string{"example.com/at": rtime.RetrieveNow(ctx).Format(time.DateOnly)},
				},
				Data: map[string]string{"quota": fmt.Sprint(mailbox.Spec.Quota)},
			}, nil
		},
		ChildObjectManager: &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
			MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
				current.Data = desired.Data
			},
		},
		OurChild: func(mailbox *mailv1.Mailbox, child *corev1.ConfigMap) bool {
			return child.Name == mailbox.Name+"-settings"
		},
		ReflectedChildErrorReasons: []metav1.StatusReason{metav1.StatusReasonAlreadyExists},
		ReflectChildStatusOnParent: func(ctx context.Context, mailbox *mailv1.Mailbox, child *corev1.ConfigMap, err error) {
			if err == nil && child != nil {
				mailbox.Status.MarkSettings(ctx)
			}
		},
	}
}

// FolderReconciler keeps a Secret for each folder.
func FolderReconciler() reconcilers.SubReconciler[*mailv1.Mailbox] {
	return &reconcilers.ChildSetReconciler[*mailv1.Mailbox, *corev1.Secret, *corev1.SecretList]{
		Name: "Folders",
		DesiredChildren: func(_ context.Context, mailbox *mailv1.Mailbox) ([]*corev1.Secret, error) {
			var desired []*corev1.Secret
			for _, folder := range mailbox.Spec.Folders {
				desired = append(desired, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
					Namespace: mailbox.Namespace, Name: mailbox.Name + "-" + folder, Labels: map[string]string{"folder": folder},
				}})
			}
			return desired, nil
		},
		IdentifyChild: func(child *corev1.Secret) string { return child.Labels["folder"] },
		ChildObjectManager: &reconcilers.UpdatingObjectManager[*corev1.Secret]{
			MergeBeforeUpdate: func(current, desired *corev1.Secret) {
				if !equality.Semantic.DeepEqual(current.Labels, desired.Labels) {
					current.Labels = desired.Labels
				}
			},
		},
		ReflectChildrenStatusOnParentWithError: func(
			ctx context.Context, mailbox *mailv1.Mailbox, result reconcilers.ChildSetResult[*corev1.Secret],
		) error {
			if err := result.AggregateError(); err != nil {
				return err
			}
			mailbox.Status.MarkFolders(ctx, len(result.Children))
			return nil
		},
	}
}

// CountFolders runs a node for each folder, and another with the mailbox as something else.
func CountFolders() reconcilers.SubReconciler[*mailv1.Mailbox] {
	return &reconcilers.Advice[*mailv1.Mailbox]{
		Before: func(ctx context.Context, mailbox *mailv1.Mailbox) (context.Context, reconcilers.Result, error) {
			folderStasher.Store(ctx, nil)
			return ctx, reconcilers.Result{}, nil
		},
		Reconciler: reconcilers.Sequence[*mailv1.Mailbox]{
			&reconcilers.ForEach[*mailv1.Mailbox, string]{
				Items: func(_ context.Context, mailbox *mailv1.Mailbox) ([]string, error) { return mailbox.Spec.Folders, nil },
				Reconciler: &reconcilers.SyncReconciler[*mailv1.Mailbox]{
					Sync: func(ctx context.Context, _ *mailv1.Mailbox) error {
						cursor := reconcilers.CursorStasher[string]().RetrieveOrDie(ctx)
						folderStasher.Store(ctx, append(folderStasher.RetrieveOrEmpty(ctx), cursor.Item))
						return nil
					},
				},
			},
			&reconcilers.CastResource[*mailv1.Mailbox, *corev1.ConfigMap]{
				Reconciler: &reconcilers.SyncReconciler[*corev1.ConfigMap]{
					Name: "Cast",
					Sync: func(context.Context, *corev1.ConfigMap) error { return nil },
				},
			},
			&reconcilers.SuppressTransientErrors[*mailv1.Mailbox, *mailv1.MailboxList]{
				Threshold: 3,
				Reconciler: &reconcilers.OverrideSetup[*mailv1.Mailbox]{
					Reconciler: &reconcilers.SyncReconciler[*mailv1.Mailbox]{Name: "Quiet", Sync: nothing},
				},
			},
		},
	}
}

// Package v1 has the API of mailboxes.
package v1

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"reconciler.io/runtime/apis"
	"reconciler.io/runtime/validation"
)

// The conditions of a Mailbox.
const (
	ConditionReady    = apis.ConditionReady
	ConditionSettings = "SettingsReady"
	ConditionFolders  = "FoldersReady"
)

var conditions = apis.NewLivingConditionSet(ConditionSettings, ConditionFolders)

var _ validation.Defaulter = &Mailbox{}

// GroupVersion is that of the types.
var GroupVersion = schema.GroupVersion{Group: "mail.example.com", Version: "v1"}

// AddToScheme adds the types to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Mailbox{}, &MailboxList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Mailbox is where the letters of somebody are.
type Mailbox struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MailboxSpec   `json:"spec,omitempty"`
	Status MailboxStatus `json:"status,omitempty"`
}

// MailboxSpec says what is wanted.
type MailboxSpec struct {
	Quota   int      `json:"quota,omitempty"`
	Folders []string `json:"folders,omitempty"`
}

// MailboxStatus says how it is. See [reconciler.io/runtime/apis.Status].
type MailboxStatus struct {
	apis.Status `json:",inline"`
	Address     string `json:"address,omitempty"`
}

// MailboxList is a list of them.
type MailboxList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Mailbox `json:"items"`
}

// Default sets a quota.
func (m *Mailbox) Default(context.Context) error {
	if m.Spec.Quota == 0 {
		m.Spec.Quota = 10
	}
	return nil
}

// GetConditionSet returns the conditions.
func (s *MailboxStatus) GetConditionSet() apis.ConditionSet { return conditions }

// GetConditionSet returns the conditions.
func (m *Mailbox) GetConditionSet() apis.ConditionSet { return conditions }

// GetConditionsAccessor returns the status.
func (m *Mailbox) GetConditionsAccessor() apis.ConditionsAccessor { return &m.Status }

// InitializeConditions begins with conditions that are not known.
func (s *MailboxStatus) InitializeConditions(ctx context.Context) {
	conditions.ManageWithContext(ctx, s).InitializeConditions()
}

// MarkSettings says that the settings are there.
func (s *MailboxStatus) MarkSettings(ctx context.Context) {
	conditions.ManageWithContext(ctx, s).MarkTrue(ConditionSettings, "Stored", "")
}

// MarkFolders says that the folders are there.
func (s *MailboxStatus) MarkFolders(ctx context.Context, n int) {
	conditions.ManageWithContext(ctx, s).MarkTrue(ConditionFolders, "Stored", "%d folders", n)
}

// DeepCopyObject copies the mailbox.
func (m *Mailbox) DeepCopyObject() runtime.Object {
	out := *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Folders = append([]string(nil), m.Spec.Folders...)
	out.Status.Conditions = nil
	for _, condition := range m.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, *condition.DeepCopy())
	}
	return &out
}

// DeepCopyObject copies the list.
func (l *MailboxList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Mailbox))
	}
	return &out
}

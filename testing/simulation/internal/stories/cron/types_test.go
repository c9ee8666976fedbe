package cron_test

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var group = schema.GroupVersion{Group: "batch.example.com", Version: "v1"}

// CronJob runs Jobs by a schedule.
type CronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CronJobSpec   `json:"spec"`
	Status CronJobStatus `json:"status,omitempty"`
}

type CronJobSpec struct {
	Schedule          string                    `json:"schedule"`
	Suspend           bool                      `json:"suspend,omitempty"`
	ConcurrencyPolicy batchv1.ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	Succeeded         *int                      `json:"successfulJobsHistoryLimit,omitempty"`
	Failed            *int                      `json:"failedJobsHistoryLimit,omitempty"`
	JobTemplate       batchv1.JobTemplateSpec   `json:"jobTemplate"`
}

type CronJobStatus struct {
	Active           []corev1.ObjectReference `json:"active,omitempty"`
	LastScheduleTime *metav1.Time             `json:"lastScheduleTime,omitempty"`
}

func (c *CronJob) DeepCopyObject() runtime.Object {
	copied := *c
	copied.ObjectMeta = *c.ObjectMeta.DeepCopy()
	copied.Spec.JobTemplate = *c.Spec.JobTemplate.DeepCopy()
	copied.Status.Active = append([]corev1.ObjectReference(nil), c.Status.Active...)
	copied.Status.LastScheduleTime = c.Status.LastScheduleTime.DeepCopy()
	return &copied
}

type CronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []CronJob `json:"items"`
}

func (l *CronJobList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = nil
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*CronJob))
	}
	return &copied
}

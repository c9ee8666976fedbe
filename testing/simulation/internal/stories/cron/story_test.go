// Package cron_test has the story of an operator that is written as the tutorial of Kubebuilder does it: with an index,
// by a schedule, and with controller-runtime alone.
package cron_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

func cluster(t *testing.T) simulation.Options {
	t.Helper()
	return simulation.Options{
		Operator: operator, Scheme: newScheme(), Definitions: simulation.ReadDefinitions(t, "testdata/crd"),
		Pods: func(pod *corev1.Pod) simulation.PodBehavior {
			b := simulation.PodBehavior{Exits: true, RunFor: 12 * time.Minute}
			if pod.Labels["fails"] != "" {
				b.ExitCode = 1
			}
			return b
		},
	}
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	scheme.AddKnownTypes(group, &CronJob{}, &CronJobList{})
	metav1.AddToGroupVersion(scheme, group)
	return scheme
}

func newCronJob(name string, policy batchv1.ConcurrencyPolicy) *CronJob {
	template := batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{BackoffLimit: new(int32(0))}}
	template.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "work", Image: "work:1"}},
	}
	return &CronJob{ObjectMeta: stories.Named("default", name), Spec: CronJobSpec{
		Schedule: "*/5 * * * *", ConcurrencyPolicy: policy, Succeeded: new(2), JobTemplate: template,
	}}
}

// TestLife tells the lives of a CronJob of each policy, whose Jobs take longer than the schedule leaves them.
func TestLife(t *testing.T) { simulation.RunSeeds(t, cluster(t), life) }

func life(w *simulation.World) {
	all := []*CronJob{
		newCronJob("allow", batchv1.AllowConcurrent), newCronJob("forbid", batchv1.ForbidConcurrent),
		newCronJob("replace", batchv1.ReplaceConcurrent), newCronJob("fails", batchv1.AllowConcurrent),
	}
	all[3].Spec.JobTemplate.Spec.Template.Labels = map[string]string{"fails": "yes"}
	for _, resource := range all {
		w.Create(resource)
	}
	w.Pass(time.Hour)
	for _, resource := range all {
		w.Update(resource, func() { resource.Spec.Suspend = true })
	}
	w.Rest()
	w.Idle(time.Hour)
	for _, resource := range all {
		w.Get(resource)
		if len(resource.Status.Active) > 0 || resource.Status.LastScheduleTime == nil {
			w.Errorf("%s has a status that is not that of a suspended CronJob: %+v", resource.Name, resource.Status)
		}
	}
	for name, most := range map[string]int{"allow": 2, "forbid": 2, "replace": 2, "fails": 1} {
		if got := jobsOf(w, name); got > most {
			w.Errorf("%s has %d Jobs that have ended, want at most %d", name, got, most)
		}
	}
	w.Delete(all[0])
	w.Rest()
	if got := jobsOf(w, "allow"); got != 0 {
		w.Errorf("%d Jobs are left", got)
	}
}

func jobsOf(w *simulation.World, name string) int {
	w.Helper()
	var list batchv1.JobList
	w.List(&list)
	n := 0
	for i := range list.Items {
		if list.Items[i].OwnerReferences[0].Name == name {
			n++
		}
	}
	return n
}

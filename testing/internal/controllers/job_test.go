package controllers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
)

func job(name string) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: meta(name), Spec: batchv1.JobSpec{Template: podTemplate(name)}}
	j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return j
}

// exits has Pods end after ten seconds, those of the image "bad" with a failure.
func exits(pod *corev1.Pod) controllers.Behavior {
	b := controllers.Behavior{Exits: true, RunFor: 10 * time.Second}
	if pod.Spec.Containers[0].Image == "bad" {
		b.ExitCode = 1
	}
	return b
}

// jobStory tells a status in short.
func jobStory(j *batchv1.Job) string {
	s := j.Status
	story := fmt.Sprintf("active %d succeeded %d failed %d", s.Active, s.Succeeded, s.Failed)
	for _, c := range s.Conditions {
		story += fmt.Sprintf(", %s %s %s", c.Type, c.Status, c.Reason)
	}
	return story
}

func TestJob(t *testing.T) {
	tests := []struct {
		name   string
		change func(*batchv1.JobSpec)
		// after and end are what the status says after five seconds, and after an hour.
		after, end string
		pods       int
	}{
		{"one Pod", func(*batchv1.JobSpec) {}, "active 1 succeeded 0 failed 0", "active 0 succeeded 1 failed 0, " +
			"SuccessCriteriaMet True CompletionsReached, Complete True CompletionsReached", 1},
		{"two at a time", func(s *batchv1.JobSpec) {
			s.Completions, s.Parallelism = ptr.To(int32(5)), ptr.To(int32(2))
		}, "active 2 succeeded 0 failed 0", "active 0 succeeded 5 failed 0, " +
			"SuccessCriteriaMet True CompletionsReached, Complete True CompletionsReached", 5},
		{"fails", func(s *batchv1.JobSpec) {
			s.Template.Spec.Containers[0].Image, s.BackoffLimit = "bad", ptr.To(int32(2))
		}, "active 1 succeeded 0 failed 0", "active 0 succeeded 0 failed 3, " +
			"FailureTarget True BackoffLimitExceeded, Failed True BackoffLimitExceeded", 3},
		{"restarts", func(s *batchv1.JobSpec) {
			s.Template.Spec.Containers[0].Image, s.BackoffLimit = "bad", ptr.To(int32(2))
			s.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		}, "active 1 succeeded 0 failed 0", "active 0 succeeded 0 failed 1, " +
			"FailureTarget True BackoffLimitExceeded, Failed True BackoffLimitExceeded", 0},
		{"too late", func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To(int64(8)) },
			"active 1 succeeded 0 failed 0", "active 0 succeeded 0 failed 1, " +
				"FailureTarget True DeadlineExceeded, Failed True DeadlineExceeded", 0},
		{"suspended", func(s *batchv1.JobSpec) { s.Suspend = ptr.To(true) },
			"active 0 succeeded 0 failed 0, Suspended True JobSuspended",
			"active 0 succeeded 0 failed 0, Suspended True JobSuspended", 0},
		{"indexed", func(s *batchv1.JobSpec) {
			s.Completions, s.Parallelism = ptr.To(int32(3)), ptr.To(int32(3))
			s.CompletionMode = ptr.To(batchv1.IndexedCompletion)
		}, "active 3 succeeded 0 failed 0", "active 0 succeeded 3 failed 0, " +
			"SuccessCriteriaMet True CompletionsReached, Complete True CompletionsReached", 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			run(t, controllers.Options{Behavior: exits}, func(c cluster) {
				j := job("a")
				test.change(&j.Spec)
				c.create(j)
				time.Sleep(5 * time.Second)
				c.get(j)
				if got := jobStory(j); got != test.after {
					c.Errorf("the status is %q, not %q", got, test.after)
				}
				time.Sleep(time.Hour)
				c.get(j)
				if got := jobStory(j); got != test.end {
					c.Errorf("the status is %q, not %q", got, test.end)
				}
				if strings.Contains(test.end, "Complete ") != (j.Status.CompletionTime != nil) {
					c.Errorf("the completion time is %v", j.Status.CompletionTime)
				}
				if n := len(c.pods()); n != test.pods {
					c.Errorf("there are %d Pods", n)
				}
				c.idle()
			})
		})
	}
}

// TestJobExpires has a Job deleted an hour after its end.
func TestJobExpires(t *testing.T) {
	run(t, controllers.Options{}, func(c cluster) {
		j := job("a")
		j.Spec.TTLSecondsAfterFinished = ptr.To(int32(3600))
		c.create(j)
		time.Sleep(59 * time.Minute)
		c.get(j)
		time.Sleep(2 * time.Minute)
		c.gone(j)
		c.tells("")
	})
}

// TestCronJob runs Jobs for a day.
func TestCronJob(t *testing.T) {
	run(t, controllers.Options{}, func(c cluster) {
		cron := &batchv1.CronJob{ObjectMeta: meta("a"), Spec: batchv1.CronJobSpec{
			Schedule: "30 */6 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: job("a").Spec},
		}}
		begin := time.Now().Truncate(24 * time.Hour)
		c.create(cron)
		time.Sleep(24 * time.Hour)
		jobs := &batchv1.JobList{}
		c.must(c.List(c.ctx, jobs))
		if len(jobs.Items) != 3 {
			t.Errorf("there are %d Jobs", len(jobs.Items))
		}
		for i, j := range jobs.Items {
			at := begin.Add(time.Duration(i+1)*6*time.Hour + 30*time.Minute)
			if want := fmt.Sprintf("a-%d", at.Unix()/60); j.Name != want {
				t.Errorf("Job %d is %s, not %s", i, j.Name, want)
			}
		}
		c.get(cron)
		last := begin.Add(18*time.Hour + 30*time.Minute)
		if s := cron.Status; len(s.Active) > 0 || !s.LastScheduleTime.Time.Equal(last) ||
			s.LastSuccessfulTime.Sub(last) > time.Second {
			t.Errorf("the status is %+v", s)
		}
		cron.Spec.Suspend = ptr.To(true)
		c.must(c.Update(c.ctx, cron))
		time.Sleep(24 * time.Hour)
		c.must(c.List(c.ctx, jobs))
		if len(jobs.Items) != 3 {
			t.Errorf("there are %d Jobs", len(jobs.Items))
		}
		c.idle()
	})
}

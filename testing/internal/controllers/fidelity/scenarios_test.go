package fidelity_test

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// scenarios are played by both tests. The name is that of the file.
var scenarios = map[string]func(p *play){
	"deployment":  playDeployment,
	"pause":       playPause,
	"recreate":    playRecreate,
	"proportions": playProportions,
	"history":     playHistory,
	"adoption":    playAdoption,
	"statefulset": playStatefulSet,
	"parallel":    playParallel,
	"together":    playTogether,
	"unavailable": playUnavailable,
	"job":         playJob,
	"failure":     playFailure,
	"deadline":    playDeadline,
	"indexed":     playIndexed,
	"suspension":  playSuspension,
	"cronjob":     playCronJob,
	"background":  func(p *play) { playGarbage(p, metav1.DeletePropagationBackground) },
	"foreground":  func(p *play) { playGarbage(p, metav1.DeletePropagationForeground) },
	"orphan":      func(p *play) { playGarbage(p, metav1.DeletePropagationOrphan) },
	"owners":      playOwners,
	"namespace":   playNamespace,
}

func labels(app string) map[string]string { return map[string]string{"app": app} }

func template(app, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels(app)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

// deployment returns one that runs the image "one".
func deployment(replicas int32, surge, unavailable string) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{"example.com/note": "first"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Template: template("web", "one"),
			Selector: &metav1.LabelSelector{MatchLabels: labels("web")},
		},
	}
	d.Spec.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
		MaxSurge: ptr.To(intstr.Parse(surge)), MaxUnavailable: ptr.To(intstr.Parse(unavailable)),
	}
	return d
}

func imageIs(image string) string {
	return fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, image)
}

func playDeployment(p *play) {
	d := deployment(3, "1", "1")
	p.create(d)
	p.step("create")
	p.ready("one", 2)
	p.step("two are ready")
	p.ready("one", 1)
	p.step("all are ready")
	p.patch(d, `{"spec":{"replicas":4}}`)
	p.step("scale up")
	p.ready("one", 1)
	p.step("all are ready again")
	p.patch(d, imageIs("two"))
	p.step("change the image")
	p.ready("two", 1)
	p.step("one new Pod is ready")
	p.patch(d, imageIs("three"))
	p.step("change it again")
	p.patch(d, imageIs("one"))
	p.step("roll back")
	p.ready("one", len(p.pods("one"))-3)
	p.step("the old ones are ready again")
	p.patch(d, `{"metadata":{"annotations":{"example.com/note":"second"}},"spec":{"minReadySeconds":1}}`)
	p.step("change annotations and minReadySeconds")
	p.patch(d, `{"spec":{"replicas":0}}`)
	p.step("scale to none")
	p.delete(d, metav1.DeletePropagationBackground)
	p.step("delete")
}

func playPause(p *play) {
	d := deployment(2, "1", "0")
	p.create(d)
	p.settle()
	p.ready("one", 2)
	p.step("create")
	p.patch(d, `{"spec":{"paused":true}}`)
	p.step("pause")
	p.patch(d, imageIs("two"))
	p.step("change the image")
	p.patch(d, `{"spec":{"replicas":3}}`)
	p.step("scale")
	p.patch(d, `{"spec":{"paused":null}}`)
	p.step("resume")
	p.ready("two", 1)
	p.step("a new Pod is ready")
	p.patch(d, `{"spec":{"paused":true}}`)
	p.step("pause in the middle")
	p.patch(d, `{"spec":{"paused":null}}`)
	p.step("resume again")
}

func playRecreate(p *play) {
	d := deployment(2, "1", "0")
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	p.create(d)
	p.settle()
	p.ready("one", 2)
	p.step("create")
	p.patch(d, imageIs("two"))
	p.step("change the image")
	p.ready("two", 2)
	p.step("the new Pods are ready")
	p.patch(d, `{"spec":{"replicas":1}}`)
	p.step("scale down")
}

func playProportions(p *play) {
	d := deployment(10, "3", "2")
	p.create(d)
	p.settle()
	p.ready("one", 10)
	p.step("create")
	p.patch(d, imageIs("two"))
	p.step("change the image")
	p.patch(d, `{"spec":{"replicas":15}}`)
	p.step("scale up")
	p.ready("two", 2)
	p.step("two new Pods are ready")
	p.patch(d, `{"spec":{"replicas":6}}`)
	p.step("scale down")
	p.patch(d, `{"spec":{"replicas":0}}`)
	p.step("scale to none")
}

func playHistory(p *play) {
	d := deployment(1, "1", "0")
	d.Spec.RevisionHistoryLimit = ptr.To(int32(1))
	p.create(d)
	p.settle()
	p.ready("one", 1)
	for _, image := range []string{"two", "three", "four"} {
		p.settle()
		p.patch(d, imageIs(image))
		p.settle()
		p.ready(image, 1)
		p.step("the image is " + image)
	}
	p.patch(d, imageIs("three"))
	p.settle()
	p.ready("three", 1)
	p.step("roll back")
}

func playAdoption(p *play) {
	d := deployment(2, "1", "0")
	p.create(d)
	p.settle()
	p.ready("one", 2)
	p.step("create")
	p.delete(d, metav1.DeletePropagationOrphan)
	p.step("orphan")
	p.create(deployment(3, "1", "0"))
	p.step("create again")
}

func statefulSet(policy appsv1.PodManagementPolicyType) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To(int32(3)), ServiceName: "db", PodManagementPolicy: policy,
			Selector: &metav1.LabelSelector{MatchLabels: labels("db")}, Template: template("db", "one"),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: map[string]string{"volume": "data"}},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
						corev1.ResourceStorage: resource.MustParse("1Gi"),
					}},
				},
			}},
		},
	}
}

func playStatefulSet(p *play) {
	set := statefulSet(appsv1.OrderedReadyPodManagement)
	p.create(set)
	p.step("create")
	p.ready("one", 1)
	p.step("the first is ready")
	p.ready("one", 1)
	p.settle()
	p.ready("one", 1)
	p.step("all are ready")
	p.patch(set, `{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":2}}}}`)
	p.patch(set, imageIs("two"))
	p.step("change the image of the last")
	p.ready("two", 1)
	p.step("the last is ready")
	p.patch(set, `{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}}}}`)
	p.step("change the image of all")
	p.ready("two", 1)
	p.settle()
	p.ready("two", 1)
	p.step("all are ready again")
	p.patch(set, imageIs("one"))
	p.step("roll back")
	p.ready("one", 1)
	p.settle()
	p.ready("one", 1)
	p.settle()
	p.ready("one", 1)
	p.settle()
	p.patch(set, `{"spec":{"replicas":1}}`)
	p.step("scale down")
	p.delete(set, metav1.DeletePropagationForeground)
	p.step("delete")
}

func playParallel(p *play) {
	set := statefulSet(appsv1.ParallelPodManagement)
	set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	set.Spec.VolumeClaimTemplates = nil
	set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5}
	p.create(set)
	p.step("create")
	p.ready("one", 3)
	p.step("all are ready")
	p.patch(set, imageIs("two"))
	p.step("change the image")
	p.must(p.Delete(p.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-6", Namespace: p.namespace}}))
	p.step("delete a Pod")
	p.patch(set, `{"spec":{"replicas":1}}`)
	p.step("scale down")
}

// several returns a StatefulSet that replaces two Pods at a time, except the first.
func several(policy appsv1.PodManagementPolicyType) *appsv1.StatefulSet {
	set := statefulSet(policy)
	set.Spec.Replicas = ptr.To(int32(4))
	set.Spec.VolumeClaimTemplates = nil
	set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5}
	set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{
		Partition: ptr.To(int32(1)), MaxUnavailable: ptr.To(intstr.Parse("50%")),
	}
	return set
}

func playTogether(p *play) {
	set := several(appsv1.OrderedReadyPodManagement)
	p.create(set)
	for range 4 {
		p.settle()
		p.ready("one", 1)
	}
	p.step("all are ready")
	p.patch(set, imageIs("two"))
	p.step("change the image")
	p.ready("two", 1)
	p.step("the first new Pod is ready")
	p.ready("two", 1)
	p.step("the second new Pod is ready")
	p.ready("two", 1)
	p.step("all new Pods are ready")
}

func playUnavailable(p *play) {
	set := several(appsv1.ParallelPodManagement)
	p.create(set)
	p.step("create")
	p.ready("one", 3)
	p.step("the last is not ready")
	p.patch(set, imageIs("two"))
	p.step("change the image")
	p.ready("two", 2)
	p.step("two new Pods are ready")
	p.ready("two", 1)
	p.step("all new Pods are ready")
}

func job(change func(*batchv1.JobSpec)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "once"}}
	j.Spec.Template = template("once", "one")
	j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	change(&j.Spec)
	return j
}

func playJob(p *play) {
	p.create(job(func(s *batchv1.JobSpec) { s.Completions, s.Parallelism = ptr.To(int32(3)), ptr.To(int32(2)) }))
	p.step("create")
	p.ready("one", 1)
	p.step("a Pod is ready")
	p.end("one", 1, corev1.PodSucceeded)
	p.step("one has succeeded")
	p.end("one", 2, corev1.PodSucceeded)
	p.step("all have succeeded")
}

func playFailure(p *play) {
	p.create(job(func(s *batchv1.JobSpec) { s.BackoffLimit, s.Parallelism = ptr.To(int32(0)), ptr.To(int32(2)) }))
	p.step("create")
	p.end("one", 1, corev1.PodFailed)
	p.step("one has failed")
}

func playDeadline(p *play) {
	p.create(job(func(s *batchv1.JobSpec) {
		s.ActiveDeadlineSeconds, s.Parallelism = ptr.To(int64(1)), ptr.To(int32(2))
	}))
	p.settle()
	p.step("create")
}

func playIndexed(p *play) {
	p.create(job(func(s *batchv1.JobSpec) {
		s.Completions, s.Parallelism = ptr.To(int32(3)), ptr.To(int32(3))
		s.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}))
	p.step("create")
	p.end("one", 3, corev1.PodSucceeded)
	p.step("all have succeeded")
}

func playSuspension(p *play) {
	j := job(func(s *batchv1.JobSpec) { s.Suspend = ptr.To(true) })
	p.create(j)
	p.step("create")
	p.patch(j, `{"spec":{"suspend":false}}`)
	p.step("resume")
	p.patch(j, `{"spec":{"suspend":true}}`)
	p.step("suspend")
	p.delete(j, metav1.DeletePropagationBackground)
	p.step("delete")
}

// playCronJob begins in the middle of a minute, so that none begins before the wait for the next one.
func playCronJob(p *play) {
	time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(90 * time.Second)))
	c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "often"}, Spec: batchv1.CronJobSpec{
		Schedule: "* * * * *", ConcurrencyPolicy: batchv1.ForbidConcurrent,
		JobTemplate: batchv1.JobTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels("often")}, Spec: job(func(*batchv1.JobSpec) {}).Spec,
		},
	}}
	p.create(c)
	p.step("create")
	time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(65 * time.Second)))
	p.step("the first minute")
	p.end("one", 1, corev1.PodSucceeded)
	p.step("it has succeeded")
}

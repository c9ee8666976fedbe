package component_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// job is a Job of a container that never runs: there are no nodes. It completes at once if it is to complete no Pod.
func job(namespace, name string, change func(*batchv1.JobSpec)) client.Object {
	spec := batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "migration", Image: "migration"}},
	}}}
	change(&spec)
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       spec,
	}
}

func completesAtOnce(ttl int32) func(*batchv1.JobSpec) {
	return func(s *batchv1.JobSpec) { s.Completions, s.TTLSecondsAfterFinished = new(int32(0)), new(ttl) }
}

// jobWorld is a component on an API server where Jobs are run and deleted after their time.
type jobWorld struct {
	*testing.T
	config    *rest.Config
	client    client.Client
	namespace string
	assembly  *resources.Assembly
	operator  *operator
}

func (w *jobWorld) created(resource string) int {
	return w.operator.requests.Counts()[controlplane.Request{
		Verb: "create", Path: fmt.Sprintf("/%s/namespaces/%s/%s", map[string]string{
			"jobs": "apis/batch/v1", "configmaps": "api/v1",
		}[resource], w.namespace, resource),
	}]
}

func (w *jobWorld) deploy(objects ...client.Object) {
	w.Helper()
	w.assembly = resources.NewAssembly(w.namespace, "all", objects...)
	if err := w.client.Create(w.Context(), w.assembly); err != nil {
		w.Fatal(err)
	}
}

func (w *jobWorld) change(objects ...client.Object) {
	w.Helper()
	controlplanetest.Eventually(w.T, "the component does not change", func(ctx context.Context) error {
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(w.assembly), w.assembly); err != nil {
			return err
		}
		w.assembly.SetObjects(objects...)
		return w.client.Update(ctx, w.assembly)
	})
}

func (w *jobWorld) reaches(state apis.ComponentState) {
	w.Helper()
	controlplanetest.Eventually(w.T, "it does not become "+string(state), func(ctx context.Context) error {
		return hasState(ctx, w.client, w.assembly, state)
	})
}

func (w *jobWorld) gone(object client.Object) {
	w.Helper()
	controlplanetest.Eventually(w.T, "the "+object.GetName()+" is not gone", func(ctx context.Context) error {
		err := w.client.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
		if apierrs.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
}

// rests expects that the component does nothing for some seconds. They are over when a Job has gone that has to stay for
// so long, and that nobody manages.
func (w *jobWorld) rests(seconds int32, what string) {
	w.Helper()
	controlplanetest.Quiet(w, w.operator.requests)
	clock := job("default", w.namespace+"-"+strconv.Itoa(int(seconds)), completesAtOnce(seconds))
	if err := w.client.Create(w.Context(), clock); err != nil {
		w.Fatal(err)
	}
	w.gone(clock)
	if n := w.operator.requests.Total(); n > 0 {
		w.Errorf("there are %d requests %s, want none:\n%s", n, what, w.operator.requests)
	}
}

func (w *jobWorld) phaseOf(name string) apis.InventoryPhase {
	for _, record := range w.assembly.Status.Inventory {
		if record.Name == name {
			return record.Phase
		}
	}
	return ""
}

// TestJobsThatDeleteThemselves: a Job that Kubernetes deletes after it finished runs once for each desired state.
func TestJobsThatDeleteThemselves(t *testing.T) {
	t.Parallel()
	controlplanetest.SkipIfShort(t)
	env, c := startOwn(t, controlplane.Options{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.AssemblyCRD()}, Jobs: true, GarbageCollection: true,
	})
	for name, test := range map[string]func(w *jobWorld){
		"at once":       (*jobWorld).completesAtOnce,
		"after seconds": (*jobWorld).completesBeforeItsTime,
		"failed":        (*jobWorld).fails,
		"interrupted":   (*jobWorld).isInterrupted,
		"unseen":        (*jobWorld).completesUnseen,
		"once":          (*jobWorld).isWrittenOnce,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "jobs-"}}
			if err := c.Create(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
			w := &jobWorld{T: t, config: env.Config(), client: c, namespace: namespace.Name}
			w.operator = startComponents(t, w.config, w.namespace, assemblyOptions{})
			test(w)
		})
	}
}

func (w *jobWorld) completesAtOnce() {
	migration := job(w.namespace, "migration", completesAtOnce(0))
	w.deploy(migration, partOf(w.namespace, "after", "1"))
	w.reaches(apis.ComponentReady)
	w.gone(migration)
	controlplanetest.Eventually(w.T, "the Job is not completed", func(context.Context) error {
		w.reaches(apis.ComponentReady)
		if phase := w.phaseOf("migration"); phase != apis.PhaseCompleted {
			return fmt.Errorf("the phase is %s", phase)
		}
		return nil
	})
	if n := w.created("jobs"); n != 1 {
		w.Errorf("the Job was run %d times, want once", n)
	}
	w.rests(11, "although the Job has run")

	changed := job(w.namespace, "migration", completesAtOnce(0))
	changed.SetLabels(map[string]string{"version": "2"})
	w.change(changed, partOf(w.namespace, "after", "1"))
	controlplanetest.Eventually(w.T, "it does not run for another desired state", func(context.Context) error {
		if n := w.created("jobs"); n != 1 {
			return fmt.Errorf("%d runs", n)
		}
		return nil
	})
	w.reaches(apis.ComponentReady)
	w.gone(migration)
	w.rests(2, "although the Job has run again")

	if err := w.client.Delete(w.Context(), w.assembly); err != nil {
		w.Fatal(err)
	}
	w.gone(w.assembly)
}

// completesBeforeItsTime: the state of the component stays Ready when the Job goes.
func (w *jobWorld) completesBeforeItsTime() {
	migration := job(w.namespace, "migration", completesAtOnce(15))
	w.deploy(migration)
	w.reaches(apis.ComponentReady)
	if phase := w.phaseOf("migration"); phase != apis.PhaseReady {
		w.Errorf("the phase is %s before the Job is gone, want %s", phase, apis.PhaseReady)
	}
	since := w.assembly.Status.Conditions[0].LastTransitionTime
	w.gone(migration)
	controlplanetest.Eventually(w.T, "the run is not recorded", func(ctx context.Context) error {
		if err := hasState(ctx, w.client, w.assembly, apis.ComponentReady); err != nil {
			return err
		}
		if phase := w.phaseOf("migration"); phase != apis.PhaseCompleted {
			return fmt.Errorf("the phase is %s", phase)
		}
		return nil
	})
	if now := w.assembly.Status.Conditions[0].LastTransitionTime; !now.Equal(&since) {
		w.Errorf("the transition was at %v, want %v: the component was not ready meanwhile", now, since)
	}
	if n := w.created("jobs"); n != 1 {
		w.Errorf("the Job was run %d times, want once", n)
	}
	w.rests(3, "although the Job has run")
}

// fails: a Job that failed is not run again for the same desired state, and the condition says so.
func (w *jobWorld) fails() {
	migration := job(w.namespace, "migration", func(s *batchv1.JobSpec) {
		s.ActiveDeadlineSeconds, s.TTLSecondsAfterFinished = new(int64(1)), new(int32(0))
	})
	w.deploy(migration)
	// It may be gone before it can be read.
	controlplanetest.Eventually(w.T, "the Job is not created", func(context.Context) error {
		if n := w.created("jobs"); n != 1 {
			return fmt.Errorf("%d runs", n)
		}
		return nil
	})
	w.gone(migration)
	controlplanetest.Eventually(w.T, "the failure is not told", func(ctx context.Context) error {
		if err := hasState(ctx, w.client, w.assembly, apis.ComponentProcessing); err != nil {
			return err
		}
		if text := w.assembly.Status.Conditions[0].Message; !strings.Contains(text, "failed: Job "+w.namespace+"/migration: ") {
			return errors.New(text)
		}
		return nil
	})
	if n := w.created("jobs"); n != 1 {
		w.Errorf("the Job was run %d times, want once", n)
	}
	w.rests(4, "after the Job has failed")
	w.change(job(w.namespace, "migration", completesAtOnce(0)))
	w.reaches(apis.ComponentReady)
}

// isInterrupted: a Job that somebody deletes while it runs is created again.
func (w *jobWorld) isInterrupted() {
	migration := job(w.namespace, "migration", func(s *batchv1.JobSpec) { s.TTLSecondsAfterFinished = new(int32(0)) })
	w.deploy(migration)
	live := &batchv1.Job{}
	runs := func(ctx context.Context) error {
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(migration), live); err != nil {
			return err
		}
		if live.Status.StartTime == nil {
			return errors.New("it has not started")
		}
		return nil
	}
	controlplanetest.Eventually(w.T, "the Job is not started", runs)
	first := live.UID
	if err := w.client.Delete(w.Context(), live, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		w.Fatal(err)
	}
	controlplanetest.Eventually(w.T, "the Job is not started again", runs)
	if live.UID == first || w.created("jobs") != 2 {
		w.Errorf("the Job was created %d times, want twice, and another one than before", w.created("jobs"))
	}
}

// completesUnseen: a Job completes while no operator runs. Until then it is suspended, which counts as ready, and is to
// complete a Pod, or it would complete all the same.
func (w *jobWorld) completesUnseen() {
	migration := job(w.namespace, "migration", func(s *batchv1.JobSpec) {
		s.CompletionMode, s.Suspend = new(batchv1.IndexedCompletion), new(true)
		s.Completions, s.Parallelism, s.TTLSecondsAfterFinished = new(int32(1)), new(int32(1)), new(int32(0))
	})
	w.deploy(migration)
	w.reaches(apis.ComponentReady)
	w.operator.stop()
	resumed := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job"}}
	resumed.SetNamespace(w.namespace)
	resumed.SetName("migration")
	resume := client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"suspend":false,"completions":0,"parallelism":0}}`))
	if err := w.client.Patch(w.Context(), resumed, resume); err != nil {
		w.Fatal(err)
	}
	w.gone(migration)
	w.operator = startComponents(w.T, w.config, w.namespace, assemblyOptions{})
	controlplanetest.Eventually(w.T, "the run is not recorded", func(ctx context.Context) error {
		if err := hasState(ctx, w.client, w.assembly, apis.ComponentReady); err != nil {
			return err
		}
		if phase := w.phaseOf("migration"); phase != apis.PhaseCompleted {
			return fmt.Errorf("the phase is %s", phase)
		}
		return nil
	})
	if n := w.created("jobs"); n != 0 {
		w.Errorf("the Job was run %d times more, want none", n)
	}
}

func (w *jobWorld) isWrittenOnce() {
	seed := partOf(w.namespace, "seed", "0")
	seed.Annotations[generator.SharedPrefix+"/"+generator.AnnotationReconcilePolicy] = "once"
	other := partOf(w.namespace, "other", "0")
	w.deploy(seed, other)
	w.reaches(apis.ComponentReady)
	for _, object := range []client.Object{seed, other} {
		if err := w.client.Delete(w.Context(), object); err != nil {
			w.Fatal(err)
		}
	}
	controlplanetest.Eventually(w.T, "it is not known that it was written once", func(ctx context.Context) error {
		if err := hasState(ctx, w.client, w.assembly, apis.ComponentReady); err != nil {
			return err
		}
		if phase := w.phaseOf("seed"); phase != apis.PhaseCompleted {
			return fmt.Errorf("the phase is %s", phase)
		}
		return w.client.Get(ctx, client.ObjectKeyFromObject(other), &corev1.ConfigMap{})
	})
	if n := w.created("configmaps"); n != 3 {
		w.Errorf("there are %d creations of two objects of which one was deleted for good, want 3", n)
	}
	w.rests(2, "although what is written once is gone")
}

package controllers

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The annotations that a Deployment and its ReplicaSets get, see "Well-Known Labels, Annotations and Taints" in the
// Kubernetes documentation.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	historyAnnotation  = "deployment.kubernetes.io/revision-history"
	desiredAnnotation  = "deployment.kubernetes.io/desired-replicas"
	maximumAnnotation  = "deployment.kubernetes.io/max-replicas"
)

var deploymentVersion = appsv1.SchemeGroupVersion.WithKind("Deployment")

// deployments keeps a ReplicaSet for each template that a Deployment had. See "Deployments" in the Kubernetes
// documentation.
func deployments() *controller {
	return &controller{
		name: "kube-controller-manager", kinds: []schema.GroupKind{deploymentKind},
		decide: func(v *view, _ key, obj client.Object, now time.Time) decision {
			d := obj.(*appsv1.Deployment)
			sets := orphans[*appsv1.ReplicaSet](v, replicaSetKind, d.Namespace, d.Spec.Selector)
			if adopted := adopt(d, deploymentVersion, d.Spec.Selector, sets); len(adopted) > 0 {
				return decision{writes: adopted}
			}
			r := newRollout(d, controlled[*appsv1.ReplicaSet](v, d))
			for _, old := range r.old {
				pods := controlled[*corev1.Pod](v, old)
				r.oldRunning = r.oldRunning ||
					slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return !isFinished(p) })
			}
			return r.decide(now)
		},
		concerns: concernsOrphan(replicaSetKind, deploymentKind),
	}
}

// rollout is a Deployment with its ReplicaSets.
type rollout struct {
	*appsv1.Deployment
	// current has the template of the Deployment; nil if there is none.
	current *appsv1.ReplicaSet
	// old are the others, the oldest first.
	old []*appsv1.ReplicaSet
	// oldRunning says that old ReplicaSets have Pods that run.
	oldRunning bool
}

// newRollout takes the oldest of the ReplicaSets that have the template of a Deployment as the current one.
func newRollout(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) rollout {
	r := rollout{Deployment: d}
	slices.SortStableFunc(sets, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, set := range sets {
		template := set.Spec.Template.DeepCopy()
		delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		if r.current == nil && equality.Semantic.DeepEqual(template, &d.Spec.Template) {
			r.current = set
		} else {
			r.old = append(r.old, set)
		}
	}
	return r
}

// all returns all ReplicaSets.
func (r rollout) all() []*appsv1.ReplicaSet {
	if r.current == nil {
		return r.old
	}
	return append(slices.Clone(r.old), r.current)
}

// decide takes one step of the rollout: what is written about the ReplicaSets comes before the revision and the status
// of the Deployment.
func (r rollout) decide(now time.Time) decision {
	var d decision
	if r.DeletionTimestamp == nil {
		d.add(r.step()...)
	}
	if len(d.writes) > 0 && r.Status.ObservedGeneration == r.Generation {
		return d
	}
	next := r.revised()
	next.Status = r.status(&d, now)
	d.add(changed(updateStatus, next, r.Deployment)...)
	if complete(next) && r.DeletionTimestamp == nil && !r.Spec.Paused {
		d.add(r.cleanUp()...)
	}
	return d
}

// step creates, annotates or scales ReplicaSets.
func (r rollout) step() []write {
	if r.current != nil {
		if next := r.annotated(r.current); !equality.Semantic.DeepEqual(next, r.current) {
			return []write{{verb: update, object: next}}
		}
	}
	if writes := r.scaleAll(); len(writes) > 0 || r.Spec.Paused {
		return writes
	}
	if r.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return r.recreate()
	}
	return r.roll()
}

// newSet returns the ReplicaSet for the template of the Deployment.
func (r rollout) newSet(replicas int32) write {
	hash := hashOf(&r.Spec.Template, r.Status.CollisionCount)
	template := *r.Spec.Template.DeepCopy()
	template.Labels = with(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	selector := r.Spec.Selector.DeepCopy()
	selector.MatchLabels = with(selector.MatchLabels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: r.Name + "-" + hash, Labels: maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(r.Deployment, deploymentVersion)},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, MinReadySeconds: r.Spec.MinReadySeconds, Selector: selector, Template: template,
		},
	}
	return write{verb: create, object: r.annotated(set)}
}

// annotated returns a ReplicaSet as the current one is to be, but for its replicas. It has the annotations of the
// Deployment and the next revision, unless it has the highest one already.
func (r rollout) annotated(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	next := set.DeepCopy()
	highest := 0
	for _, old := range r.old {
		highest = max(highest, revisionOf(old))
	}
	for name, value := range r.Annotations {
		if name != corev1.LastAppliedConfigAnnotation && name != revisionAnnotation && name != historyAnnotation {
			next.Annotations = with(next.Annotations, name, value)
		}
	}
	if was := revisionOf(set); was <= highest {
		if was > 0 {
			next.Annotations = with(next.Annotations, historyAnnotation, strings.TrimPrefix(
				set.Annotations[historyAnnotation]+","+strconv.Itoa(was), ","))
		}
		next.Annotations = with(next.Annotations, revisionAnnotation, strconv.Itoa(highest+1))
	}
	if set.UID == "" {
		next.Annotations = r.withSizes(next.Annotations)
	}
	next.Spec.MinReadySeconds = r.Spec.MinReadySeconds
	return next
}

// withSizes returns the annotations of a ReplicaSet with the sizes of the Deployment.
func (r rollout) withSizes(annotations map[string]string) map[string]string {
	desired := replicasOf(r.Spec.Replicas)
	annotations = with(annotations, desiredAnnotation, strconv.Itoa(int(desired)))
	return with(annotations, maximumAnnotation, strconv.Itoa(int(desired+r.surge())))
}

func revisionOf(obj client.Object) int {
	revision, _ := strconv.Atoi(obj.GetAnnotations()[revisionAnnotation])
	return revision
}

// revised returns the Deployment with the revision of its current ReplicaSet. It is written with the status, which does
// not raise the generation.
func (r rollout) revised() *appsv1.Deployment {
	next := r.DeepCopy()
	if r.current != nil && r.DeletionTimestamp == nil {
		next.Annotations = with(next.Annotations, revisionAnnotation, r.current.Annotations[revisionAnnotation])
	}
	return next
}

// cleanUp deletes the oldest ReplicaSets without Pods that are more than revisionHistoryLimit.
func (r rollout) cleanUp() []write {
	if r.Spec.RevisionHistoryLimit == nil {
		return nil
	}
	var empty []*appsv1.ReplicaSet
	for _, set := range r.old {
		if replicasOf(set.Spec.Replicas) == 0 && set.Status.Replicas == 0 && set.DeletionTimestamp == nil &&
			set.Status.ObservedGeneration >= set.Generation {
			empty = append(empty, set)
		}
	}
	slices.SortStableFunc(empty, func(a, b *appsv1.ReplicaSet) int { return revisionOf(a) - revisionOf(b) })
	var writes []write
	for _, set := range empty[:max(0, len(empty)-int(*r.Spec.RevisionHistoryLimit))] {
		writes = append(writes, deletion(set))
	}
	return writes
}

package controllers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var statefulVersion = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// statefulSets keeps the Pods and claims of StatefulSets. See "StatefulSets" in the Kubernetes documentation.
func statefulSets() *controller {
	return &controller{
		name: "kube-controller-manager", kinds: []schema.GroupKind{statefulKind},
		decide: func(v *view, _ key, obj client.Object, now time.Time) decision {
			set := obj.(*appsv1.StatefulSet)
			pods := orphans[*corev1.Pod](v, podKind, set.Namespace, set.Spec.Selector)
			if adopted := adopt(set, statefulVersion, set.Spec.Selector, pods); len(adopted) > 0 {
				return decision{writes: adopted}
			}
			s := newStateful(set, controlled[*appsv1.ControllerRevision](v, set), controlled[*corev1.Pod](v, set))
			s.hasClaim = func(name string) bool { return v.find(key{claimKind, set.Namespace, name}) != nil }
			return s.decide(now)
		},
		concerns: concernsOrphan(podKind, statefulKind),
	}
}

// stateful is a StatefulSet with what it has.
type stateful struct {
	*appsv1.StatefulSet
	revisions []*appsv1.ControllerRevision
	// updated is the revision of the template; nil if there is none.
	updated *appsv1.ControllerRevision
	// pods are those of the ordinals that are to be there; nil for those that are not. Surplus are the others, the
	// highest ordinal first.
	pods    []*corev1.Pod
	surplus []*corev1.Pod
	// hasClaim reports whether there is a claim of a name.
	hasClaim func(name string) bool
}

func newStateful(set *appsv1.StatefulSet, revisions []*appsv1.ControllerRevision, pods []*corev1.Pod) stateful {
	s := stateful{
		StatefulSet: set, revisions: revisions, pods: make([]*corev1.Pod, replicasOf(set.Spec.Replicas)),
	}
	for _, revision := range revisions {
		if equality.Semantic.DeepEqual(templateOf(revision), &set.Spec.Template) {
			s.updated = revision
		}
	}
	for _, pod := range pods {
		if i := s.ordinal(pod) - s.first(); i >= 0 && i < len(s.pods) {
			s.pods[i] = pod
		} else {
			s.surplus = append(s.surplus, pod)
		}
	}
	slices.SortStableFunc(s.surplus, func(a, b *corev1.Pod) int { return s.ordinal(b) - s.ordinal(a) })
	return s
}

// first is the ordinal of the first Pod.
func (s stateful) first() int {
	if s.Spec.Ordinals == nil {
		return 0
	}
	return int(s.Spec.Ordinals.Start)
}

// ordinal is that of a Pod by its name, -1 if it has none.
func (s stateful) ordinal(pod *corev1.Pod) int {
	if len(pod.Name) <= len(s.Name) {
		return -1
	}
	n, err := strconv.Atoi(pod.Name[len(s.Name)+1:])
	if err != nil {
		return -1
	}
	return n
}

// revisionData is what a revision has of a template.
func revisionData(template *corev1.PodTemplateSpec) []byte {
	data, _ := json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	return data
}

// decide takes one step, and sets the status.
func (s stateful) decide(now time.Time) decision {
	var d decision
	if s.DeletionTimestamp == nil {
		if writes := s.revise(); len(writes) > 0 {
			d.add(writes...)
			return d
		}
		d.add(s.step(&d, now)...)
	}
	next := s.DeepCopy()
	next.Status = s.status(&d, now)
	d.add(changed(updateStatus, next, s.StatefulSet)...)
	return d
}

// revise keeps a revision for the template, which has the highest number.
func (s stateful) revise() []write {
	highest := int64(0)
	for _, revision := range s.revisions {
		highest = max(highest, revision.Revision)
	}
	switch {
	case s.updated == nil:
		// A new status counts no collisions, which is a number, too.
		hash := hashOf(&s.Spec.Template, ptr.To(ptr.Deref(s.Status.CollisionCount, 0)))
		revision := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: s.Namespace, Name: s.Name + "-" + hash,
				Labels:          with(s.Spec.Template.Labels, "controller.kubernetes.io/hash", hash),
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.StatefulSet, statefulVersion)},
			},
			Data: runtime.RawExtension{Raw: revisionData(&s.Spec.Template)}, Revision: highest + 1,
		}
		return []write{{verb: create, object: revision}}
	case s.updated.Revision < highest:
		next := s.updated.DeepCopy()
		next.Revision = highest + 1
		return []write{{verb: update, object: next}}
	}
	return nil
}

// current is the name of the revision that Pods below the partition have.
func (s stateful) current() string {
	if s.Status.CurrentRevision == "" {
		return s.updated.Name
	}
	return s.Status.CurrentRevision
}

// step creates and deletes Pods: in the order of their ordinals, each when those before it are available, unless the
// policy is Parallel. See "Deployment and Scaling Guarantees" and "Update strategies" in "StatefulSets" of the
// Kubernetes documentation.
func (s stateful) step(d *decision, now time.Time) []write {
	ordered := s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	var writes []write
	for i, pod := range s.pods {
		switch {
		case pod == nil:
			writes = append(writes, s.create(s.first()+i)...)
		case isFinished(pod) && pod.DeletionTimestamp == nil:
			writes = append(writes, write{verb: remove, object: pod})
		case pod.DeletionTimestamp == nil && d.available(pod, s.Spec.MinReadySeconds, now):
			continue
		}
		if ordered {
			return writes
		}
	}
	for _, pod := range s.surplus {
		if pod.DeletionTimestamp == nil {
			writes = append(writes, write{verb: remove, object: pod})
		}
		if ordered {
			return writes
		}
	}
	if len(writes) > 0 || s.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		return writes
	}
	return s.roll(d, now)
}

// roll replaces Pods that do not have the template, the highest ordinals first: as many as may be unavailable besides
// those that are already. If the policy is Parallel, outdated Pods that are unavailable are all replaced at once.
func (s stateful) roll(d *decision, now time.Time) []write {
	var outdated, broken []write
	budget := s.maxUnavailable()
	for i, pod := range slices.Backward(s.pods) {
		leaves := pod.DeletionTimestamp != nil
		available := !leaves && d.available(pod, s.Spec.MinReadySeconds, now)
		if !available {
			budget--
		}
		switch replaced := i >= s.partition() && pod.Labels[appsv1.StatefulSetRevisionLabel] != s.updated.Name; {
		case !replaced || leaves:
		case available:
			outdated = append(outdated, write{verb: remove, object: pod})
		case s.Spec.PodManagementPolicy == appsv1.ParallelPodManagement:
			broken = append(broken, write{verb: remove, object: pod})
		}
	}
	return append(broken, outdated[:min(max(budget, 0), len(outdated))]...)
}

// partition is how many of the first Pods are not updated.
func (s stateful) partition() int {
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		return int(ptr.Deref(rolling.Partition, 0))
	}
	return 0
}

// maxUnavailable is how many Pods may be unavailable while others are updated, at least one.
func (s stateful) maxUnavailable() int {
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		return max(1, int(share(rolling.MaxUnavailable, len(s.pods), false)))
	}
	return 1
}

// create returns the claims and the Pod of an ordinal.
func (s stateful) create(ordinal int) []write {
	name := fmt.Sprintf("%s-%d", s.Name, ordinal)
	template, revision := &s.Spec.Template, s.updated.Name
	for _, old := range s.revisions {
		if of := templateOf(old); ordinal-s.first() < s.partition() && old.Name == s.current() && of != nil {
			template, revision = of, old.Name
		}
	}
	pod := newPod(template, s.StatefulSet, statefulVersion, s.Name+"-")
	pod.Name, pod.Spec.Hostname, pod.Spec.Subdomain = name, name, s.Spec.ServiceName
	pod.Labels = with(pod.Labels, appsv1.StatefulSetPodNameLabel, name)
	pod.Labels = with(pod.Labels, appsv1.PodIndexLabel, strconv.Itoa(ordinal))
	pod.Labels = with(pod.Labels, appsv1.StatefulSetRevisionLabel, revision)
	var writes []write
	for _, template := range s.Spec.VolumeClaimTemplates {
		claim := template.Name + "-" + name
		volume := corev1.Volume{Name: template.Name}
		volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}
		pod.Spec.Volumes = append(slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.Name == template.Name
		}), volume)
		if !s.hasClaim(claim) {
			writes = append(writes, write{verb: create, object: s.claim(&template, claim)})
		}
	}
	return append(writes, write{verb: create, object: pod})
}

// claim returns a claim of a template.
func (s stateful) claim(template *corev1.PersistentVolumeClaim, name string) *corev1.PersistentVolumeClaim {
	labels := maps.Clone(template.Labels)
	for name, value := range s.Spec.Selector.MatchLabels {
		labels = with(labels, name, value)
	}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: name, Labels: labels, Annotations: maps.Clone(template.Annotations),
		},
		Spec: *template.Spec.DeepCopy(),
	}
}

// templateOf returns the template that a revision has, nil if it has none.
func templateOf(revision *appsv1.ControllerRevision) *corev1.PodTemplateSpec {
	var data struct {
		Spec struct{ Template corev1.PodTemplateSpec }
	}
	if json.Unmarshal(revision.Data.Raw, &data) != nil {
		return nil
	}
	return &data.Spec.Template
}

// status returns the status, see the Kubernetes API reference, StatefulSetStatus v1 apps.
func (s stateful) status(d *decision, now time.Time) appsv1.StatefulSetStatus {
	next := *s.Status.DeepCopy()
	next.ObservedGeneration = s.Generation
	next.CollisionCount = ptr.To(ptr.Deref(next.CollisionCount, 0))
	if s.updated == nil {
		return next
	}
	next.UpdateRevision, next.CurrentRevision = s.updated.Name, s.current()
	there := slices.DeleteFunc(slices.Concat(s.pods, s.surplus), func(p *corev1.Pod) bool { return p == nil })
	counts := d.count(there, s.Spec.MinReadySeconds, now)
	next.Replicas, next.ReadyReplicas, next.AvailableReplicas = counts.total, counts.ready, counts.available
	next.CurrentReplicas, next.UpdatedReplicas = 0, 0
	for _, pod := range there {
		if pod.DeletionTimestamp != nil {
			continue
		}
		revision := pod.Labels[appsv1.StatefulSetRevisionLabel]
		next.CurrentReplicas += int32(yes(revision == next.CurrentRevision))
		next.UpdatedReplicas += int32(yes(revision == next.UpdateRevision))
	}
	if next.UpdatedReplicas == next.Replicas && next.ReadyReplicas == next.Replicas &&
		next.Replicas == replicasOf(s.Spec.Replicas) {
		next.CurrentRevision, next.CurrentReplicas = next.UpdateRevision, next.UpdatedReplicas
	}
	return next
}

package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/message"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The keys of [apis.Health].Attributes.
const (
	AttributePod       = "pod"
	AttributeContainer = "container"
	AttributeReason    = "reason"
)

// PodSelector returns the selector of the pods of a workload or a Job. It returns false for other kinds, and if the
// selector is missing, selects everything, or is malformed.
func PodSelector(object client.Object) (labels.Selector, bool) {
	kind := content.KindOf(object)
	switch kind.GroupKind() {
	case kinds.Deployment, kinds.StatefulSet, kinds.DaemonSet, kinds.ReplicaSet, kinds.Job:
	default:
		return nil, false
	}
	u, err := content.Of(kind, object)
	if err != nil {
		return nil, false
	}
	fields, _ := content.Field(u, "spec", "selector").(map[string]any)
	var parsed metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &parsed) != nil {
		return nil, false
	}
	selector, err := metav1.LabelSelectorAsSelector(&parsed)
	if err != nil || selector.Empty() {
		return nil, false
	}
	return selector, true
}

// WithPods says why a workload or a Job with the health h is not healthy, if one of its pods shows that. The worst pod
// counts, the first by name if several are equally bad. It gives the reason, the message and the attributes "pod",
// "container" and "reason". If its trouble does not pass by itself, such as an image that cannot be pulled, the object
// is failing at once.
//
// It looks at the pods that the object selects in its namespace, and only at those of the revision of the newest pod,
// or of the newest ones if several were created in one second. Pods that are being deleted, or have ended, do not
// count. Nor do any if the generation of the object has not been observed yet. A crash does not make a Job fail,
// because the Job tries again.
func WithPods(object client.Object, h apis.Health, pods []corev1.Pod) apis.Health {
	selector, ok := PodSelector(object)
	if !ok || Healthy(h.State) || h.State == apis.StateUnknown || object.GetDeletionTimestamp() != nil {
		return h
	}
	kind := content.KindOf(object)
	u, err := content.Of(kind, object)
	if err != nil || (&subject{object: u}).stale() {
		return h
	}
	worst, name := trouble{}, ""
	for _, pod := range counting(pods, object.GetNamespace(), selector) {
		if t := troubleOf(pod); t.severity > worst.severity {
			worst, name = t, pod.Name
		}
	}
	if worst.severity == none {
		return h
	}
	task := kind.GroupKind() == kinds.Job
	if worst.severity == lasting && !(task && worst.reason == reasonCrashLoop) {
		h.State = apis.StateFailing
		if task {
			h.State, h.Grade = apis.StateTaskFailing, apis.StateDown
		}
	}
	h.Reason = worst.reason
	h.Message = message.Stable(h.Message + ": " + worst.message)
	h.Attributes = maps.Clone(h.Attributes)
	if h.Attributes == nil {
		h.Attributes = map[string]string{}
	}
	h.Attributes[AttributePod] = name
	maps.Copy(h.Attributes, worst.attributes())
	return h
}

// revisionLabels are the labels by which controllers tell the revisions of pods apart.
var revisionLabels = [2]string{"pod-template-hash", "controller-revision-hash"}

// revisionOf returns what tells the revision of a pod from others.
func revisionOf(pod *corev1.Pod) (revision [2]string) {
	for i, label := range revisionLabels {
		revision[i] = pod.Labels[label]
	}
	return revision
}

// counting returns the pods that count, sorted by name.
func counting(pods []corev1.Pod, namespace string, selector labels.Selector) []*corev1.Pod {
	var found []*corev1.Pod
	var newest time.Time
	revisions := map[[2]string]bool{}
	for i := range pods {
		pod := &pods[i]
		if pod.Namespace != namespace || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if created := pod.CreationTimestamp.Time; created.After(newest) {
			newest = created
			clear(revisions)
		}
		if pod.CreationTimestamp.Time.Equal(newest) {
			revisions[revisionOf(pod)] = true
		}
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if pod.DeletionTimestamp == nil && !ended {
			found = append(found, pod)
		}
	}
	found = slices.DeleteFunc(found, func(pod *corev1.Pod) bool { return !revisions[revisionOf(pod)] })
	slices.SortFunc(found, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// judgePod is the whole rule of Pods, for which kstatus is not asked: it says that a failed Pod is Current, reads the
// clock, and panics if the status is malformed.
func judgePod(s *subject, _ verdict) verdict {
	phase, crashing := s.phase(), s.crashLooping()
	switch {
	case phase == "Succeeded", phase == "Running" && s.has("Ready", "True"):
		return current
	case phase == "Failed":
		return failed(message.WithReasons("failed", s.text("status", "reason"), s.text("status", "message")))
	case len(crashing) > 0:
		return failed("crashes again and again: " + strings.Join(crashing, ", "))
	case phase == "Running":
		return inProgress("running, but not ready")
	case phase != "Pending" && phase != "":
		return unknown("is in the unknown phase " + phase)
	}
	if c, ok := s.condition("PodScheduled"); ok && c.Status == "False" {
		return inProgress(message.WithReasons("not scheduled", c.Reason))
	}
	return inProgress("not running yet")
}

// crashLooping returns the names of the containers that are restarted again and again after a crash, sorted.
func (s *subject) crashLooping() []string {
	var names []string
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, item := range content.List(s.object, "status", list) {
			container, _ := item.(map[string]any)
			if content.At(container, "state", "waiting", "reason") == "CrashLoopBackOff" {
				name, _ := container["name"].(string)
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// blame returns the verdict about a Pod that is not well with the container that is to blame. No wave sees a container
// that may start yet.
func (s *subject) blame(v verdict) verdict {
	ended := s.phase() == string(corev1.PodFailed)
	if ended {
		v.reason = cmp.Or(s.text("status", "reason"), v.reason)
	}
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.object.Object, &pod); err != nil {
		// What the status says by the rules for all kinds is enough.
		return v
	}
	t := troubleOf(&pod)
	if t.severity == none {
		return v
	}
	reason := v.reason
	if reason == "" || t.severity >= crashed && !ended {
		reason = t.reason
	}
	if t.severity >= crashed && v.status == apis.ObjectInProgress {
		v = failed(t.message).toWaves(v)
	}
	v.attributes = t.attributes()
	return v.because(reason)
}

// severity says how bad a pod is.
type severity int

const (
	none severity = iota
	// unscheduled pods wait for a node.
	unscheduled
	// crashed means that a container ended with an error, for the first time.
	crashed
	// lasting means that it does not pass by itself.
	lasting
)

// trouble is what is wrong with a pod.
type trouble struct {
	severity                   severity
	container, reason, message string
}

// attributes returns what is to blame in the pod.
func (t trouble) attributes() map[string]string {
	attributes := map[string]string{AttributeReason: t.reason}
	if t.container != "" {
		attributes[AttributeContainer] = t.container
	}
	return attributes
}

// troubleOf returns what is wrong with a pod: the worst, and the first of the equally bad.
func troubleOf(pod *corev1.Pod) trouble {
	worst := trouble{}
	for _, c := range pod.Status.Conditions {
		waits := c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
		if waits && c.Reason == corev1.PodReasonUnschedulable {
			worst = trouble{severity: unscheduled, reason: c.Reason, message: "a pod cannot be scheduled: " + c.Message}
		}
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range list {
			if t := troubleOfContainer(c, pod.Spec.RestartPolicy); t.severity > worst.severity {
				worst = t
			}
		}
	}
	return worst
}

// The reasons that stand for reasons that alternate: the container is what it is, whether it waits for the next attempt
// or the attempt is under way.
const (
	reasonCrashLoop = "CrashLoopBackOff"
	reasonImagePull = "ImagePullBackOff"
)

// lastingReasons are the reasons for which a container waits, and waits for ever.
var lastingReasons = map[string]string{
	reasonCrashLoop:              "crashes again and again",
	reasonImagePull:              "cannot pull its image",
	"ErrImagePull":               "cannot pull its image",
	"ErrImageNeverPull":          "has an image that is not on the node and is never pulled",
	"InvalidImageName":           "has an invalid image name",
	"CreateContainerConfigError": "has a configuration that is missing or wrong",
	"CreateContainerError":       "cannot be created",
	"RunContainerError":          "cannot be started",
}

func troubleOfContainer(c corev1.ContainerStatus, policy corev1.RestartPolicy) trouble {
	t := trouble{container: c.Name}
	if waiting := c.State.Waiting; waiting != nil {
		text, known := lastingReasons[waiting.Reason]
		if !known {
			return trouble{}
		}
		t.severity, t.reason, t.message = lasting, waiting.Reason, "container "+c.Name+" "+text
		switch waiting.Reason {
		case reasonCrashLoop:
			t.message += ending(c.LastTerminationState.Terminated)
		case "ErrImagePull", reasonImagePull, "ErrImageNeverPull", "InvalidImageName":
			t.message += fmt.Sprintf(" %q", c.Image)
		case "CreateContainerConfigError":
			t.message += ": " + waiting.Message
		}
		if waiting.Reason == "ErrImagePull" {
			t.reason = reasonImagePull
		}
		return t
	}
	ended := c.State.Terminated
	if ended == nil || ended.ExitCode == 0 {
		return trouble{}
	}
	if c.RestartCount > 0 && policy != corev1.RestartPolicyNever {
		t.severity, t.reason = lasting, reasonCrashLoop
		t.message = "container " + c.Name + " " + lastingReasons[reasonCrashLoop] + ending(ended)
		return t
	}
	t.severity, t.reason = crashed, cmp.Or(ended.Reason, "Error")
	t.message = "container " + c.Name + " has ended with an error" + ending(ended)
	return t
}

// ending says how a container ended.
func ending(ended *corev1.ContainerStateTerminated) string {
	switch {
	case ended == nil:
		return ""
	case ended.Reason != "" && ended.Reason != "Error" && ended.Reason != "Completed":
		return " (" + ended.Reason + ")"
	}
	return fmt.Sprintf(" (exit code %d)", ended.ExitCode)
}

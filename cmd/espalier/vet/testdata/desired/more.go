package desired

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Functions in variables and fields, as tests like to replace them.
var now = time.Now

type stamper struct{ clock func() time.Time }

func newStamper() *stamper { return &stamper{clock: time.Now} }

func (s *stamper) stamp() *metav1.Time {
	at := metav1.Time{Time: s.clock()} // want `the time`
	return &at
}

type seconds int64

var _ = &reconcilers.ChildSetReconciler[*corev1.Pod, *corev1.Pod, *corev1.PodList]{
	DesiredChildren: func(_ context.Context, pod *corev1.Pod) (made []*corev1.Pod, err error) {
		child := pod.DeepCopy()
		child.Spec.NodeName = fmt.Sprintf("node-%d", now().Unix()) // want `given to DesiredChildren .* the time`
		child.Status.StartTime = newStamper().stamp()
		child.Spec.ActiveDeadlineSeconds = new(int64(seconds(time.Until(pod.CreationTimestamp.Time)))) // want `the time`
		made = append(made, child)
		return
	},
}

var _ = &reconcilers.AggregateReconciler[*corev1.Secret]{DesiredResource: aggregate}

func aggregate(_ context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	name := func() string { return "token-" + uuid.NewString() } // want `given to DesiredResource .* a random value`
	switch secret.Type {
	case corev1.SecretTypeOpaque:
		secret.StringData = map[string]string{name(): "x"}
	default:
		secret.Annotations["at"] = now().Format(time.RFC3339) // want `the time`
	}
	return secret, nil
}

func keysOf[K comparable, V any](values map[K]V) []K {
	keys := make([]K, len(values))
	i := 0
	for key := range values {
		keys[i] = key // want `the order of a map`
		i++
	}
	return keys
}

func sortedKeysOf[K cmp.Ordered, V any](values map[K]V) []K {
	keys := make([]K, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

type builder struct{ args []string }

func (b *builder) add(values map[string]string) *builder {
	for key := range values {
		b.args = append(b.args, "--"+key) // want `the order of a map`
	}
	return b
}

var _ = espalier.Owns("Keys", func(_ context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	container := corev1.Container{Args: (&builder{}).add(pod.Labels).args, Command: keysOf(pod.Labels)}
	container.Image = strings.Join(slices.Collect(maps.Values(pod.Labels)), "/") // want `the order of a map`
	container.WorkingDir = strings.Join(sortedKeysOf(pod.Labels), "/")
	for key := range maps.Keys(pod.Annotations) {
		container.Name = container.Name + key // want `the order of a map`
	}
	counts := make([]int, 10)
	for key, value := range pod.Labels {
		counts[len(key)] = len(value)
	}
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}, nil
})

// A function that is wrapped in a loop.
var _ = espalier.Owns("Wrapped", func(context.Context, *corev1.Pod) (*corev1.Pod, error) {
	name := func() string { return "wrapped" }
	for range 2 {
		name = sync.OnceValue(name)
	}
	return &corev1.Pod{Spec: corev1.PodSpec{NodeName: name()}}, nil
})

// Package desired has desired functions that return another object each time, and such that do not.
package desired

import (
	"context"
	crand "crypto/rand"
	"crypto/rsa"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/objects"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"
)

type (
	configMap = corev1.ConfigMap
	child     = reconcilers.ChildReconciler[*corev1.Pod, *configMap, *corev1.ConfigMapList]
)

// Embedded by pointer, so that the field is one of another struct.
type node struct {
	*child
	clock clock.PassiveClock
}

func name(*corev1.Pod) string { return "login" }

// Direct, in a literal.
var _ = &reconcilers.ChildReconciler[*corev1.Pod, *corev1.ConfigMap, *corev1.ConfigMapList]{
	DesiredChild: func(_ context.Context, pod *corev1.Pod) (*corev1.ConfigMap, error) {
		made := &corev1.ConfigMap{}
		made.Annotations = map[string]string{"made": time.Now().String()} // want `given to DesiredChild .* depends on the time`
		return made, nil
	},
}

// A function of the package, through two helpers.
var _ = espalier.Owns("Helper", helped)

func helped(_ context.Context, pod *corev1.Pod) (*corev1.Secret, error) {
	return &corev1.Secret{StringData: map[string]string{"password": password()}}, nil
}

func password() string { return strings.ToUpper(letters(8)) }

func letters(n int) string {
	return utilrand.String(n) // want `given to Owns .* a random value`
}

// A method value, whose field is set later, through an alias and an embedded pointer.
func newNode() *node {
	n := &node{child: &child{}}
	n.DesiredChild = n.desired
	return n
}

func (n *node) desired(context.Context, *corev1.Pod) (*configMap, error) {
	made := &configMap{}
	made.SetCreationTimestamp(metav1.NewTime(n.clock.Now())) // want `depends on the time`
	return made, nil
}

// A function that returns a closure, in a variable.
var makeChild = made(3)

func made(n int) func(context.Context, *corev1.Pod) (*configMap, error) {
	return func(context.Context, *corev1.Pod) (*configMap, error) {
		number := rand.IntN(n) // want `a random value`
		return &configMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("shard-", number)}}, nil
	}
}

var _ = &child{DesiredChild: makeChild}

// A generic function of the package that passes it on.
func owns[T client.Object](desired func(context.Context, T) (*configMap, error)) *espalier.Child[T, *configMap] {
	return espalier.Owns("Generic", desired).Labeled()
}

var _ = owns(func(ctx context.Context, pod *corev1.Pod) (*configMap, error) {
	until := rtime.RetrieveNow(ctx).Add(time.Hour) // want `the time`
	return &configMap{Data: map[string]string{"until": until.String()}}, nil
})

// A value that is random because of its source.
var _ = espalier.Owns("Key", func(_ context.Context, pod *corev1.Pod) (*corev1.Secret, error) {
	key, err := rsa.GenerateKey(crand.Reader, 2048) // want `a random value`
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{Data: map[string][]byte{"key": key.N.Bytes()}}, nil
})

var _ = espalier.Owns("Coin", func(_ context.Context, pod *corev1.Pod) (*corev1.Secret, error) {
	if rand.IntN(2) == 0 { // want `a random value`
		return nil, nil
	}
	return &corev1.Secret{}, nil
})

// A secret that has to be made once, and is not.
var _ = espalier.Owns("Login", objects.GeneratedSecret(name, "password")) // want `GeneratedSecret returns a random value each time: use CreateOnly`

var _ = generator.GeneratorFunc(func(
	_ context.Context, namespace, name string, _ generator.Unstructurable,
) ([]client.Object, error) {
	at := metav1.Now() // want `given to GeneratorFunc .* the time`
	return []client.Object{&configMap{Data: map[string]string{"at": at.String()}}}, nil
})

type cast struct{}

func (cast) Generate(
	_ context.Context, namespace, name string, _ generator.Unstructurable,
) ([]client.Object, error) {
	made := &configMap{}
	made.UID = types.UID(crand.Text()) // want `given to Generate .* a random value`
	return []client.Object{made}, nil
}

// The order of a map: direct, in a helper, by keys, into text, and into a digest.
var _ = espalier.Owns("Order", func(_ context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	made := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
	for key, value := range pod.Labels {
		app := &made.Spec.Containers[0]
		app.Env = append(app.Env, corev1.EnvVar{Name: key, Value: value})
	}
	for key := range pod.Labels {
		made.Spec.Containers[0].Args = append(made.Spec.Containers[0].Args, key) // want `the order of a map`
	}
	made.Spec.Containers[0].Env = environment(pod.Labels)
	made.Spec.Containers[0].Command = slices.Collect(maps.Keys(pod.Labels)) // want `the order of a map`
	return made, nil
})

func environment(values map[string]string) []corev1.EnvVar {
	var found []corev1.EnvVar
	for key, value := range values {
		found = append(found, corev1.EnvVar{Name: key, Value: value}) // want `the order of a map`
	}
	return found
}

var _ = espalier.OwnsEach("Texts", func(_ context.Context, pod *corev1.Pod) ([]*configMap, error) {
	text, digest := strings.Builder{}, fnv.New64()
	list := ""
	for key := range pod.Labels {
		text.WriteString(key)   // want `the order of a map`
		list += key             // want `the order of a map`
		fmt.Fprint(digest, key) // want `the order of a map`
	}
	return []*configMap{{Data: map[string]string{"a": text.String(), "b": list, "c": fmt.Sprint(digest.Sum64())}}}, nil
})

// What follows is right.

var _ = espalier.Owns("Once", objects.GeneratedSecret(name, "password")).CreateOnly()

func once() *espalier.Child[*corev1.Pod, *corev1.Secret] {
	kept := espalier.Owns("Once", helpedOnce)
	if name(nil) != "" {
		kept = kept.Labeled()
	}
	kept.CreateOnly()
	return kept
}

func helpedOnce(_ context.Context, pod *corev1.Pod) (*corev1.Secret, error) {
	return &corev1.Secret{StringData: map[string]string{"password": crand.Text()}}, nil
}

// A time that is logged, or compared.
var _ = espalier.Owns("Logged", func(_ context.Context, pod *corev1.Pod) (*configMap, error) {
	begun := time.Now()
	defer func() { slog.Info("made", "after", time.Since(begun)) }()
	slog.Info("making", "at", begun)
	if time.Since(pod.CreationTimestamp.Time) > time.Hour || begun.After(pod.DeletionTimestamp.Time) {
		return nil, nil
	}
	return &configMap{}, nil
})

// A value that is made only if it is missing.
var _ = espalier.Owns("Kept", func(ctx context.Context, pod *corev1.Pod) (*corev1.Secret, error) {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return nil, err
	}
	found := &corev1.Secret{}
	if err := config.TrackAndGet(ctx, client.ObjectKeyFromObject(pod), found); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	password := found.Data["password"]
	if len(password) == 0 {
		password = []byte(crand.Text())
	}
	return &corev1.Secret{Data: map[string][]byte{"password": password}}, nil
})

// A random value with a seed of the resource is the same each time.
var _ = espalier.Owns("Seeded", func(_ context.Context, pod *corev1.Pod) (*configMap, error) {
	number := rand.New(rand.NewPCG(uint64(len(pod.UID)), 1)).IntN(60)
	return &configMap{Data: map[string]string{"minute": fmt.Sprint(number)}}, nil
})

// A map whose order does not get out.
var _ = espalier.OwnsEach("Sorted", func(_ context.Context, pod *corev1.Pod) ([]*configMap, error) {
	var made []*configMap
	data := map[string]string{}
	parts := map[string][]string{}
	for key, value := range pod.Labels {
		made = append(made, &configMap{ObjectMeta: metav1.ObjectMeta{Name: key}})
		data[key] = value
		parts[key] = append(parts[key], value)
		var own []string
		own = append(own, key)
		data[key] += own[0]
	}
	keys := make([]string, 0, len(pod.Labels))
	for key := range pod.Labels {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range slices.Sorted(maps.Keys(pod.Labels)) {
		keys = append(keys, key)
	}
	variables := unsorted(pod.Labels)
	slices.SortFunc(variables, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	names := slices.Collect(maps.Keys(pod.Labels))
	slices.Sort(names)
	var members []string
	for key := range pod.Annotations {
		members = append(members, key)
	}
	if sets.New(members...).Has("x") {
		return nil, nil
	}
	return made, nil
})

func unsorted(values map[string]string) (found []corev1.EnvVar) {
	for key, value := range values {
		found = append(found, corev1.EnvVar{Name: key, Value: value})
	}
	return found
}

// What is no desired function may do as it likes.
var _ = espalier.Runs("Runs", func(_ context.Context, pod *corev1.Pod) error {
	pod.Status.StartTime = new(metav1.Now())
	return nil
})

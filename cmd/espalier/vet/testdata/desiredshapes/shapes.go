// Package desiredshapes has shapes that desired was not written from.
package desiredshapes

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/component"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/reconcilers"
)

type node = reconcilers.SubReconciler[*v1.Shop]

func configMap(shop *v1.Shop, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}, Data: data,
	}
}

// A method value of a struct.
type builder struct{ image string }

func (b *builder) restarted(_ context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
	object := configMap(shop, nil)
	object.Annotations = map[string]string{
		"restarted-at": time.Now().Format(time.RFC3339), // want `.`
	}
	return object, nil
}

func (b *builder) node() node { return espalier.Owns("Restarted", b.restarted) }

// Helpers of helpers.
func stamped() node {
	return espalier.Owns("Stamped", func(_ context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
		object := configMap(shop, nil)
		annotate(object)
		return object, nil
	})
}

func annotate(object client.Object) {
	object.SetAnnotations(map[string]string{"revision": revision()})
}

func revision() string {
	at := time.Now().UTC() // want `.`
	return strconv.FormatInt(at.Unix(), 10)
}

// A random name in a closure that a function returns.
func suffixed(prefix string) func(context.Context, *v1.Shop) (*corev1.ConfigMap, error) {
	return func(_ context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
		object := configMap(shop, nil)
		object.Name = fmt.Sprintf("%s-%s", prefix, utilrand.String(5)) // want `.`
		return object, nil
	}
}

var suffixedNode = espalier.Owns("Suffixed", suffixed("shop")).Reports("SuffixedReady")

// A token in the literal of a child.
func token() node {
	return &reconcilers.ChildReconciler[*v1.Shop, *corev1.Secret, *corev1.SecretList]{
		DesiredChild: func(_ context.Context, shop *v1.Shop) (*corev1.Secret, error) {
			buf := make([]byte, 16)
			if _, err := crand.Read(buf); err != nil { // want `.`
				return nil, err
			}
			return &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name},
				StringData: map[string]string{"token": hex.EncodeToString(buf)},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.Secret) { current.StringData = desired.StringData },
	}
}

// Keys of a map, collected.
func arguments(_ context.Context, shop *v1.Shop) (*corev1.Pod, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}
	pod.Spec.Containers = []corev1.Container{{
		Name: "shop",
		Args: slices.Collect(maps.Keys(shop.Labels)), // want `.`
	}}
	return pod, nil
}

var argumentsNode = espalier.Owns("Arguments", arguments)

// A file that is written in the order of a map.
func file(_ context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
	var text strings.Builder
	for key, value := range shop.Annotations {
		fmt.Fprintf(&text, "%s=%s\n", key, value) // want `.`
	}
	return configMap(shop, map[string]string{"shop.properties": text.String()}), nil
}

var fileNode = espalier.Owns("File", file)

// A generic helper.
func values[K comparable, V any](m map[K]V) []V {
	var all []V
	for _, value := range m {
		all = append(all, value) // want `.`
	}
	return all
}

func joined(_ context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
	return configMap(shop, map[string]string{"hosts": strings.Join(values(shop.Labels), ",")}), nil
}

var joinedNode = espalier.Owns("Joined", joined)

// Children numbered in the order of a map.
func numbered(_ context.Context, shop *v1.Shop) ([]*corev1.ConfigMap, error) {
	var children []*corev1.ConfigMap
	i := 0
	for key := range shop.Labels {
		child := configMap(shop, map[string]string{"key": key})
		child.Name = fmt.Sprintf("%s-%d", shop.Name, i) // want `.`
		children = append(children, child)
		i++
	}
	return children, nil
}

var numberedNode = espalier.OwnsEach("Numbered", numbered)

// The first key that comes.
func chosen(_ context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
	primary := ""
	for key := range shop.Labels {
		primary = key // want `.`
		break
	}
	return configMap(shop, map[string]string{"primary": primary}), nil
}

var chosenNode = espalier.Owns("Chosen", chosen)

// A clock in a variable, as for tests.
var now = time.Now

func clocked(_ context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
	return configMap(shop, map[string]string{"at": now().String()}), nil // want `.`
}

var clockedNode = espalier.Owns("Clocked", clocked)

// An aggregate.
func summary(config reconcilers.Config) *reconcilers.AggregateReconciler[*corev1.ConfigMap] {
	return &reconcilers.AggregateReconciler[*corev1.ConfigMap]{
		Config: config,
		DesiredResource: func(_ context.Context, summary *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			summary.Data = map[string]string{"id": uuid.NewString()} // want `.`
			return summary, nil
		},
	}
}

// A switch, and a time that is kept in a field of a local struct.
func scheduled(_ context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
	var window struct{ from metav1.Time }
	switch {
	case shop.Spec.Replicas > 1:
		window.from = metav1.Now() // want `.`
	default:
		window.from = shop.CreationTimestamp
	}
	return configMap(shop, map[string]string{"from": window.from.String()}), nil
}

var scheduledNode = espalier.Owns("Scheduled", scheduled)

// The generator of a component.
func componentNode() *component.ComponentReconciler[*v1.Shop] {
	return &component.ComponentReconciler[*v1.Shop]{
		Generator: generator.GeneratorFunc(func(
			_ context.Context, namespace, name string, _ generator.Unstructurable,
		) ([]client.Object, error) {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			object.Data = map[string]string{"lot": strconv.Itoa(rand.Int())} // want `.`
			return []client.Object{object}, nil
		}),
	}
}

// For each item of a list, which itself comes from a map.
func itemsOf(_ context.Context, shop *v1.Shop) ([]string, error) {
	return slices.Sorted(maps.Keys(shop.Labels)), nil
}

var perItem = &reconcilers.ForEach[*v1.Shop, string]{
	Items: itemsOf,
	Reconciler: &reconcilers.WithConfig[*v1.Shop]{
		Reconciler: espalier.Owns("Item", func(ctx context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
			item := reconcilers.CursorStasher[string]().RetrieveOrDie(ctx).Item
			return configMap(shop, map[string]string{"id": item + "-" + uuid.New().String()}), nil // want `.`
		}),
	},
}

// Near misses.

// A loop over a map that is sorted afterwards, in three ways.
func sorted(_ context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
	var env []corev1.EnvVar
	for key, value := range shop.Labels {
		env = append(env, corev1.EnvVar{Name: key, Value: value})
	}
	sort.Slice(env, func(i, j int) bool { return env[i].Name < env[j].Name })
	keys := make([]string, 0, len(shop.Labels))
	for key := range shop.Labels {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	all := slices.Collect(maps.Values(shop.Annotations))
	slices.SortFunc(all, strings.Compare)
	others := slices.Sorted(maps.Keys(shop.Annotations))
	return configMap(shop, map[string]string{
		"env": fmt.Sprint(env), "keys": strings.Join(keys, ","), "all": strings.Join(all, ","),
		"others": strings.Join(others, ","),
	}), nil
}

var sortedNode = espalier.Owns("Sorted", sorted)

// The caller sorts what the helper returns.
func keysOf(m map[string]int) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}

func callerSorts(_ context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
	keys := keysOf(map[string]int{shop.Name: 1})
	sort.Strings(keys)
	return configMap(shop, map[string]string{"keys": strings.Join(keys, ",")}), nil
}

var callerSortsNode = espalier.Owns("CallerSorts", callerSorts)

// Maps, sums and questions have no order.
func orderless(_ context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
	data, total, public := map[string]string{}, 0, false
	for key, value := range shop.Annotations {
		data[strings.ToLower(key)] = value
		total += len(value)
		if key == "public" {
			public = true
		}
	}
	data["total"], data["public"] = strconv.Itoa(total), strconv.FormatBool(public)
	return configMap(shop, data), nil
}

var orderlessNode = espalier.Owns("Orderless", orderless)

// The children of a set are known by their names, so their order does not matter.
func perLabel(_ context.Context, shop *v1.Shop) ([]*corev1.ConfigMap, error) {
	var children []*corev1.ConfigMap
	for key, value := range shop.Labels {
		child := configMap(shop, map[string]string{"value": value})
		child.Name = shop.Name + "-" + key
		children = append(children, child)
	}
	return children, nil
}

var perLabelNode = espalier.OwnsEach("PerLabel", perLabel)

// A time that is compared, logged and measured.
func expiring(ctx context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
	defer func(start time.Time) {
		logr.FromContextOrDiscard(ctx).V(1).Info("made", "took", time.Since(start))
	}(time.Now())
	if deadline := shop.CreationTimestamp.Add(time.Hour); time.Now().After(deadline) {
		return nil, nil
	}
	return configMap(shop, nil), nil
}

var expiringNode = espalier.Owns("Expiring", expiring)

// A password that is made once.
func password(_ context.Context, shop *v1.Shop) (*corev1.Secret, error) {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name},
		StringData: map[string]string{"password": utilrand.String(20)},
	}, nil
}

var passwordNode = espalier.Owns("Password", password).Labeled().CreateOnly()

// A value that is made only if it is missing.
func ensured(ctx context.Context, shop *v1.Shop) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, client.ObjectKeyFromObject(shop), secret)
	switch {
	case apierrors.IsNotFound(err):
		secret.Namespace, secret.Name = shop.Namespace, shop.Name
		secret.Data = map[string][]byte{"key": []byte(uuid.NewString())}
	case err != nil:
		return nil, err
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name},
		Data: secret.Data}, nil
}

var ensuredNode = espalier.Owns("Ensured", ensured)

// Numbers that follow from the resource.
func seeded(_ context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
	sum := fnv.New64a()
	sum.Write([]byte(shop.UID))
	minute := rand.New(rand.NewSource(int64(sum.Sum64()))).Intn(60)
	fixed := time.Date(2020, time.January, 1, 0, minute, 0, 0, time.UTC)
	return configMap(shop, map[string]string{"cron": fmt.Sprintf("%d * * * *", minute), "from": fixed.String()}), nil
}

var seededNode = espalier.Owns("Seeded", seeded)

// What is not desired may depend on the time.
func heartbeat(ctx context.Context, shop *v1.Shop) error {
	reconcilers.SetCondition(ctx, shop, metav1.Condition{Type: "Seen", Message: time.Now().String()})
	return nil
}

var heartbeatNode = espalier.Runs("Heartbeat", heartbeat)

// Limits: what a function is that others set, and what one of another package returns, is not known.

// Stamped gets its clock from others.
type Stamped struct{ Stamp func() string }

func (s *Stamped) desired(_ context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
	return configMap(shop, map[string]string{"at": s.Stamp(), "node": uuid.NodeInterface()}), nil
}

// Node returns a node.
func (s *Stamped) Node() node { return espalier.Owns("Stamped", s.desired) }

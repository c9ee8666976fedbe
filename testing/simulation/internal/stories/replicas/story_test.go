package replicas_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/simulation"
)

const (
	namespace = "default"
	prefix    = "assembly.espalier.test"
	first     = simulation.Operator
	second    = simulation.Operator + "-2"
)

var times = flag.Int("replicas.times", 6, "how many times each story is told")

func cluster(inventory component.Inventory, seed uint64) simulation.Options {
	return simulation.Options{
		Operator: func(ctx context.Context, mgr ctrl.Manager) error {
			config := reconcilers.NewConfig(mgr, &resources.Assembly{}, time.Hour)
			return component.NewComponentRoot(prefix, resources.AssemblyGenerator(),
				component.Options[*resources.Assembly]{Config: config, Inventory: inventory}).SetupWithManager(ctx, mgr)
		},
		Replicas:    2,
		Scheme:      resources.NewScheme(),
		Definitions: []*apiextensionsv1.CustomResourceDefinition{resources.CRD(), resources.AssemblyCRD()},
		Plan:        simulation.Plan{Seed: seed, Latency: 40 * time.Millisecond, Actors: []string{first, second}},
	}
}

// parts are objects in three waves, without every number-th.
func parts(number int) []client.Object {
	var objects []client.Object
	for i := range 12 {
		if number > 0 && i%number == number-1 {
			continue
		}
		part := &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("part-%02d", i)},
		}
		order := map[string]string{generator.SharedPrefix + "/" + generator.AnnotationApplyOrder: strconv.Itoa(i / 4)}
		part.Annotations = order
		objects = append(objects, part)
	}
	return objects
}

// has fails the story unless there are these parts, and no others.
func has(w *simulation.World, when string, wanted []client.Object) {
	w.Helper()
	list := &corev1.ConfigMapList{}
	w.List(list, client.InNamespace(namespace), client.HasLabels{prefix + "/" + generator.LabelOwnerID})
	var want, got []string
	for _, object := range wanted {
		want = append(want, object.GetName())
	}
	for i := range list.Items {
		got = append(got, list.Items[i].Name)
	}
	if !slices.Equal(got, want) {
		w.Errorf("%s there are %v, want %v", when, got, want)
	}
	inventories := &corev1.SecretList{}
	w.List(inventories, client.InNamespace(namespace), client.HasLabels{prefix + "/inventory"})
	if n := len(inventories.Items); n > 0 && len(wanted) == 0 {
		w.Errorf("%s there are %d Secrets of the inventory, want none", when, n)
	}
}

// told tells a story about an Assembly that is rolled out, made smaller and deleted, while disturb does something to
// the processes of the operator after each of these.
func told(t *testing.T, disturb func(w *simulation.World, r *rand.Rand)) {
	for name, inventory := range map[string]component.Inventory{"status": {}, "Secret": {Kind: "Secret"}} {
		for seed := range uint64(*times) {
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				t.Parallel()
				simulation.Run(t, cluster(inventory, seed), func(w *simulation.World) {
					r := rand.New(rand.NewPCG(seed, 1))
					assembly := resources.NewAssembly(namespace, "all", parts(0)...)
					w.Create(assembly)
					disturb(w, r)
					number := 2 + r.IntN(2)
					w.Update(assembly, func() { assembly.SetObjects(parts(number)...) })
					disturb(w, r)
					w.Start()
					w.Rest()
					has(w, "made smaller,", parts(number))
					w.Delete(assembly)
					disturb(w, r)
					w.Start()
					w.Rest()
					has(w, "deleted,", nil)
				})
			})
		}
	}
}

func pass(w *simulation.World, r *rand.Rand) { w.Pass(time.Duration(r.IntN(400)) * time.Millisecond) }

// The old and the new process of a rolling update work together for a while.
func TestOverlap(t *testing.T) {
	told(t, func(w *simulation.World, r *rand.Rand) {
		old, other := first, second
		if r.IntN(2) == 0 {
			old, other = other, old
		}
		w.Start(old)
		pass(w, r)
		w.Start(other)
		pass(w, r)
		w.Stop(old)
	})
}

// One of two processes dies again and again.
func TestKills(t *testing.T) {
	told(t, func(w *simulation.World, r *rand.Rand) {
		for range 3 {
			pass(w, r)
			killed := []string{first, second}[r.IntN(2)]
			w.Kill(killed)
			pass(w, r)
			w.Start(killed)
		}
	})
}

package sharded_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"
	"github.com/espalier-dev/espalier/internal/testenv/sharder/sharderstest"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// deployed is how many resources the replicas of BenchmarkShardMemory have. Each has five objects.
	deployed = 1000
	// kept is longer than a shard keeps what it has listed for resources that are new to it.
	kept = 65 * time.Second
)

// BenchmarkShardMemory starts 1, 2 and 4 processes that share 1,000 resources with five objects each, and reports the live
// memory of a process:
//
//   - tree: the objects are children, four ConfigMaps and a Secret.
//   - components: the objects are those of components, five ConfigMaps.
//
// It is measured when all are ready and a minute is over, since a process keeps for so long what it has listed for
// resources that were new to it. So all take more than ten minutes, and run with ESPALIER_LARGE=1 alone.
//
//	live-MB/replica, most-MB/replica  on average, and of the process that has most
//	empty-MB/replica                  of a process without resources
func BenchmarkShardMemory(b *testing.B) {
	if os.Getenv("ESPALIER_LARGE") != "1" {
		b.Skip("it needs ESPALIER_LARGE=1: it takes more than ten minutes")
	}
	for _, components := range []bool{false, true} {
		for _, n := range []int{1, 2, 4} {
			kind := map[bool]string{false: "tree", true: "components"}[components]
			b.Run(fmt.Sprintf("%s/replicas=%d", kind, n), func(b *testing.B) {
				for b.Loop() {
					measureMemory(b, components, n)
				}
			})
		}
	}
}

func measureMemory(b *testing.B, components bool, n int) {
	s := newScene(b, sharderstest.StandInThatSyncs(2*time.Second))
	of := s.replica(s.namespace, "", 15)
	of.Components = components
	defer s.ring(of)()
	kubeconfig := writeKubeconfig(b, plane.Config(b))
	var containers []*container
	for i := range n {
		of.Name = fmt.Sprintf("shard-%d", i)
		containers = append(containers, startContainer(b, kubeconfig, of))
		defer containers[i].stop()
	}
	controlplanetest.Eventually(b, "the replicas are not ready", func(ctx context.Context) error {
		leases := &coordinationv1.LeaseList{}
		ready := client.MatchingLabels{sharder.StateLabel: string(sharder.Ready)}
		err := s.List(ctx, leases, client.InNamespace(s.namespace), ready)
		if err == nil && len(leases.Items) < n {
			err = fmt.Errorf("%d are ready, want %d", len(leases.Items), n)
		}
		return err
	})
	empty := slices.Max(liveHeaps(b, containers))
	for i := range deployed {
		if err := s.Client.Create(b.Context(), s.resource(i, components)); err != nil {
			b.Fatal(err)
		}
	}
	controlplanetest.Eventually(b, "the resources are not ready", func(ctx context.Context) error {
		return s.areReady(ctx, of)
	})
	time.Sleep(kept)
	heaps := liveHeaps(b, containers)
	total := 0
	for _, heap := range heaps {
		total += heap
	}
	b.ReportMetric(float64(total)/float64(n)/1e6, "live-MB/replica")
	b.ReportMetric(float64(slices.Max(heaps))/1e6, "most-MB/replica")
	b.ReportMetric(float64(empty)/1e6, "empty-MB/replica")
}

// liveHeaps returns the live memory of each process.
func liveHeaps(b *testing.B, containers []*container) (heaps []int) {
	b.Helper()
	for _, c := range containers {
		heap, err := c.liveHeap()
		if err != nil {
			b.Fatal(err)
		}
		heaps = append(heaps, heap)
	}
	return heaps
}

// resource returns a resource with five objects.
func (s *scene) resource(i int, components bool) client.Object {
	name := fmt.Sprintf("w-%d", i)
	if !components {
		w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
		w.Spec.Fields = map[string]string{"color": "red", "parts": "4"}
		return w
	}
	var objects []client.Object
	for k := range 5 {
		object := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("%s-part-%d", name, k)},
			Data:       map[string]string{"color": "red"},
		}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		objects = append(objects, object)
	}
	return resources.NewAssembly(s.namespace, name, objects...)
}

// areReady returns an error unless each resource is ready, and none is to move.
func (s *scene) areReady(ctx context.Context, of replica) error {
	var list client.ObjectList = &resources.WidgetList{}
	if of.Components {
		list = &resources.AssemblyList{}
	}
	if err := s.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return err
	}
	for _, object := range items(list) {
		if _, drains := object.GetLabels()[sharder.DrainLabel(of.Ring)]; drains || !isReady(object) {
			return fmt.Errorf("%s is not ready, or is to move: %v", object.GetName(), object.GetLabels())
		}
	}
	return nil
}

func isReady(object client.Object) bool {
	switch object := object.(type) {
	case *resources.Widget:
		return meta.IsStatusConditionTrue(object.Status.Conditions, resources.WidgetReady)
	case *resources.Assembly:
		return meta.IsStatusConditionTrue(object.Status.Conditions, resources.WidgetReady)
	}
	return false
}

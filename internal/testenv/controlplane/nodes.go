package controlplane

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PodAnnotation is the annotation of a pod that says what becomes of it on a node of [Options]. Without it the pod
// becomes ready at once; and if a Job controls it, it then succeeds.
const PodAnnotation = "testenv.espalier.dev/pod"

// The values of [PodAnnotation].
const (
	// PodRuns: the pod becomes ready, and does not come to an end.
	PodRuns = "Runs"
	// PodCannotPullImage: the pod stays pending, and each container waits for its image, with ImagePullBackOff.
	PodCannotPullImage = "ImagePullBackOff"
	// PodCrashes: each container was restarted five times and waits, with CrashLoopBackOff.
	PodCrashes = "CrashLoopBackOff"
	// PodFails: the pod comes to an end, and each container has the exit code 1.
	PodFails = "Fails"
)

// stages tell kwok what becomes of nodes and pods.
//
//go:embed stages.yaml
var stages []byte

func stagesFile(dir string) string { return filepath.Join(dir, "stages.yaml") }

func writeStages(dir string) error { return os.WriteFile(stagesFile(dir), stages, 0o600) }

// startNodes creates the nodes, and returns when they are ready.
func (e *Environment) startNodes(ctx context.Context, count int) error {
	c, err := client.New(e.config, client.Options{})
	if err != nil {
		return err
	}
	for i := range count {
		if err := createNode(ctx, c, fmt.Sprintf("node-%d", i+1)); err != nil {
			return err
		}
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true,
		func(ctx context.Context) (bool, error) {
			var nodes corev1.NodeList
			if err := c.List(ctx, &nodes); err != nil {
				return false, err
			}
			ready := 0
			for i := range nodes.Items {
				if nodeReady(&nodes.Items[i]) {
					ready++
				}
			}
			return ready == count, e.Err()
		})
	if err != nil {
		return fmt.Errorf("the nodes do not become ready: %w", err)
	}
	return nil
}

// createNode creates a node that takes pods. The API server gives each new node a taint, which the node lifecycle
// controller would remove. That controller does not run, because it takes nodes for dead if kwok is slow.
func createNode(ctx context.Context, c client.Client, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"},
	}}
	if err := c.Create(ctx, node); err != nil {
		return fmt.Errorf("could not create the node %s: %w", name, err)
	}
	// kwok writes the status meanwhile, so an update would meet conflicts.
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"taints":null}}`))
	if err := c.Patch(ctx, node, patch); err != nil {
		return fmt.Errorf("could not remove the taints of the node %s: %w", name, err)
	}
	return nil
}

func nodeReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

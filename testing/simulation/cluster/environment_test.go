package cluster_test

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

func TestMain(m *testing.M) {
	os.Exit(m.Run())
}

func TestSmoke(t *testing.T) {
	defer goleak.VerifyNone(t)
	begin := time.Now()
	env := &cluster.Environment{CRDDirectoryPaths: []string{"../../../examples/shop/config/crd"}}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started after %v", time.Since(begin))
	defer func() {
		begin := time.Now()
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
		t.Logf("stopped after %v", time.Since(begin))
	}()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list := &corev1.NamespaceList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	t.Logf("answered after %v: %d", time.Since(begin), len(list.Items))
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
		},
	}}
	if err := c.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	for d.Status.ReadyReplicas == 0 && time.Since(begin) < 20*time.Second {
		time.Sleep(10 * time.Millisecond)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("ready after %v", time.Since(begin))
}

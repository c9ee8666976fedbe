// Package demotest helps to test demos: it plays scenarios while requests fail or the API server restarts, and compares
// the objects in the cluster.
package demotest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// Play opens a scenario, plays it, and closes it. prepare may change it before it is played. The test fails if one of
// the objects is left in the end.
func Play(
	t *testing.T, open func(context.Context, demo.Options) (*demo.Scenario, error), options demo.Options,
	objects Objects, prepare func(*demo.Scenario),
) {
	t.Helper()
	var printed strings.Builder
	options.Out = &printed
	scenario, err := open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	prepare(scenario)
	err = scenario.Play(t.Context())
	if err := errors.Join(err, scenario.Close(context.WithoutCancel(t.Context()))); err != nil {
		t.Fatalf("%v\n%s", err, printed.String())
	}
	objects.AreGone(t, options.Admin)
}

// RunOnExistingCluster runs the demo on an existing cluster, and interrupts it when it prints the text at. The test
// fails if the demo has not printed by then that the fact holds, or if it leaves objects behind.
func RunOnExistingCluster(t *testing.T, config *rest.Config, demo demo.Demo, fact, at string) {
	t.Helper()
	t.Setenv("USE_EXISTING_CLUSTER", "true")
	t.Setenv("KUBECONFIG", writeKubeconfig(t, config))
	objects := Objects{Kinds: []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Namespace"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
	}, Parts: []string{""}}
	before := objects.Names(t, config)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &interruptingWriter{at: at, interrupt: cancel}
	err := demo.Run(ctx, logr.Discard(), out)

	if !errors.Is(err, context.Canceled) {
		t.Errorf("the demo ended with %v, want %v", err, context.Canceled)
	}
	for _, text := range []string{"on the cluster of the current kubeconfig", "✓ " + fact} {
		if !strings.Contains(out.text.String(), text) {
			t.Errorf("the demo did not print %q, want it printed", text)
		}
	}
	for _, name := range objects.Names(t, config) {
		if !slices.Contains(before, name) {
			t.Errorf("the cluster has %s, want nothing left behind", name)
		}
	}
	if t.Failed() {
		t.Log(out.text.String())
	}
}

// interruptingWriter calls interrupt when a certain text is written.
type interruptingWriter struct {
	text      bytes.Buffer
	at        string
	interrupt context.CancelFunc
}

func (w *interruptingWriter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.at)) {
		w.interrupt()
	}
	return w.text.Write(p)
}

// writeKubeconfig writes a client's configuration as a kubeconfig, and returns its path.
func writeKubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	kubeconfig, err := demo.Kubeconfig(config)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

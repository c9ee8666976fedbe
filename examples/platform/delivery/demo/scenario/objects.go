package scenario

import (
	"context"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/examples/platform/delivery/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/delivery/software"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// namespace is that of the resources, and of what is delivered to both clusters.
const namespace = "demo-delivery"

// The objects of the scenario have a kind and a name, and nothing else. Nobody changes them.
var (
	monitor    = demo.Named[v1alpha1.Monitor](namespace, "main")
	settings   = configMap("main-settings")
	rules      = configMap("main-rules")
	store      = demo.Named[corev1.Service](namespace, "main-store")
	firstProbe = software.NewProbe(namespace, "main-first")
	probeType  = demo.Named[apiextensionsv1.CustomResourceDefinition]("", software.ProbeTypeName)
	prepare    = demo.Named[batchv1.Job](namespace, "main-prepare")
	verify     = demo.Named[batchv1.Job](namespace, "main-verify")
	// otherProbe does not belong to the monitor.
	otherProbe = software.NewProbe(namespace, "shop")

	agent         = demo.Named[v1alpha1.Agent](namespace, "edge")
	agentAccount  = account("edge-agent")
	agentSettings = configMap("edge-settings")
	agentPolicy   = demo.Named[networkingv1.NetworkPolicy](namespace, "edge-agent")
)

func configMap(name string) *corev1.ConfigMap { return demo.Named[corev1.ConfigMap](namespace, name) }
func account(name string) *corev1.ServiceAccount {
	return demo.Named[corev1.ServiceAccount](namespace, name)
}

// ordinaryAnd returns the objects of the chart that are no hooks, without the type, and others.
func ordinaryAnd(others ...client.Object) []client.Object {
	return append([]client.Object{settings, rules, account("main"), store, firstProbe}, others...)
}

// orderedMonitor returns a monitor whose Jobs nobody but the scenario runs.
func orderedMonitor() *v1alpha1.Monitor {
	ordered := monitor.DeepCopy()
	ordered.Spec.Values = v1alpha1.Values{"jobs": map[string]any{"managedBy": "example.com/demo"}}
	return ordered
}

func orderedAgent() *v1alpha1.Agent {
	ordered := agent.DeepCopy()
	ordered.Spec.KubeConfig = &generator.KubeConfigSpec{SecretRef: generator.SecretKeyReference{Name: kubeconfigSecret}}
	ordered.Spec.ServiceAccountName = courier
	ordered.Spec.Values = v1alpha1.Values{"monitor": "https://main-store.example.com"}
	return ordered
}

// orders asks for another value.
func (s *scenario) orders(resource client.Object, name, value string) demo.Action {
	return s.Patches(resource, fmt.Sprintf(`{"spec":{"values":{%q:%q}}}`, name, value))
}

// succeeds does what the controller of Jobs does once the Pod has succeeded. It waits for a Job that has not run yet.
func (s *scenario) succeeds(job *batchv1.Job) demo.Action {
	isNew := s.Has(job, "{.status.completionTime}{.metadata.deletionTimestamp}", "")
	const status = `{"status":{"startTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T00:00:00Z","succeeded":1,
		"conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}}`
	return s.Until(demo.All(isNew, demo.Condition(s.PatchesStatus(job, status))))
}

// waitsFor holds when the condition of the monitor says that a wave waits for the object.
func (s *scenario) waitsFor(obj client.Object) demo.Condition {
	return s.Reports(monitor, apis.ConditionReady, metav1.ConditionUnknown, "Processing",
		"waiting for", obj.GetName())
}

// isAtLaterRevision holds when the monitor has another revision than the first, and the chart was told which.
func (s *scenario) isAtLaterRevision(ctx context.Context) error {
	found := &v1alpha1.Monitor{}
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(monitor), found); err != nil {
		return err
	}
	if found.Status.Revision < 2 {
		return fmt.Errorf("it has revision %d", found.Status.Revision)
	}
	return s.HasData(settings, "revision", strconv.FormatInt(found.Status.Revision, 10))(ctx)
}

package scenario

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/examples/platform/delivery/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/delivery/software"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// The resources of the scenario, and their namespace in both clusters.
const (
	namespace = "demo-delivery"
	monitor   = "main"
	agent     = "edge"
)

// The objects of the scenario, by what they are to it. They have a kind and a name, and nothing else.
func theMonitor() *v1alpha1.Monitor { return demo.Named[v1alpha1.Monitor](namespace, monitor) }
func theAgent() *v1alpha1.Agent     { return demo.Named[v1alpha1.Agent](namespace, agent) }

func theType() client.Object {
	return demo.Named[apiextensionsv1.CustomResourceDefinition]("", software.ProbeTypeName)
}

func firstProbe() client.Object { return software.NewProbe(namespace, monitor+"-first") }

// otherProbe does not belong to the monitor.
func otherProbe() client.Object { return software.NewProbe(namespace, "shop") }

func settings() client.Object { return demo.Named[corev1.ConfigMap](namespace, monitor+"-settings") }
func rules() client.Object    { return demo.Named[corev1.ConfigMap](namespace, monitor+"-rules") }
func account() client.Object  { return demo.Named[corev1.ServiceAccount](namespace, monitor) }
func store() client.Object    { return demo.Named[corev1.Service](namespace, monitor+"-store") }
func prepare() *batchv1.Job   { return demo.Named[batchv1.Job](namespace, monitor+"-prepare") }
func verify() *batchv1.Job    { return demo.Named[batchv1.Job](namespace, monitor+"-verify") }

// ordinary are the objects of the chart that are no hooks, without the type.
func ordinary() []client.Object {
	return []client.Object{settings(), rules(), account(), store(), firstProbe()}
}

func agentAccount() client.Object {
	return demo.Named[corev1.ServiceAccount](namespace, agent+"-agent")
}

func agentSettings() client.Object {
	return demo.Named[corev1.ConfigMap](namespace, agent+"-settings")
}

func agentPolicy() client.Object {
	return demo.Named[networkingv1.NetworkPolicy](namespace, agent+"-agent")
}

// resource is a resource that is a component.
type resource struct {
	client.Object
	status *apis.ComponentStatus
}

func monitorStatus() resource {
	m := theMonitor()
	return resource{m, &m.Status}
}

func agentStatus() resource {
	a := theAgent()
	return resource{a, &a.Status}
}

// reports holds when the condition Ready was observed at the current generation, is as given, and its message has all
// of these parts. A check can show the message then, see message.
func (s *scenario) reports(
	of func() resource, status metav1.ConditionStatus, reason string, parts ...string,
) demo.Condition {
	return func(ctx context.Context) error {
		found := of()
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(found), found.Object); err != nil {
			return err
		}
		c := found.status.GetCondition(apis.ConditionReady)
		switch {
		case c == nil:
			return fmt.Errorf("there is no condition %s", apis.ConditionReady)
		case c.ObservedGeneration != found.GetGeneration():
			return fmt.Errorf("it was observed at generation %d of %d", c.ObservedGeneration, found.GetGeneration())
		}
		s.said = fmt.Sprintf("%s=%s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
		for _, part := range parts {
			if !strings.Contains(c.Message, part) {
				return fmt.Errorf("there is nothing of %q in %s", part, s.said)
			}
		}
		if c.Status != status || c.Reason != reason {
			return fmt.Errorf("the condition is %s", s.said)
		}
		return nil
	}
}

// message returns what the condition says that the check has read.
func (s *scenario) message() string { return s.said }

// waits holds when the condition of the monitor says that a wave waits for the object.
func (s *scenario) waits(obj client.Object) demo.Condition {
	return s.reports(monitorStatus, metav1.ConditionUnknown, "Processing", "waiting for", obj.GetName())
}

// isReady holds when the resource is ready at its current generation.
func (s *scenario) isReady(of func() resource) demo.Condition {
	return demo.All(s.reports(of, metav1.ConditionTrue, "Ready"), func(ctx context.Context) error {
		found := of()
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(found), found.Object); err != nil {
			return err
		}
		if found.status.State != apis.ComponentReady || found.status.AppliedGeneration != found.GetGeneration() {
			return fmt.Errorf("it is %s, at generation %d of %d",
				found.status.State, found.status.AppliedGeneration, found.GetGeneration())
		}
		return nil
	})
}

// say holds when the ConfigMap has the values, given as keys and values in turns.
func say(in *demo.Fixture, obj client.Object, pairs ...string) demo.Condition {
	return func(ctx context.Context) error {
		found := &corev1.ConfigMap{}
		if err := in.Client.Get(ctx, client.ObjectKeyFromObject(obj), found); err != nil {
			return err
		}
		for i := 0; i < len(pairs); i += 2 {
			if value := found.Data[pairs[i]]; value != pairs[i+1] {
				return fmt.Errorf("the %s of %s is %q, not %q", pairs[i], obj.GetName(), value, pairs[i+1])
			}
		}
		return nil
	}
}

// upgraded holds when the monitor has another revision than the first, and the chart was told which.
func (s *scenario) upgraded(ctx context.Context) error {
	found := theMonitor()
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
		return err
	}
	if found.Status.Revision < 2 {
		return fmt.Errorf("it has revision %d", found.Status.Revision)
	}
	return say(s.Fixture, settings(), "revision", strconv.FormatInt(found.Status.Revision, 10))(ctx)
}

// finished holds when the Job has run to its end.
func (s *scenario) finished(job *batchv1.Job) demo.Condition {
	return func(ctx context.Context) error {
		found := &batchv1.Job{}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(job), found); err != nil {
			return err
		}
		if found.Status.CompletionTime == nil {
			return fmt.Errorf("the Job %s has not run", job.Name)
		}
		return nil
	}
}

// run does what the controller of Jobs would do once the Pod has succeeded. The Job must not have run yet.
func (s *scenario) run(job *batchv1.Job) demo.Condition {
	return func(ctx context.Context) error {
		found := &batchv1.Job{}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(job), found); err != nil {
			return err
		}
		if found.Status.CompletionTime != nil || found.DeletionTimestamp != nil {
			return fmt.Errorf("the Job %s is that of the release before", job.Name)
		}
		now := metav1.Now()
		found.Status.StartTime, found.Status.CompletionTime, found.Status.Succeeded = &now, &now, 1
		for _, condition := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			found.Status.Conditions = append(found.Status.Conditions, batchv1.JobCondition{
				Type: condition, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonCompletionsReached,
				LastProbeTime: now, LastTransitionTime: now,
			})
		}
		return s.Client.Status().Update(ctx, found)
	}
}

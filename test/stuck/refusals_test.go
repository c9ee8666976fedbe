package stuck_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/webhookserver"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// refusals are what the API server does not let the operator do.
var refusals = map[string]story{
	"name-taken": {
		plant: func(s *scene) {
			taken := &corev1.ConfigMap{ObjectMeta: s.part("settings"), Data: map[string]string{"color": "red"}}
			if err := s.Create(s.Context(), taken, client.FieldOwner("kubectl-create")); err != nil {
				s.Fatal(err)
			}
			s.widget()
		},
		mend: func(s *scene) { s.deletes(&corev1.ConfigMap{ObjectMeta: s.part("settings")}) },
	},
	"no-right-to-write": {
		plant: func(s *scene) {
			s.mayWrite(false)
			s.widget()
		},
		mend: func(s *scene) { s.mayWrite(true) },
	},
	"webhook-refuses": {
		plant: func(s *scene) {
			server, err := webhookserver.New()
			if err != nil {
				s.Fatal(err)
			}
			server.Register("/owners", &admission.Webhook{Handler: admission.HandlerFunc(
				func(context.Context, admission.Request) admission.Response {
					return admission.Denied("the label cost-center is missing")
				},
			)})
			serve(s, server)
			s.guards(server)
			s.widget()
		},
		mend: func(s *scene) { s.deletes(s.hook(nil)) },
	},
	"webhook-down": {
		plant: func(s *scene) {
			server, err := webhookserver.New() // and it is not started
			if err != nil {
				s.Fatal(err)
			}
			s.guards(server)
			s.widget()
		},
		mend: func(s *scene) { s.deletes(s.hook(nil)) },
	},
	"namespace-going": {
		plant: func(s *scene) {
			s.widget()
			s.settles()
			s.deletes(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
			s.sets("data", "1Gi")
		},
		mend: func(s *scene) { s.deletes(s.resource) }, // as the controller of namespaces would
		goes: true,
	},
	"kind-not-served": {
		plant: func(s *scene) { s.widget("host", "shop.example.com") },
		mend:  func(s *scene) { create(s, definition(aRoute().GroupVersionKind(), "routes")) },
	},
	"immutable-field": {
		plant: func(s *scene) {
			s.widget("image", "shop:1")
			s.rolledOut("server")
			s.settles()
			s.sets("tier", "web")
		},
		mend: func(s *scene) {
			s.deletes(&appsv1.Deployment{ObjectMeta: s.part("server")})
			s.rolledOut("server")
		},
	},
}

// hook registers a server for the ConfigMaps of the namespace.
func (s *scene) hook(server *webhookserver.Server) client.Object {
	if server == nil {
		return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	}
	return server.Validating(s.namespace, webhookserver.Hook{
		Path: "/owners", Namespaces: []string{s.namespace},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
			},
		}},
	})
}

// guards has a webhook asked about each new ConfigMap of the namespace.
func (s *scene) guards(server *webhookserver.Server) {
	s.Helper()
	s.made(s.hook(server))
	s.Cleanup(func() { _ = s.Delete(context.Background(), s.hook(nil)) })
	eventually(s, "the webhook is not asked", func(ctx context.Context) error {
		trial := &corev1.ConfigMap{ObjectMeta: s.part("trial")}
		if err := s.Create(ctx, trial, client.DryRunAll); err == nil {
			return errors.New("a ConfigMap could be created")
		}
		return nil
	})
}

// serve runs a webhook server until the test ends.
func serve(t testing.TB, server *webhookserver.Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the webhook does not start", func(context.Context) error { return server.StartedChecker()(nil) })
}

// rolledOut says of a Deployment what its controller would say: that it is available.
func (s *scene) rolledOut(part string) {
	s.Helper()
	d := &appsv1.Deployment{}
	eventually(s, "there is no Deployment", func(ctx context.Context) error {
		err := s.Get(ctx, s.partKey(part), d)
		if err == nil && d.DeletionTimestamp != nil {
			err = fmt.Errorf("it is being deleted")
		}
		return err
	})
	s.patches(&appsv1.Deployment{ObjectMeta: s.part(part)}, fmt.Sprintf(`{"status":{
		"observedGeneration":%d,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,
		"unavailableReplicas":0,"conditions":[{"type":"Available","status":"True"},
		{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`, d.Generation), "status")
}

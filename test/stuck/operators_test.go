package stuck_test

import (
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operators are what keeps an operator from working.
var operators = map[string]story{
	"no-right-to-watch": {
		alone: true,
		plant: func(s *scene) {
			rules := everything("*")
			rules[0].Resources = rules[0].Resources[1:] // no ConfigMaps
			s.widget()
			s.operator = start(s, user(s, s.namespace, rules), s.namespace, func(o *ctrl.Options) {
				o.Controller.CacheSyncTimeout = 10 * time.Minute // else the operator ends before it has the right
			})
		},
		mend: func(s *scene) {
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Rules: everything("*")}
			if err := s.Update(s.Context(), role); err != nil {
				s.Fatal(err)
			}
		},
	},
	"standby": {
		alone: true,
		plant: func(s *scene) {
			s.made(s.lease())
			s.widget()
			s.operator = start(s, user(s, s.namespace, everything("*")), s.namespace, func(o *ctrl.Options) {
				o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "operator", s.namespace
				o.RetryPeriod = new(200 * time.Millisecond)
			})
		},
		mend: func(s *scene) { s.deletes(s.lease()) },
	},
	"worker-busy": {
		alone: true, first: true,
		plant: func(s *scene) {
			s.operator = start(s, user(s, s.namespace, everything("*")), s.namespace, func(o *ctrl.Options) {
				o.Controller.MaxConcurrentReconciles = 1
			})
			other := &resources.Widget{ObjectMeta: s.meta()}
			other.Name = "other"
			calls, answers := make(chan struct{}, 100), make(chan struct{})
			s.outside.Store(client.ObjectKeyFromObject(other), func() error {
				calls <- struct{}{}
				<-answers
				return nil
			})
			s.outside.Store("answer", func() { close(answers) })
			s.made(other)
			<-calls
			s.widget()
		},
		mend: func(s *scene) {
			answer, _ := s.outside.Load("answer")
			answer.(func())()
		},
	},
	"operator-gone": {
		alone: true,
		plant: func(s *scene) {
			s.operator = start(s, user(s, s.namespace, everything("*")), s.namespace)
			s.widget()
			s.settles()
			s.stop()
			s.deletes(s.resource)
		},
		mend: func(s *scene) { s.operator = start(s, plane.Config(s), s.namespace) },
		goes: true,
	},
	"role-gone": {
		alone: true,
		plant: func(s *scene) {
			s.operator = start(s, user(s, s.namespace, everything("*")), s.namespace)
			s.widget()
			s.settles()
			role := metav1.ObjectMeta{Name: s.namespace}
			s.deletes(&rbacv1.ClusterRole{ObjectMeta: role})
			s.deletes(&rbacv1.ClusterRoleBinding{ObjectMeta: role})
			s.awaitsRights(s.namespace, false)
			s.deletes(s.resource)
		},
		mend: func(s *scene) { user(s, s.namespace, everything("*")) },
		goes: true,
	},
	"not-decoded": {
		alone: true, first: true,
		plant: func(s *scene) {
			s.operator = start(s, user(s, s.namespace, everything("*")), s.namespace)
			s.widget()
			s.settles()
			s.made(s.undecodable())
			s.sets("disk", "fast") // which nobody sees
		},
		mend: func(s *scene) { s.deletes(s.undecodable()) },
	},
	"other-namespace": {
		alone: true,
		plant: func(s *scene) {
			s.widget()
			s.operator = start(s, user(s, s.namespace, everything("*")), s.namespace, func(o *ctrl.Options) {
				o.Cache.DefaultNamespaces = map[string]cache.Config{"default": {}}
			})
			s.hasStarted(s)
		},
		mend: func(s *scene) {
			s.stop()
			s.operator = start(s, plane.Config(s), s.namespace)
		},
	},
}

// undecodable is a Widget that the API server accepts, with a number where the Go type has a text.
func (s *scene) undecodable() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"fields": map[string]any{"port": int64(8080)}},
	}}
	u.SetGroupVersionKind(resources.GroupVersion.WithKind("Widget"))
	u.SetNamespace(s.namespace)
	u.SetName("other")
	u.SetLabels(s.meta().Labels)
	return u
}

// lease is held by another replica.
func (s *scene) lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "operator"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("operator-1_5f2c"), LeaseDurationSeconds: new(int32(3600)),
			AcquireTime: new(metav1.NowMicro()), RenewTime: new(metav1.NowMicro()),
		},
	}
}

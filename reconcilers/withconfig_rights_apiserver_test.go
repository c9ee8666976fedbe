package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// clusterAs returns the cluster of the control plane, as a user sees it.
func clusterAs(t *testing.T, user string) cluster.Cluster {
	t.Helper()
	config := plane.Config(t)
	config.Impersonate.UserName = user
	other, err := cluster.New(config, func(options *cluster.Options) { options.Scheme = resources.NewScheme() })
	if err != nil {
		t.Fatal(err)
	}
	return other
}

var configMapRules = []rbacv1.PolicyRule{{
	APIGroups: []string{""}, Resources: []string{"configmaps"},
	Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
}}

// A node that works as another user who may not list its objects fails with an error that says so. All other nodes, and
// the other resources, are reconciled as ever. Once the user has the right, the node works.
func TestWithConfigOfAUserWhoMayNotList(t *testing.T) {
	for name, nested := range map[string]func() widgetNode{
		"a child":        func() widgetNode { return configMapChild("a") },
		"a tracked type": func() widgetNode { return readsSettings(&corev1.ConfigMap{}) },
		"a read": func() widgetNode {
			return &widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
				key := types.NamespacedName{Namespace: w.Namespace, Name: "settings"}
				read := &corev1.ConfigMap{}
				return client.IgnoreNotFound(reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, key, read))
			}}
		},
		"a list": func() widgetNode {
			return &widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
				return reconcilers.RetrieveConfigOrDie(ctx).List(ctx, &corev1.ConfigMapList{}, client.InNamespace(w.Namespace))
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user := "user-" + plane.Namespace(t)
			other := clusterAs(t, user)
			namespace := plane.Namespace(t)
			var mu sync.Mutex
			var returned error
			op, _ := startOperatorIn(t, namespace, ctrl.Options{}, func(config reconcilers.Config) *widgetRoot {
				foreign := config.WithSyncTimeout(time.Second).WithCluster(other)
				return &widgetRoot{
					Config: config,
					Setup: func(_ context.Context, mgr reconcilers.Manager, _ *reconcilers.Builder) error {
						return mgr.Add(other)
					},
					Reconciler: widgetSequence{
						&widgetSync{Sync: func(_ context.Context, w *resources.Widget) error {
							w.Status.AddField("home", w.Spec.Fields["image"])
							return nil
						}},
						&widgetWithConfig{
							Config:     func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return foreign, nil },
							Reconciler: nested(),
						},
					},
					AfterReconcile: func(_ context.Context, req reconcilers.Request, res reconcilers.Result, err error) (reconcilers.Result, error) {
						// The other cluster has the children of other tests too.
						if req.Namespace == namespace {
							mu.Lock()
							defer mu.Unlock()
							returned = err
						}
						return res, err
					},
				}
			})
			c := live(t)
			w := op.createWidget(t, c)
			last := func() error {
				mu.Lock()
				defer mu.Unlock()
				return returned
			}
			eventually(t, "no error says which right is missing", func(context.Context) error {
				err := last()
				if !apierrs.IsForbidden(err) {
					return fmt.Errorf("returned %w", errors.Join(err))
				}
				for _, part := range []string{"ConfigMap", fmt.Sprintf("user %q", user), `cannot list resource "configmaps"`} {
					if !strings.Contains(err.Error(), part) {
						return fmt.Errorf("%q is not said: %w", part, err)
					}
				}
				return nil
			})
			// No worker waits any more: one that reads from a cache that does not sync may wait for ever.
			for i := range 3 {
				image := fmt.Sprintf("example.com/app:%d", i+2)
				eventually(t, "the widget does not change", func(ctx context.Context) error {
					if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
						return err
					}
					w.Spec.Fields["image"] = image
					return c.Update(ctx, w)
				})
				eventually(t, "the home cluster is not reconciled", func(ctx context.Context) error {
					if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
						return err
					}
					if w.Status.Fields["home"] != image {
						return fmt.Errorf("%v", w.Status.Fields)
					}
					return nil
				})
			}
			grant(t, c, user, "")
			eventually(t, "the node does not recover", func(context.Context) error { return last() })
		})
	}
}

// grant lets a user work on ConfigMaps, in a namespace or in all.
func grant(t *testing.T, c client.Client, user, namespace string) {
	t.Helper()
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	role := metav1.ObjectMeta{Name: user, Namespace: namespace}
	objects := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: role, Rules: configMapRules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: role, Subjects: subjects, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user,
		}},
	}
	if namespace != "" {
		objects = []client.Object{
			&rbacv1.Role{ObjectMeta: role, Rules: configMapRules},
			&rbacv1.RoleBinding{ObjectMeta: role, Subjects: subjects, RoleRef: rbacv1.RoleRef{
				APIGroup: rbacv1.GroupName, Kind: "Role", Name: user,
			}},
		}
	}
	for _, obj := range objects {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Delete(context.Background(), obj); err != nil {
				t.Error(err)
			}
		})
	}
}

// Who has the rights in one namespace only is told to limit the cache to it.
func TestWithConfigOfAUserOfOneNamespace(t *testing.T) {
	t.Parallel()
	namespace := plane.Namespace(t)
	user := "user-" + namespace
	c := live(t)
	grant(t, c, user, namespace)
	other := clusterAs(t, user)
	op, _ := startOperator(t)
	if err := op.Add(other); err != nil {
		t.Fatal(err)
	}
	if !other.GetCache().WaitForCacheSync(t.Context()) {
		t.Fatal("the cache does not start, want it to")
	}
	foreign := reconcilers.NewConfig(op, nil, 0).WithSyncTimeout(time.Second).WithCluster(other)
	for range 2 {
		err := foreign.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "settings"}, &corev1.ConfigMap{})
		if !apierrs.IsForbidden(err) || !strings.Contains(err.Error(), "limit the cache to the namespaces") ||
			!strings.Contains(err.Error(), "at the cluster scope") {
			t.Errorf("the error is %v, want it forbidden at the cluster scope, with the advice to limit the cache", err)
		}
	}
}

package differential_test

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// everything makes calls of all kinds, each of which depends on the answers to those before.
func everything(ctx context.Context, c client.Client) error {
	cm := &corev1.ConfigMap{}
	generated := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: "made-"}}
	deployment := web()
	list := &corev1.ConfigMapList{}
	applied := corev1ac.ConfigMap("applied", "ns").WithData(map[string]string{"a": "b"})
	for _, call := range []func() error{
		func() error { return c.Get(ctx, client.ObjectKeyFromObject(settings()), cm) },
		func() error { return c.Update(ctx, cm) },
		func() error { cm.Data["k"] = "w"; return c.Update(ctx, cm) },
		func() error {
			old := cm.DeepCopy()
			cm.Data["uid"] = string(cm.UID)
			return c.Patch(ctx, cm, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{}))
		},
		func() error { return c.Create(ctx, generated) },
		func() error { return c.Create(ctx, deployment) },
		func() error { deployment.Status.Replicas = 1; return c.Status().Update(ctx, deployment) },
		func() error { return c.Apply(ctx, applied, client.FieldOwner("me")) },
		func() error { return c.List(ctx, list, client.InNamespace("ns")) },
		func() error {
			only := client.Preconditions{UID: &generated.UID, ResourceVersion: &generated.ResourceVersion}
			return c.Delete(ctx, generated, only)
		},
		func() error {
			return client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(generated), generated))
		},
		func() error { return c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("ns")) },
	} {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}

func TestWhatIsAlikeIsNoDifference(t *testing.T) {
	t.Parallel()
	c, server := compared(t, interceptor.Funcs{})
	if err := everything(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if first, ok := server.First(); ok {
		t.Errorf("differs: %s", first)
	}
}

func TestPagesAreCompared(t *testing.T) {
	t.Parallel()
	// twice makes memory answer with the first page again.
	twice := interceptor.Funcs{List: func(
		ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption,
	) error {
		return c.List(ctx, list, append(opts, client.Continue(""))...)
	}}
	for name, test := range map[string]struct {
		wrong interceptor.Funcs
		want  string
	}{
		"alike":           {},
		"a page too much": {wrong: twice, want: "list ConfigMap ns: the server lists [ns/c ns/d], memory [ns/a ns/b]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, server := compared(t, test.wrong)
			for _, name := range []string{"a", "b", "c", "d"} {
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
				if err := c.Create(t.Context(), cm); err != nil {
					t.Fatal(err)
				}
			}
			list := &corev1.ConfigMapList{}
			for range 3 {
				next := client.Continue(list.Continue)
				if err := c.List(t.Context(), list, client.InNamespace("ns"), client.Limit(2), next); err != nil {
					t.Fatal(err)
				}
			}
			first, _ := server.First()
			if got := first.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestATokenThatIsNoneIsRefusedByBoth(t *testing.T) {
	t.Parallel()
	c, server := compared(t, interceptor.Funcs{})
	err := c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("ns"), client.Continue("none"))
	if first, ok := server.First(); !apierrors.IsBadRequest(err) || ok {
		t.Errorf("got %v; differs: %s", err, first)
	}
}

func TestTheFirstDifferenceIsNamed(t *testing.T) {
	t.Parallel()
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "settings", nil)
	for name, test := range map[string]struct {
		wrong interceptor.Funcs
		want  string
	}{
		"a default": {
			wrong: interceptor.Funcs{Create: func(
				ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption,
			) error {
				err := c.Create(ctx, obj, opts...)
				if d, ok := obj.(*appsv1.Deployment); ok {
					d.Spec.Strategy = appsv1.DeploymentStrategy{}
				}
				return err
			}},
			want: "create Deployment ns/web: the server sets spec.strategy.rollingUpdate, spec.strategy.type, memory does not",
		},
		"a value": {
			wrong: interceptor.Funcs{Get: func(
				ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
			) error {
				err := c.Get(ctx, key, obj, opts...)
				if err == nil {
					obj.(*corev1.ConfigMap).Data["k"] = "x"
				}
				return err
			}},
			want: `get ConfigMap ns/settings: the server has data.k "v", memory "x"`,
		},
		"a long value": {
			wrong: interceptor.Funcs{Get: func(
				ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
			) error {
				err := c.Get(ctx, key, obj, opts...)
				if err == nil {
					obj.(*corev1.ConfigMap).Data["k"] = strings.Repeat("é", 100)
				}
				return err
			}},
			want: `get ConfigMap ns/settings: the server has data.k "v", memory "` + strings.Repeat("é", 79) + "…",
		},
		"a refusal": {
			wrong: interceptor.Funcs{Update: func(
				context.Context, client.WithWatch, client.Object, ...client.UpdateOption,
			) error {
				return conflict
			}},
			want: "update ConfigMap ns/settings: memory refuses it (Conflict), the server does not",
		},
		"an acceptance": {
			wrong: interceptor.Funcs{Get: func(
				ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
			) error {
				return client.IgnoreNotFound(c.Get(ctx, key, obj, opts...))
			}},
			want: "get ConfigMap ns/made-001: the server refuses it (NotFound), memory does not",
		},
		"a write without a change": {
			wrong: interceptor.Funcs{Update: func(
				ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption,
			) error {
				touched := obj.DeepCopyObject().(client.Object)
				touched.SetLabels(map[string]string{"touched": "yes"})
				if err := c.Update(ctx, touched); err != nil {
					return err
				}
				obj.SetResourceVersion(touched.GetResourceVersion())
				return c.Update(ctx, obj, opts...)
			}},
			want: "update ConfigMap ns/settings: memory writes it, the server finds no change",
		},
		"a list": {
			wrong: interceptor.Funcs{List: func(
				ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption,
			) error {
				return c.List(ctx, list, append(opts, client.MatchingLabels{"no": "such"})...)
			}},
			want: "list ConfigMap ns: the server lists [ns/applied ns/made-001 ns/settings], memory []",
		},
		"another error": {
			wrong: interceptor.Funcs{Patch: func(
				context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption,
			) error {
				return conflict
			}},
			want: "patch ConfigMap ns/settings: memory refuses it (Conflict), the server does not",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, server := compared(t, test.wrong)
			// The wrong answers may end the calls early.
			_ = everything(t.Context(), c)
			first, ok := server.First()
			if !ok || !strings.HasPrefix(first.String(), test.want) {
				t.Errorf("got %q, want %q", first, test.want)
			}
		})
	}
}

// What subresources answer is alike, and so are UIDs that an API server writes into other fields.
func TestSubresourcesAreAlike(t *testing.T) {
	t.Parallel()
	containers := []corev1.Container{{Name: "main", Image: "main:1"}}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }
	deployment, job, account := web(), &batchv1.Job{ObjectMeta: meta("job")}, &corev1.ServiceAccount{ObjectMeta: meta("a")}
	job.Spec.Template.Spec = corev1.PodSpec{Containers: containers, RestartPolicy: corev1.RestartPolicyNever}
	service := &corev1.Service{ObjectMeta: meta("service"), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}},
	}}
	pod := &corev1.Pod{ObjectMeta: meta("pod"), Spec: corev1.PodSpec{Containers: containers}}
	for name, test := range map[string]struct {
		given client.Object
		call  func(ctx context.Context, c client.Client) error
	}{
		"scale": {given: deployment, call: func(ctx context.Context, c client.Client) error {
			scale := &autoscalingv1.Scale{}
			if err := c.SubResource("scale").Get(ctx, deployment, scale); err != nil {
				return err
			}
			scale.Spec.Replicas = 2
			return c.SubResource("scale").Update(ctx, deployment, client.WithSubResourceBody(scale))
		}},
		"UID of a Job in its labels": {call: func(ctx context.Context, c client.Client) error {
			if err := c.Create(ctx, job); err != nil {
				return err
			}
			if label := job.Spec.Template.Labels[batchv1.ControllerUidLabel]; label != string(job.UID) {
				t.Errorf("the label is %q, the UID %q", label, job.UID)
			}
			return c.Get(ctx, client.ObjectKeyFromObject(job), job)
		}},
		"ingress of a Service": {given: service, call: func(ctx context.Context, c client.Client) error {
			s := &corev1.Service{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(service), s); err != nil {
				return err
			}
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.1.2.3"}, {Hostname: "a.example.com"}}
			return c.Status().Update(ctx, s)
		}},
		"token": {given: account, call: func(ctx context.Context, c client.Client) error {
			return c.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
		}},
		"eviction": {given: pod, call: func(ctx context.Context, c client.Client) error {
			eviction := &policyv1.Eviction{}
			err := c.SubResource("eviction").Create(ctx, pod, eviction)
			if eviction.Name != pod.Name || eviction.Namespace != "" {
				t.Errorf("the eviction is that of %s", client.ObjectKeyFromObject(eviction))
			}
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var given []client.Object
			if test.given != nil {
				given = append(given, test.given)
			}
			c, server := compared(t, interceptor.Funcs{}, given...)
			if err := test.call(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if first, ok := server.First(); ok {
				t.Errorf("differs: %s", first)
			}
		})
	}
}

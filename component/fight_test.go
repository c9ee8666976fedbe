package component_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fight is a component and another client that reacts at once to each of its writes, in a cluster in memory and in virtual time.
type fight struct {
	*testing.T
	now  time.Time
	root *reconcilers.ResourceReconciler[*resources.Assembly]
	// keys are the components. They have one node.
	keys []types.NamespacedName
	// raw is the client of the other one.
	raw client.Client
	// rival reacts to a write; nil once it has stopped. At the end of each interval it acts, too.
	rival    func(ctx context.Context, c client.Client) error
	interval time.Duration
	acted    time.Time
	// mutate changes what is written, as admission does.
	mutate func(object client.Object)
	// writes are the times of the writes since the other one began, what says which they were.
	writes []time.Time
	what   []string
	began  bool
	// pending: there is an event that wakes the components.
	pending bool
	changed bool
}

// contender is the client of the components.
type contender struct {
	client.Client
	fight *fight
}

// wrote counts a write, and lets the other client react.
func (c *contender) wrote(ctx context.Context, verb string, object client.Object, err error) error {
	f := c.fight
	if err != nil || !f.began {
		return err
	}
	f.writes = append(f.writes, f.now)
	f.what = append(f.what, fmt.Sprintf("%s %s %s", f.now.Sub(rtesting.RolledOutAt).Round(time.Millisecond), verb, object.GetName()))
	if _, own := object.(*resources.Assembly); !own {
		f.react(ctx)
	}
	return nil
}

func (f *fight) react(ctx context.Context) {
	if f.rival == nil {
		return
	}
	f.pending, f.acted = true, f.now
	if err := f.rival(ctx, f.raw); client.IgnoreNotFound(err) != nil && !apierrs.IsConflict(err) {
		f.Errorf("the write of the rival ends with %v, want it done, or a conflict", err)
	}
}

func (c *contender) admit(object client.Object) {
	if c.fight.mutate != nil && c.fight.began {
		c.fight.mutate(object)
	}
}

func (c *contender) Create(ctx context.Context, object client.Object, opts ...client.CreateOption) error {
	c.admit(object)
	return c.wrote(ctx, "create", object, c.Client.Create(ctx, object, opts...))
}

func (c *contender) Update(ctx context.Context, object client.Object, opts ...client.UpdateOption) error {
	c.admit(object)
	return c.wrote(ctx, "update", object, c.Client.Update(ctx, object, opts...))
}

func (c *contender) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.wrote(ctx, "patch", object, c.Client.Patch(ctx, object, patch, opts...))
}

func (c *contender) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	return c.wrote(ctx, "delete", object, c.Client.Delete(ctx, object, opts...))
}

func (c *contender) Apply(ctx context.Context, configuration runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	object := configuration.(interface{ GetName() string }) // all that the engine applies is unstructured
	named := &unstructured.Unstructured{}
	if u, ok := configuration.(client.Object); ok {
		c.admit(u)
	}
	named.SetName(object.GetName())
	return c.wrote(ctx, "apply", named, c.Client.Apply(ctx, configuration, opts...))
}

func (c *contender) Status() client.SubResourceWriter {
	return &contenderStatus{c.Client.Status(), c}
}

type contenderStatus struct {
	client.SubResourceWriter
	contender *contender
}

func (s *contenderStatus) Update(ctx context.Context, object client.Object, opts ...client.SubResourceUpdateOption) error {
	return s.contender.wrote(ctx, "status", object, s.SubResourceWriter.Update(ctx, object, opts...))
}

func newFight(t *testing.T, assemblies ...*resources.Assembly) *fight {
	f := &fight{T: t, now: rtesting.RolledOutAt}
	given := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}
	for _, a := range assemblies {
		a.UID = types.UID(a.Name + "-uid")
		given = append(given, a)
		f.keys = append(f.keys, client.ObjectKeyFromObject(a))
	}
	expect := &rtesting.ExpectConfig{
		Scheme: assemblyScheme, GivenObjects: given, UseFake: true,
	}
	config := expect.Config()
	f.raw = client.WithFieldOwner(config.Client, "rival")
	config.Client = &contender{config.Client, f}
	config.APIReader = config.Client
	f.root = component.NewComponentRoot(componentPrefix, resources.AssemblyGenerator(), assemblyOptions{Config: config, Parallel: 1})
	return f
}

// until reconciles until a time: at once after an event, and else when the components ask for it.
func (f *fight) until(end time.Time) {
	f.Helper()
	ctx := f.Context()
	due := make([]time.Time, len(f.keys))
	for f.now.Before(end) && len(f.writes) < 500 {
		next := end
		f.pending = false
		for i, key := range f.keys {
			if f.changed || !f.now.Before(due[i]) {
				result, err := f.root.Reconcile(rtime.StashNow(ctx, f.now), reconcilers.Request{NamespacedName: key})
				after := result.RequeueAfter
				if err != nil {
					f.Logf("%s %s: %v", f.now, key, err)
					after = time.Second
				}
				if after == 0 {
					after = time.Hour
				}
				due[i] = f.now.Add(after)
			}
			next = earlier(next, due[i])
		}
		f.changed = f.pending
		if f.interval > 0 && f.began && f.rival != nil {
			if at := f.acted.Add(f.interval); at.After(f.now) {
				next = earlier(next, at)
			} else {
				f.react(ctx)
				f.changed = true
			}
		}
		if f.changed {
			next = f.now.Add(5 * time.Millisecond)
		}
		f.now = next
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// complete makes Deployments ready, as their controller would.
func (f *fight) complete() {
	f.Helper()
	all := &appsv1.DeploymentList{}
	if err := f.raw.List(f.Context(), all); err != nil {
		f.Fatal(err)
	}
	for i := range all.Items {
		d := &all.Items[i]
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
		d.Status.Conditions = []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		}
		if err := f.raw.Status().Update(f.Context(), d); err != nil {
			f.Fatal(err)
		}
	}
}

// condition returns the condition of the first component.
func (f *fight) condition() metav1.Condition {
	f.Helper()
	a := &resources.Assembly{}
	if err := f.raw.Get(f.Context(), f.keys[0], a); err != nil {
		f.Fatal(err)
	}
	if condition := a.Status.GetCondition(apis.ConditionReady); condition != nil {
		return *condition
	}
	return metav1.Condition{}
}

// begin lets the other one begin, and returns when.
func (f *fight) begin(rival func(ctx context.Context, c client.Client) error) time.Time {
	f.began, f.rival, f.changed = true, rival, true
	f.react(f.Context())
	return f.now
}

// law checks that there are at most 10 writes in the first minute, and then at most one a minute.
func (f *fight) law(start time.Time) {
	f.Helper()
	first := 0
	for _, at := range f.writes {
		if at.Sub(start) < time.Minute {
			first++
		}
	}
	minutes := int(f.now.Sub(start)/time.Minute) - 1
	rest := len(f.writes) - first
	f.Logf("%d writes in the first minute, %d in the next %d: %s", first, rest, minutes, f.condition().Message)
	if first > 10 || rest > minutes {
		f.Errorf("there are %d writes in the first minute and %d in the next %d, want at most 10 and %[3]d:\n%[4]s",
			first, rest, minutes, strings.Join(f.what[:min(len(f.what), 60)], "\n"))
	}
}

type rivalry struct {
	objects []client.Object
	// also are other components.
	also  []*resources.Assembly
	rival func(ctx context.Context, c client.Client) error
	// interval is how often the other one acts by itself.
	interval time.Duration
	mutate   func(object client.Object)
	// contested is part of what the condition says; empty if there is no fight.
	contested string
}

// edit returns a rival that updates an object by get and update.
func edit(object client.Object, change func(u *unstructured.Unstructured)) func(ctx context.Context, c client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
			return err
		}
		change(live)
		return c.Update(ctx, live)
	}
}

// patched returns a rival that sends a patch.
func patched(object client.Object, of types.PatchType, patch string) func(ctx context.Context, c client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
		live.SetNamespace(object.GetNamespace())
		live.SetName(object.GetName())
		return c.Patch(ctx, live, client.RawPatch(of, []byte(patch)))
	}
}

func setting(value any, path ...string) func(u *unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

func rivalries() map[string]rivalry {
	part := partOf("default", "part", "0")
	digest := componentPrefix + "/" + generator.AnnotationDigest
	label := componentPrefix + "/" + generator.LabelOwnerID
	server := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "server"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "server"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "server"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
			},
		},
	}
	hook := func(annotations map[string]string, bundle string) *admissionv1.ValidatingWebhookConfiguration {
		none := admissionv1.SideEffectClassNone
		return &admissionv1.ValidatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
			ObjectMeta: metav1.ObjectMeta{Name: "hook", Annotations: annotations},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "a.example.com", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
				ClientConfig: admissionv1.WebhookClientConfig{URL: new("https://x"), CABundle: []byte(bundle)},
			}},
		}
	}
	inject := func(object client.Object) func(ctx context.Context, c client.Client) error {
		return edit(object, func(u *unstructured.Unstructured) {
			u.Object["webhooks"].([]any)[0].(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = "aW5qZWN0ZWQ="
		})
	}
	placeholder, asked, bundled := hook(nil, "\n"), hook(map[string]string{"cert-manager.io/inject-ca-from": "a/b"}, "real"), hook(nil, "real")
	aggregated := &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: "all"},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}}},
		Rules:           []rbacv1.PolicyRule{},
	}
	secret := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "secret"},
		Data: map[string][]byte{"password": []byte("hidden")},
	}
	toggled := 0
	always := partOf("default", "part", "0")
	always.Annotations[generator.SharedPrefix+"/"+generator.AnnotationAdoptionPolicy] = "always"
	orphan := partOf("default", "part", "0")
	orphan.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "dead"}})
	remove := func(ctx context.Context, c client.Client) error { return c.Delete(ctx, part.DeepCopy()) }

	return map[string]rivalry{
		"updates a field": {
			objects: []client.Object{part}, rival: edit(part, setting("theirs", "data", "name")),
			contested: `Contested: ConfigMap default/part: the field manager "rival" keeps changing .data.name (ignore-fields: /data/name, or reconcile-policy: once would allow that)`,
		},
		"applies a field by force": {
			objects: []client.Object{part},
			rival: func(ctx context.Context, c client.Client) error {
				u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"name": "theirs"}}}
				u.SetNamespace("default")
				u.SetName("part")
				return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership)
			},
			contested: `the field manager "rival" keeps changing .data.name`,
		},
		"removes a field": {
			objects: []client.Object{part}, rival: patched(part, types.JSONPatchType, `[{"op":"remove","path":"/data/name"}]`),
			contested: "another client or a webhook keeps changing .data.name",
		},
		"removes our label": {
			objects: []client.Object{part}, rival: edit(part, func(u *unstructured.Unstructured) { u.SetLabels(nil) }),
			contested: "keeps removing its owner label",
		},
		"removes our annotations": {
			objects: []client.Object{part}, rival: edit(part, func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }),
			contested: "keeps changing .metadata.annotations",
		},
		"changes our digest": {
			objects: []client.Object{part}, rival: edit(part, func(u *unstructured.Unstructured) {
				toggled++
				u.SetAnnotations(map[string]string{digest: fmt.Sprint(toggled)})
			}),
			contested: `the field manager "rival" keeps changing`,
		},
		"adds finalizers": {
			objects: []client.Object{part}, rival: edit(part, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"rival.example.com/x"}) }),
		},
		"adds labels": {
			objects: []client.Object{part}, rival: patched(part, types.MergePatchType, `{"metadata":{"labels":{"theirs":"x"}}}`),
		},
		"adds an owner": {
			objects: []client.Object{part}, rival: edit(part, func(u *unstructured.Unstructured) {
				u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}})
			}),
		},
		"deletes": {
			objects: []client.Object{part}, rival: remove, contested: "ConfigMap default/part: another client keeps deleting it",
		},
		"is the garbage collector": {
			objects: []client.Object{orphan}, rival: remove,
			contested: "ConfigMap default/part: it keeps being deleted, by the garbage collector if an owner that " +
				"its manifest names does not exist: ownerReferences[0] (Pod web, UID dead)",
		},
		"replaces the object": {
			objects: []client.Object{part}, rival: edit(part, func(u *unstructured.Unstructured) {
				u.SetLabels(nil)
				u.SetAnnotations(nil)
				setting(map[string]any{"theirs": "x"}, "data")(u)
			}),
			contested: "keeps removing its owner label",
		},
		"creates another one": {
			objects: []client.Object{always}, rival: func(ctx context.Context, c client.Client) error {
				return errors.Join(client.IgnoreNotFound(remove(ctx, c)), c.Create(ctx, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "part"}, Data: map[string]string{"theirs": "x"},
				}))
			},
			contested: "another client keeps replacing it by another object",
		},
		"scales": {
			objects: []client.Object{server}, rival: edit(server, setting(int64(5), "spec", "replicas")),
			contested: `the field manager "rival" keeps changing .spec.replicas (ignore-fields: /spec/replicas,`,
		},
		"changes a default": {
			objects: []client.Object{server},
			rival:   edit(server, setting("Default", "spec", "template", "spec", "dnsPolicy")),
		},
		"writes the status": {
			objects: []client.Object{server}, rival: func(ctx context.Context, c client.Client) error {
				toggled++
				return c.Status().Patch(ctx, server.DeepCopy(), client.RawPatch(types.MergePatchType,
					[]byte(fmt.Sprintf(`{"status":{"collisionCount":%d}}`, toggled))))
			},
			interval: 500 * time.Millisecond,
		},
		"injects a bundle for a placeholder":  {objects: []client.Object{placeholder}, rival: inject(placeholder)},
		"injects a bundle that was asked for": {objects: []client.Object{asked}, rival: inject(asked)},
		"injects a bundle instead of a real one": {
			objects: []client.Object{bundled}, rival: inject(bundled),
			contested: `the field manager "rival" keeps changing .webhooks[name="a.example.com"].clientConfig.caBundle (ignore-fields: /webhooks/0/clientConfig/caBundle,`,
		},
		"aggregates rules": {
			objects: []client.Object{aggregated}, rival: func(ctx context.Context, c client.Client) error {
				u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}}
				u.SetName("all")
				u.Object["rules"] = []any{map[string]any{"verbs": []any{"get"}, "apiGroups": []any{""}, "resources": []any{"pods"}}}
				return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership)
			},
		},
		"writes a Secret": {
			objects: []client.Object{secret}, rival: edit(secret, setting("dGhlaXJz", "data", "password")),
			contested: `the field manager "rival" keeps changing .data.password (ignore-fields: /data/password,`,
		},
		"is admission that rewrites a field": {
			objects: []client.Object{part}, rival: edit(part, setting("theirs", "data", "name")),
			mutate: func(object client.Object) {
				if u, ok := object.(*unstructured.Unstructured); ok {
					setting("rewritten", "data", "name")(u)
				}
			},
			contested: "keeps changing .data.name",
		},
		"is admission that removes an annotation": {
			objects: []client.Object{part}, rival: edit(part, setting("theirs", "data", "name")),
			mutate: func(object client.Object) {
				if u, ok := object.(*unstructured.Unstructured); ok {
					unstructured.RemoveNestedField(u.Object, "metadata", "annotations", digest)
				}
			},
			contested: "keeps changing",
		},
		"is admission that removes our label": {
			objects: []client.Object{part}, rival: edit(part, setting("theirs", "data", "name")),
			mutate: func(object client.Object) {
				if u, ok := object.(*unstructured.Unstructured); ok {
					unstructured.RemoveNestedField(u.Object, "metadata", "labels", label)
				}
			},
			contested: "keeps",
		},
		"is another component": {
			objects: []client.Object{always}, also: []*resources.Assembly{resources.NewAssembly("default", "other", always)},
			rival: func(context.Context, client.Client) error { return nil },
		},
		"acts every half minute": {
			objects: []client.Object{part}, rival: edit(part, setting("theirs", "data", "name")), interval: 30 * time.Second,
			contested: "keeps changing .data.name",
		},
		"acts all the time": {
			objects: []client.Object{part}, interval: 500 * time.Millisecond,
			rival: edit(part, func(u *unstructured.Unstructured) {
				toggled++
				setting(fmt.Sprint(toggled), "data", "name")(u)
			}),
			contested: "keeps changing .data.name",
		},
	}
}

// No other client makes a component write more than 10 times in the first minute, and once a minute then. The condition says
// who keeps changing what, and the component is ready again when that ends.
func TestFightsAreDamped(t *testing.T) {
	t.Parallel()
	for name := range rivalries() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test := rivalries()[name]
			f := newFight(t, append([]*resources.Assembly{resources.NewAssembly("default", "all", test.objects...)}, test.also...)...)
			f.until(f.now.Add(time.Second))
			f.complete()
			f.until(f.now.Add(20 * time.Second))
			if c := f.condition(); c.Reason != component.ReasonReady && len(test.also) == 0 {
				t.Fatalf("the reason is %s, want %s: %s", c.Reason, component.ReasonReady, c.Message)
			}
			f.interval, f.mutate = test.interval, test.mutate
			start := f.begin(test.rival)
			f.until(start.Add(10 * time.Minute))
			f.law(start)
			want := component.ReasonReady
			if test.contested != "" {
				want = component.ReasonContested
			}
			condition := f.condition()
			if condition.Reason != want || !strings.Contains(condition.Message, test.contested) {
				t.Errorf("the condition is %s: %s, want %s and %q", condition.Reason, condition.Message, want,
					test.contested)
			}
			if strings.Contains(condition.Message, "hidden") || strings.Contains(condition.Message, "theirs") {
				t.Errorf("the condition has a value, want none: %s", condition.Message)
			}

			f.rival, f.mutate = nil, nil
			f.until(f.now.Add(8 * time.Minute))
			if c := f.condition(); c.Reason != component.ReasonReady {
				t.Errorf("the condition is %s: %s, want %s again", c.Reason, c.Message, component.ReasonReady)
			}
		})
	}
}

// The condition does not change with each correction: it is written once when the fight is noticed.
func TestFightsHaveOneCondition(t *testing.T) {
	t.Parallel()
	part := partOf("default", "part", "0")
	f := newFight(t, resources.NewAssembly("default", "all", part))
	f.until(f.now.Add(time.Second))
	start := f.begin(edit(part, setting("theirs", "data", "name")))
	f.until(start.Add(time.Second))
	seen := f.condition()
	version := func() string {
		a := &resources.Assembly{}
		if err := f.raw.Get(t.Context(), f.keys[0], a); err != nil {
			t.Fatal(err)
		}
		return a.ResourceVersion
	}
	before, writes := version(), len(f.writes)
	f.until(start.Add(10 * time.Minute))
	if f.condition() != seen || version() != before {
		t.Errorf("the condition is %v and the version %v, want %v and %v: the status was written again:\n%s",
			f.condition(), version(), seen, before, strings.Join(f.what, "\n"))
	}
	if len(f.writes) == writes {
		t.Error("there are no more writes, want the object corrected")
	}
	if slices.ContainsFunc(f.what[writes:], func(what string) bool { return !strings.Contains(what, "apply part") }) {
		t.Errorf("there are other writes, want only those of part:\n%s", strings.Join(f.what, "\n"))
	}
}

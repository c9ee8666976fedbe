package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Fields that leave what is desired go, also if the controller wrote them as another field manager.
func TestApplyingObjectManagerGivesFieldsUp(t *testing.T) {
	t.Parallel()
	s := newClusterSite(t)
	m := &configMapManager{FieldManager: "widgets"}
	restart := func() { m = &configMapManager{FieldManager: "widgets"} }
	desired := func(keys ...string) *corev1.ConfigMap {
		data := map[string]string{}
		for _, key := range keys {
			data[key] = "1"
		}
		return s.configMap(data)
	}
	expect := func(what string, c *corev1.ConfigMap, keys ...string) {
		t.Helper()
		if diff := cmp.Diff(desired(keys...).Data, c.Data); diff != "" {
			t.Errorf("%s: data differs (-expected, +actual):\n%s", what, diff)
		}
	}
	c := manage(s, "create", m, nil, desired("a", "b"), "create", "Created")
	s.apply("other", map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings"}, "data": map[string]any{"theirs": "1"},
	})
	c = manage(s, "without what it was created with", m, fresh(s, c), desired("a"), "patch", "patch", "Updated")
	expect("without what it was created with", c, "a", "theirs")
	c = manage(s, "more", m, c, desired("a", "c", "d"), "patch", "Updated")
	c = manage(s, "without what was applied", m, c, desired("a", "c"), "patch", "Updated")
	expect("without what was applied", c, "a", "c", "theirs")
	restart()
	c = manage(s, "without what was applied before a restart", m, fresh(s, c), desired("a"), "patch", "Updated")
	expect("without what was applied before a restart", c, "a", "theirs")

	s.must(s.Delete(t.Context(), c))
	c = manage(s, "create again", m, nil, desired("a", "b"), "create", "Created")
	restart()
	c = manage(s, "without what it was created with before a restart", m, fresh(s, c), desired("b"), "patch", "patch", "Updated")
	expect("without what it was created with before a restart", c, "b")
}

// A cache may be told to keep managed fields to itself.
func TestApplyingObjectManagerDoesWithoutManagedFields(t *testing.T) {
	t.Parallel()
	s := newClusterSite(t)
	stripped := func(d *appsv1.Deployment) *appsv1.Deployment {
		d = fresh(s, d)
		d.ManagedFields = nil
		return d
	}
	labelled := func(d *appsv1.Deployment) { d.Labels["given"] = "up" }
	m := &deploymentManager{FieldManager: "widgets"}
	d := manage(s, "create", m, nil, s.webDeployment(labelled), "create", "Created")
	d = manage(s, "read", m, stripped(d), s.webDeployment(labelled))
	d = manage(s, "after a write of the status", m, stripped(s.reportStatus(d)), s.webDeployment(labelled))
	// Only the answer shows that the creation has to be taken over.
	d = manage(s, "changed", m, stripped(d), s.webDeployment(image("2")), "patch", "patch", "patch", "Updated")
	if _, ok := d.Labels["given"]; ok {
		t.Error("the label that was given up is still there, want it gone")
	}
	d = manage(s, "the change as it is read", m, stripped(d), s.webDeployment(image("2")))
	d = manage(s, "the change after a write of the status", m, stripped(s.reportStatus(d)), s.webDeployment(image("2")))
	m = &deploymentManager{FieldManager: "widgets"}
	d = manage(s, "after a restart", m, stripped(d), s.webDeployment(image("2")), "patch")
	manage(s, "after a restart and a write of the status", m, stripped(s.reportStatus(d)), s.webDeployment(image("2")))
}

// replicas is what a horizontal autoscaler, or a person, applies.
func (s *clusterSite) replicas(by string, count int64, options ...client.ApplyOption) {
	s.t.Helper()
	spec := map[string]any{}
	if count >= 0 {
		spec["replicas"] = count
	}
	s.apply(by, map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}, "spec": spec,
	}, options...)
}

func scaled(count int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = &count }
}

func TestApplyingObjectManagerAndFieldsOfOthers(t *testing.T) {
	t.Parallel()
	expect := func(t *testing.T, what string, d *appsv1.Deployment, replicas int32, tag string) {
		t.Helper()
		got, want := fmt.Sprint(*d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Image), fmt.Sprint(replicas, "example.com/web:"+tag)
		if got != want {
			t.Errorf("%s: replicas and image are %s, want %s", what, got, want)
		}
	}
	// start creates a Deployment whose replicas a user then sets to 5.
	start := func(t *testing.T, policy reconcilers.ConflictPolicy) (*clusterSite, *deploymentManager, *appsv1.Deployment) {
		s := newClusterSite(t)
		m := &deploymentManager{FieldManager: "widgets", Conflicts: policy}
		d := manage(s, "create", m, nil, s.webDeployment(scaled(2)), "create", "Created")
		s.replicas("autoscaler", 5, client.ForceOwnership)
		return s, m, fresh(s, d)
	}
	t.Run("force", func(t *testing.T) {
		s, m, d := start(t, "")
		d = manage(s, "drift", m, d, s.webDeployment(scaled(2)), "patch", "patch", "Updated")
		expect(t, "drift", d, 2, "1")
		d = manage(s, "steady", m, fresh(s, d), s.webDeployment(scaled(2)))
		s.replicas("autoscaler", 6, client.ForceOwnership)
		d = manage(s, "drift again", m, fresh(s, d), s.webDeployment(scaled(2)), "patch", "Updated")
		expect(t, "drift again", d, 2, "1")
	})
	t.Run("fail", func(t *testing.T) {
		s, m, d := start(t, reconcilers.FailOnConflicts)
		_, err := tryManage(s, "drift", m, d, s.webDeployment(scaled(2), image("2")), "patch", "patch", "UpdateFailed")
		var conflict *reconcilers.ApplyConflictError
		want := "fields of Deployment " + s.namespace + `/web are managed by others: .spec.replicas by "autoscaler"`
		if !errors.As(err, &conflict) || err.Error() != want || !apierrs.IsConflict(err) {
			t.Errorf("returned %v, want %s", err, want)
		}
		expect(t, "drift", fresh(s, d), 5, "1")
		d = manage(s, "the same value", m, fresh(s, d), s.webDeployment(scaled(5), image("2")), "patch", "Updated")
		manage(s, "steady", m, fresh(s, d), s.webDeployment(scaled(5), image("2")))
	})
	t.Run("leave", func(t *testing.T) {
		s, m, d := start(t, reconcilers.LeaveConflicts)
		desired := func(tag string) *appsv1.Deployment { return s.webDeployment(scaled(2), image(tag)) }
		d = manage(s, "drift", m, d, desired("1"))
		d = manage(s, "change", m, d, desired("2"), "patch", "patch", "patch", "Updated")
		expect(t, "change", d, 5, "2")
		d = manage(s, "steady", m, fresh(s, d), desired("2"))
		s.replicas("autoscaler", 6)
		d = manage(s, "theirs changes", m, fresh(s, d), desired("2"))
		m = &deploymentManager{FieldManager: "widgets", Conflicts: reconcilers.LeaveConflicts}
		d = manage(s, "after a restart", m, fresh(s, d), desired("2"))
		d = manage(s, "after a restart, again", m, s.reportStatus(d), desired("2"))
		s.replicas("autoscaler", -1)
		d = manage(s, "given up by them", m, fresh(s, d), desired("2"), "patch", "Updated")
		expect(t, "given up by them", d, 2, "2")
	})
}

func TestApplyingObjectManagerTakesOver(t *testing.T) {
	t.Parallel()
	s := newClusterSite(t)
	// written is what an earlier version of the controller leaves behind that creates and updates.
	written := func() *appsv1.Deployment {
		t.Helper()
		d := s.webDeployment(func(d *appsv1.Deployment) { d.Labels["from"] = "create" })
		s.must(s.Create(t.Context(), d, client.FieldOwner("operator")))
		d.Spec.Template.Labels["from"] = "update"
		d.Annotations = map[string]string{"from": "update"}
		s.must(s.Update(t.Context(), d, client.FieldOwner("operator-2")))
		d.Labels["theirs"] = "kept"
		s.must(s.Update(t.Context(), d, client.FieldOwner("other")))
		return d
	}
	for name, test := range map[string]struct {
		from     []string
		requests []string
		labels   string
	}{
		"nothing": {
			// Only the owners of the fields change. What stays is told from defaults by a dry run.
			requests: []string{"patch", "patch", "FieldsStay"},
			labels:   "map[app:web from:create theirs:kept] map[app:web from:update] map[from:update]",
		},
		"both": {
			from:     []string{"operator-2", "operator", "never seen"},
			requests: []string{"patch", "patch", "Updated"},
			labels:   "map[app:web theirs:kept] map[app:web] map[]",
		},
		"one only": {
			from:     []string{"operator"},
			requests: []string{"patch", "patch", "Updated"},
			labels:   "map[app:web theirs:kept] map[app:web from:update] map[from:update]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			m := &deploymentManager{FieldManager: "widgets", TakeOverFrom: test.from}
			d := manage(s, "take over", m, written(), s.webDeployment(), test.requests...)
			if got := fmt.Sprintf("%v %v %v", d.Labels, d.Spec.Template.Labels, d.Annotations); got != test.labels {
				t.Errorf("labels are %s, want %s", got, test.labels)
			}
			if d.Spec.RevisionHistoryLimit == nil || d.Spec.Strategy.RollingUpdate == nil {
				t.Errorf("defaults are gone, want them kept: %v", d.Spec)
			}
			d = manage(s, "steady", m, fresh(s, d), s.webDeployment())
			s.must(s.Delete(context.Background(), d))
		})
	}
}

// What others put into a list that merges stays.
func TestApplyingObjectManagerMergesLists(t *testing.T) {
	t.Parallel()
	s := newClusterSite(t)
	m := &deploymentManager{FieldManager: "widgets"}
	d := manage(s, "create", m, nil, s.webDeployment(), "create", "Created")
	s.apply("injector", map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "a-sidecar", "image": "example.com/sidecar:1"},
			map[string]any{"name": "web", "env": []any{map[string]any{"name": "INJECTED", "value": "1"}}},
		}}}},
	})
	d = manage(s, "injected", m, fresh(s, d), s.webDeployment())
	fewer := func(d *appsv1.Deployment) {
		web := &d.Spec.Template.Spec.Containers[0]
		web.Ports = []corev1.ContainerPort{{ContainerPort: 8081, Protocol: corev1.ProtocolUDP}, {ContainerPort: 8082}}
		web.Env = nil
	}
	d = manage(s, "other items", m, d, s.webDeployment(fewer), "patch", "patch", "Updated")
	var got []string
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, env := range c.Env {
			got = append(got, c.Name+" env "+env.Name)
		}
		for _, port := range c.Ports {
			got = append(got, fmt.Sprintf("%s port %d/%s", c.Name, port.ContainerPort, port.Protocol))
		}
	}
	if diff := cmp.Diff([]string{"web env INJECTED", "web port 8081/UDP", "web port 8082/TCP"}, got); diff != "" {
		t.Errorf("items differ (-expected, +actual):\n%s", diff)
	}
	if n := len(d.Spec.Template.Spec.Containers); n != 2 {
		t.Errorf("there are %d containers, want the injected one too", n)
	}
	manage(s, "steady", m, fresh(s, d), s.webDeployment(fewer))
}

func TestApplyingObjectManagerMergesFinalizersAndPorts(t *testing.T) {
	t.Parallel()
	s := newClusterSite(t)
	m := &reconcilers.ApplyingObjectManager[*corev1.Service]{FieldManager: "widgets"}
	named := func(finalizers ...string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web", Finalizers: finalizers},
			Spec: corev1.ServiceSpec{
				Selector: map[string]string{"app": "web"},
				Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}},
			},
		}
	}
	service := manage(s, "create", m, nil, named("example.com/a", "example.com/b"), "create", "Created")
	service.Finalizers = append(service.Finalizers, "example.com/theirs")
	s.must(s.Update(t.Context(), service, client.FieldOwner("other")))
	service = manage(s, "a finalizer of others", m, fresh(s, service), named("example.com/a", "example.com/b"))
	service = manage(s, "one less", m, service, named("example.com/a"), "patch", "patch", "Updated")
	if got := fmt.Sprint(service.Finalizers, service.Spec.ClusterIP != ""); got != "[example.com/a example.com/theirs] true" {
		t.Errorf("the finalizers, and whether there is an address, are %s, want [example.com/a example.com/theirs] true",
			got)
	}
	manage(s, "steady", m, fresh(s, service), named("example.com/a"))
	service.Finalizers = nil
	s.must(s.Update(t.Context(), service))
}

func TestApplyingObjectManagerAppliesWhatTheAuthorSays(t *testing.T) {
	t.Parallel()
	s := newClusterSite(t)
	immutable := new(false)
	m := &configMapManager{
		FieldManager: "widgets",
		ApplyConfiguration: func(_ context.Context, _ client.Object, desired *corev1.ConfigMap) (runtime.ApplyConfiguration, error) {
			config := &corev1apply.ConfigMapApplyConfiguration{}
			config.WithData(map[string]string{"empty": ""}).WithImmutable(*immutable)
			return config, nil
		},
	}
	desired := s.configMap(map[string]string{"not": "applied"})
	desired.OwnerReferences = []metav1.OwnerReference{controlledBy(widget.Object())}
	c := manage(s, "create", m, nil, desired, "create", "Created")
	if c.Immutable == nil || len(c.Data) != 1 || len(c.OwnerReferences) != 1 {
		t.Errorf("the created object is %v, want it immutable, with one value and one owner", c)
	}
	c = manage(s, "steady", m, fresh(s, c), desired)
	immutable = new(true)
	c = manage(s, "otherwise", m, c, desired, "patch", "patch", "Updated")
	manage(s, "steady again", m, fresh(s, c), desired)
}

// A Secret is sent in another form than it is kept in.
func TestApplyingObjectManagerOfSecrets(t *testing.T) {
	t.Parallel()
	s := newClusterSite(t)
	m := &reconcilers.ApplyingObjectManager[*corev1.Secret]{FieldManager: "widgets"}
	desired := func(value string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: s.configMap(nil).ObjectMeta,
			StringData: map[string]string{"password": value},
			Data:       map[string][]byte{"key": {1, 2}},
		}
	}
	secret := manage(s, "create", m, nil, desired("1"), "create", "Created")
	secret = manage(s, "steady", m, fresh(s, secret), desired("1"))
	secret = manage(s, "change", m, secret, desired("2"), "patch", "patch", "Updated")
	if string(secret.Data["password"]) != "2" {
		t.Errorf("the password is %s, want 2", secret.Data["password"])
	}
	secret = manage(s, "steady again", m, fresh(s, secret), desired("2"))
	secret.Labels = map[string]string{"touched": "yes"}
	s.must(s.Update(t.Context(), secret))
	manage(s, "touched", m, secret, desired("2"))
}

// A merge of stringData corrects a key that somebody changes or deletes, and writes nothing before.
func TestUpdatingObjectManagerOfSecrets(t *testing.T) {
	t.Parallel()
	s := newClusterSite(t)
	desired := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: s.configMap(nil).ObjectMeta,
		StringData: map[string]string{"password": "1"},
	}
	correctsSecret(s, desired, func(current, desired *corev1.Secret) { current.StringData = desired.StringData })
	desired.Name = "unstructured"
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	s.must(err)
	correctsSecret(s, &unstructured.Unstructured{Object: content}, func(current, desired *unstructured.Unstructured) {
		current.Object["stringData"] = desired.Object["stringData"]
	})
}

func correctsSecret[T client.Object](s *clusterSite, desired T, merge func(current, desired T)) {
	s.t.Helper()
	m := &reconcilers.UpdatingObjectManager[T]{Type: desired, MergeBeforeUpdate: merge}
	var none T
	secret := manage(s, "create", m, none, desired, "create", "Created")
	secret = manage(s, "steady", m, fresh(s, secret), desired)
	for what, change := range map[string]func(data map[string][]byte){
		"changed": func(data map[string][]byte) { data["password"] = []byte("2") },
		"deleted": func(data map[string][]byte) { delete(data, "password") },
	} {
		there := &corev1.Secret{}
		s.must(s.Get(s.t.Context(), client.ObjectKeyFromObject(desired), there))
		change(there.Data)
		s.must(s.Update(s.t.Context(), there))
		secret = manage(s, what, m, fresh(s, secret), desired, "update", "Updated")
		s.must(s.Get(s.t.Context(), client.ObjectKeyFromObject(desired), there))
		if got := string(there.Data["password"]); got != "1" {
			s.t.Errorf("%s: the password is %q, want 1", what, got)
		}
	}
	manage(s, "steady again", m, fresh(s, secret), desired)
}

// An apply cannot change an object with two elements of the same keys, which a create accepts. So neither is sent.
func TestApplyingObjectManagerRefusesDuplicates(t *testing.T) {
	t.Parallel()
	s := newClusterSite(t)
	m := &deploymentManager{FieldManager: "widgets"}
	twice := func(d *appsv1.Deployment) {
		env := &d.Spec.Template.Spec.Containers[0].Env
		*env = append(*env, corev1.EnvVar{Name: "POD", Value: "web"})
	}
	const want = `Deployment.apps "web" is invalid: spec.template.spec.containers[0].env: Duplicate value: "name POD"`
	refuses := func(what string, actual *appsv1.Deployment, events ...string) {
		_, err := tryManage(s, what, m, actual, s.webDeployment(twice), events...)
		if !apierrs.IsInvalid(err) || err.Error() != want {
			t.Errorf("%s: the error is %v, want an invalid object and the text %s", what, err, want)
		}
	}
	refuses("create", nil, "CreationFailed")
	d := manage(s, "once", m, nil, s.webDeployment(), "create", "Created")
	refuses("update", fresh(s, d))
}

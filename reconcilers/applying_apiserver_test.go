package reconcilers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clusterSite is where managers are called one by one on the real API server, their requests and events seen.
type clusterSite struct {
	// Client is not counted.
	client.Client
	t         *testing.T
	ctx       context.Context
	namespace string
	requests  *controlplane.Requests
	events    eventReasons
}

// eventReasons is a recorder that keeps the reasons.
type eventReasons struct{ reasons *[]string }

func (e eventReasons) Event(_ runtime.Object, _, reason, _ string) {
	*e.reasons = append(*e.reasons, reason)
}

func (e eventReasons) Eventf(o runtime.Object, eventtype, reason, _ string, _ ...any) {
	e.Event(o, eventtype, reason, "")
}

func (e eventReasons) AnnotatedEventf(o runtime.Object, _ map[string]string, eventtype, reason, _ string, _ ...any) {
	e.Event(o, eventtype, reason, "")
}

func newClusterSite(t *testing.T) *clusterSite {
	t.Helper()
	rest, requests := controlplane.CountRequests(plane.Config(t))
	counted, err := client.New(rest, client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	s := &clusterSite{Client: live(t), t: t, namespace: plane.Namespace(t), requests: requests, events: eventReasons{reasons: &[]string{}}}
	config := reconcilers.Config{Client: duck.NewDuckAwareClientWrapper(counted), Recorder: s.events}
	s.ctx = reconcilers.StashOriginalConfig(reconcilers.StashConfig(t.Context(), config), config)
	return s
}

// manage calls a manager, which must make the given requests, and record the given events.
func manage[T client.Object](s *clusterSite, what string, m reconcilers.ObjectManager[T], actual, desired T, expected ...string) T {
	s.t.Helper()
	managed, err := tryManage(s, what, m, actual, desired, expected...)
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
	return managed
}

func tryManage[T client.Object](s *clusterSite, what string, m reconcilers.ObjectManager[T], actual, desired T, expected ...string) (T, error) {
	s.t.Helper()
	s.requests.Reset()
	*s.events.reasons = nil
	managed, err := m.Manage(s.ctx, widget.Object(), actual, desired)
	var done []string
	for request, count := range s.requests.Counts() {
		if strings.Contains(request.Path, "/namespaces/") {
			done = append(done, slices.Repeat([]string{request.Verb}, count)...)
		}
	}
	slices.Sort(done)
	if diff := cmp.Diff(expected, append(done, *s.events.reasons...)); diff != "" {
		s.t.Errorf("%s: requests and events differ (-expected, +actual):\n%s", what, diff)
	}
	return managed, err
}

// fresh reads the object again.
func fresh[T client.Object](s *clusterSite, obj T) T {
	s.t.Helper()
	read := obj.DeepCopyObject().(T)
	if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(obj), read); err != nil {
		s.t.Fatal(err)
	}
	return read
}

func (s *clusterSite) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// apply applies content as another field manager does.
func (s *clusterSite) apply(by string, content map[string]any, options ...client.ApplyOption) {
	s.t.Helper()
	u := &unstructured.Unstructured{Object: content}
	u.SetNamespace(s.namespace)
	s.must(s.Apply(s.t.Context(), client.ApplyConfigurationFromUnstructured(u), append(options, client.FieldOwner(by))...))
}

type (
	deploymentManager = reconcilers.ApplyingObjectManager[*appsv1.Deployment]
	configMapManager  = reconcilers.ApplyingObjectManager[*corev1.ConfigMap]
)

// webDeployment is a Deployment to which the API server adds a lot.
func (s *clusterSite) webDeployment(changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: "web", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{controlledBy(widget.Object())},
		},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "web", Image: "example.com/web:1",
					Ports: []corev1.ContainerPort{{ContainerPort: 8080}, {ContainerPort: 8081, Protocol: corev1.ProtocolUDP}},
					Env: []corev1.EnvVar{{Name: "POD", ValueFrom: &corev1.EnvVarSource{
						FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
					}}},
				}}},
			},
		},
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

func image(tag string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "example.com/web:" + tag }
}

// reportStatus writes the status as the controller of Deployments does.
func (s *clusterSite) reportStatus(d *appsv1.Deployment) *appsv1.Deployment {
	s.t.Helper()
	d = fresh(s, d)
	d.Status.ObservedGeneration++
	s.must(s.Status().Update(s.t.Context(), d, client.FieldOwner("kube-controller-manager")))
	return d
}

func (s *clusterSite) configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "settings"}, Data: data}
}

// Invariant L1, in this process and in the next.
func TestL1ApplyingObjectManagerIsSteady(t *testing.T) {
	t.Parallel()
	s := newClusterSite(t)
	m := &deploymentManager{FieldManager: "widgets"}
	restart := func() { m = &deploymentManager{FieldManager: "widgets"} }

	d := manage(s, "create", m, nil, s.webDeployment(), "create", "Created")
	if d.Spec.RevisionHistoryLimit == nil {
		t.Error("the server defaulted nothing, so this test shows little, want the history limit")
	}
	d = manage(s, "what was returned", m, d, s.webDeployment())
	d = manage(s, "what is read", m, fresh(s, d), s.webDeployment())
	d = manage(s, "after a foreign write of the status", m, s.reportStatus(d), s.webDeployment())
	restart()
	d = manage(s, "after a restart", m, fresh(s, d), s.webDeployment())
	d = manage(s, "after a restart and a foreign write of the status", m, s.reportStatus(d), s.webDeployment())

	d = manage(s, "another image", m, d, s.webDeployment(image("2")), "patch", "patch", "Updated")
	if writers := (managedfields.Owner{Name: "widgets"}).Writers(d.ManagedFields); len(writers) > 0 || d.Generation != 2 {
		t.Errorf("plain writes of %v are left, the generation is %d, want none and 2", writers, d.Generation)
	}
	manage(s, "what was returned of the change", m, d, s.webDeployment(image("2")))
	d = manage(s, "the changed one as it is read", m, fresh(s, d), s.webDeployment(image("2")))
	d = manage(s, "the changed one after a write of the status", m, s.reportStatus(d), s.webDeployment(image("2")))
	d = manage(s, "yet another image", m, d, s.webDeployment(image("3")), "patch", "Updated")
	restart()
	// The server completes what is owned as a whole, such as a field reference.
	d = manage(s, "changed, after a restart", m, fresh(s, d), s.webDeployment(image("3")))
	d = manage(s, "changed, after a restart, again", m, s.reportStatus(d), s.webDeployment(image("3")))
	if d.Generation != 3 {
		t.Errorf("the generation is %d after the image was set three times, want 3", d.Generation)
	}
}

// What has no defaults is steady from its creation on, also after a restart.
func TestL1ApplyingObjectManagerIsSteadyWithoutDefaults(t *testing.T) {
	s := newClusterSite(t)
	desired := s.configMap(map[string]string{"a": "1"})
	desired.Labels, desired.OwnerReferences = map[string]string{"l": "1"}, []metav1.OwnerReference{controlledBy(widget.Object())}
	c := manage(s, "create", &configMapManager{FieldManager: "widgets"}, nil, desired, "create", "Created")
	manage(s, "after a restart", &configMapManager{FieldManager: "widgets"}, fresh(s, c), desired)
}

// What the server sets and does not let anybody change is no obstacle to the migration of what was created.
func TestApplyingObjectManagerMigratesWhatCannotChange(t *testing.T) {
	controlplanetest.Real(t, "admission has to set default classes")
	t.Parallel()
	s := newClusterSite(t)
	meta := metav1.ObjectMeta{Namespace: s.namespace, Name: "data"}
	app := map[string]string{"app": "data"}
	pods := corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "example.com/x"}}, AutomountServiceAccountToken: new(false),
	}
	labeled := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: pods}
	once := *pods.DeepCopy()
	once.RestartPolicy = corev1.RestartPolicyNever
	claim := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		},
	}
	ports := []corev1.ServicePort{{Port: 80}}

	migrates(s, &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: claim})
	migrates(s, &corev1.Pod{ObjectMeta: meta, Spec: pods})
	migrates(s, &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: once}}})
	meta.Name = "labelled"
	migrates(s, &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: once},
	}})
	meta.Name = "data"
	migrates(s, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: app}, ServiceName: "data", Template: labeled,
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: claim}},
	}})
	migrates(s, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: app, Ports: ports}})
	meta.Name = "balanced"
	migrates(s, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, Ports: ports,
	}})
	// What admission sets counts as a field of the creator, too.
	s.must(s.Create(t.Context(), &corev1.LimitRange{ObjectMeta: meta, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}}}}))
	meta.Name = "limited"
	migrates(s, &corev1.Pod{ObjectMeta: meta, Spec: pods})
	class := &storagev1.StorageClass{Provisioner: "example.com/none", ObjectMeta: metav1.ObjectMeta{
		Name: s.namespace, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
	}}
	s.must(s.Create(t.Context(), class))
	t.Cleanup(func() { s.must(s.Delete(context.Background(), class)) })
	eventually(t, "the claim has no default class", func(context.Context) error {
		meta.Name += "x"
		if c := migrates(s, &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: claim}); c.Spec.StorageClassName == nil {
			return fmt.Errorf("the claim %s has none", c.Name)
		}
		return nil
	})
	meta.Name = "hello"
	job := batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: once}}}
	migrates(s, &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{Schedule: "@daily", JobTemplate: job}})
}

// migrates creates an object under the name of the manager alone, as earlier releases did, and manages it in two
// processes. The first one migrates it, and the second one makes no request. It stays as it is.
func migrates[T client.Object](s *clusterSite, desired T) T {
	s.t.Helper()
	kind := fmt.Sprintf("%T", desired)
	process := func() *reconcilers.ApplyingObjectManager[T] {
		return &reconcilers.ApplyingObjectManager[T]{FieldManager: "widgets"}
	}
	created := desired.DeepCopyObject().(T)
	s.must(s.Create(s.t.Context(), created, client.FieldOwner("widgets")))
	before := fresh(s, created)
	managed := manage(s, kind+", migrate", process(), fresh(s, created), desired, "patch", "patch")
	managed = manage(s, kind+", restart", process(), fresh(s, managed), desired)
	after := fresh(s, managed)
	for _, obj := range []T{before, after} {
		obj.SetManagedFields(nil)
		obj.SetResourceVersion("")
	}
	if diff := cmp.Diff(before, after); diff != "" {
		s.t.Errorf("%s: the migration has changed it (-expected, +actual):\n%s", kind, diff)
	}
	return after
}

// The API server accepts a finalizer without a domain on custom resources, and refuses it on built-in kinds.
func TestFinalizersWithoutADomain(t *testing.T) {
	t.Parallel()
	s := newClusterSite(t)
	custom := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "custom"}}
	builtIn := s.configMap(nil)
	for obj, refused := range map[client.Object]bool{custom: false, builtIn: true} {
		s.must(s.Create(t.Context(), obj))
		err := reconcilers.AddFinalizer(s.ctx, obj, "unique.finalizer.name")
		if apierrs.IsInvalid(err) != refused || !refused && err != nil {
			t.Errorf("the finalizer on a %T ends with %v, want it refused: %t", obj, err, refused)
		}
		if !refused {
			s.must(reconcilers.ClearFinalizer(s.ctx, obj, "unique.finalizer.name"))
		}
	}
}

// oneAtATime makes the requests of a test wait for those of the controller, and the other way round: a controller makes
// the requests for an object one after the other.
func oneAtATime(tree func(reconcilers.Config) *widgetRoot) func(reconcilers.Config) *widgetRoot {
	return func(config reconcilers.Config) *widgetRoot {
		root, busy := tree(config), &sync.Mutex{}
		root.BeforeReconcile = func(
			ctx context.Context, _ reconcilers.Request,
		) (context.Context, reconcilers.Result, error) {
			busy.Lock()
			return ctx, reconcilers.Result{}, nil
		}
		root.AfterReconcile = func(
			_ context.Context, _ reconcilers.Request, result reconcilers.Result, err error,
		) (reconcilers.Result, error) {
			busy.Unlock()
			return result, err
		}
		return root
	}
}

// In a tree, with the cache of a manager.
func TestL1RestartOfATreeThatAppliesWritesNothing(t *testing.T) {
	t.Parallel()
	tree := func() func(reconcilers.Config) *widgetRoot {
		child := deploymentChild()
		child.MergeBeforeUpdate = nil
		child.ChildObjectManager = &deploymentManager{FieldManager: "widgets"}
		return oneAtATime(treeOf(child))
	}
	c := live(t)
	first, roots := startOperator(t, tree())
	w := first.createWidget(t, c)
	eventually(t, "not ready", func(ctx context.Context) error { return isReady(ctx, c, w) })
	reconcileSteadily(t, first, roots[0], w)
	first.stop()

	for restart := range 3 {
		operator, roots := startOperatorIn(t, first.namespace, ctrl.Options{}, tree())
		if _, err := roots[0].Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)}); err != nil {
			t.Fatal(err)
		}
		// Events are written in the background, before or after this.
		written := 0
		for request, n := range operator.requests.Counts() {
			reads := request.Verb == "get" || request.Verb == "list" || request.Verb == "watch"
			if !reads && !strings.Contains(request.Path, "/events") {
				written += n
			}
		}
		if written != 0 {
			t.Errorf("restart %d wrote %d times, want none:\n%s", restart, written, operator.requests)
		}
		reconcileSteadily(t, operator, roots[0], w)
		operator.stop()
	}
}

// What the server writes in another way than it was sent is learned.
func TestApplyingObjectManagerLearnsWhatTheServerNormalises(t *testing.T) {
	t.Parallel()
	s := newClusterSite(t)
	desired := func(tag string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.webDeployment(image(tag)))
		s.must(err)
		u.Object["metadata"] = map[string]any{"name": "web", "namespace": s.namespace}
		u.Object["spec"] = content["spec"]
		containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		s.must(err)
		containers[0].(map[string]any)["resources"] = map[string]any{"requests": map[string]any{"cpu": "1000m"}}
		s.must(unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers"))
		return u
	}
	newManager := func() *reconcilers.ApplyingObjectManager[*unstructured.Unstructured] {
		return &reconcilers.ApplyingObjectManager[*unstructured.Unstructured]{Type: desired("1"), FieldManager: "widgets"}
	}
	m := newManager()
	d := manage(s, "create", m, nil, desired("1"), "create", "Created")
	d = manage(s, "what is read", m, fresh(s, d), desired("1"))
	d = manage(s, "change", m, d, desired("2"), "patch", "patch", "Updated")
	d = manage(s, "what is read of the change", m, fresh(s, d), desired("2"))
	s.reportStatus(s.webDeployment())
	d = manage(s, "after a write of the status", m, fresh(s, d), desired("2"))
	m = newManager()
	d = manage(s, "after a restart", m, fresh(s, d), desired("2"), "patch")
	manage(s, "after a restart, again", m, fresh(s, d), desired("2"))
}

// Invariant L4.
func TestL4ApplyingObjectManagerTouchesWhatItWasGivenOnly(t *testing.T) {
	t.Parallel()
	s := newClusterSite(t)
	m := &configMapManager{FieldManager: "widgets"}
	foreign := s.configMap(map[string]string{"color": "red"})
	s.must(s.Create(t.Context(), foreign, client.FieldOwner("other")))
	untouched := func(what string) {
		t.Helper()
		if now := fresh(s, foreign); now.ResourceVersion != foreign.ResourceVersion {
			t.Errorf("%s: the object of another owner is %v by %v in version %s, want the untouched version %s", what,
				now.Data, now.ManagedFields, now.ResourceVersion, foreign.ResourceVersion)
		}
	}
	blue := s.configMap(map[string]string{"color": "blue"})

	_, err := tryManage(s, "create", m, nil, blue, "create", "CreationFailed")
	if !apierrs.IsAlreadyExists(err) {
		t.Errorf("create: returned %v, want AlreadyExists", err)
	}
	untouched("create")

	earlier := foreign.DeepCopy()
	earlier.UID = "earlier"
	_, err = tryManage(s, "replaced", m, earlier, blue, "patch", "UpdateFailed")
	if !apierrs.IsConflict(err) {
		t.Errorf("replaced: returned %v, want a conflict", err)
	}
	untouched("replaced")
	_, err = tryManage(s, "delete of a replaced one", m, earlier, nil, "delete", "DeleteFailed")
	if !apierrs.IsConflict(err) {
		t.Errorf("delete of a replaced one: returned %v, want a conflict", err)
	}
	untouched("delete of a replaced one")

	s.must(s.Delete(t.Context(), foreign))
	_, err = tryManage(s, "gone", m, earlier, blue, "patch", "UpdateFailed")
	if !apierrs.IsConflict(err) {
		t.Errorf("gone: returned %v, want a conflict", err)
	}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); !apierrs.IsNotFound(err) {
		t.Errorf("the read of the object that was gone ends with %v, want it not found", err)
	}
	manage(s, "delete of one that is gone", m, earlier, nil, "delete")
}

// A delete means an object as it was when that was decided.
func TestL4DeletesMeanAVersion(t *testing.T) {
	t.Parallel()
	s := newClusterSite(t)
	for name, m := range map[string]reconcilers.ObjectManager[*corev1.ConfigMap]{
		"applying": &configMapManager{FieldManager: "widgets"},
		"updating": &configMaps{MergeBeforeUpdate: mergeConfigMap},
	} {
		read := manage(s, name, m, nil, s.configMap(nil), "create", "Created")
		changed := read.DeepCopy()
		changed.Labels = map[string]string{"keep": "me"}
		s.must(s.Update(t.Context(), changed))
		if _, err := tryManage(s, name, m, read, nil, "delete", "DeleteFailed"); !apierrs.IsConflict(err) {
			t.Errorf("%s: returned %v, want a conflict", name, err)
		}
		manage(s, name, m, changed, nil, "delete", "Deleted")
	}
}

func TestApplyingObjectManagerOfDucksLeavesTheRest(t *testing.T) {
	t.Parallel()
	s := newClusterSite(t)
	s.must(s.Create(t.Context(), &resources.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "quacks", Annotations: map[string]string{"kept": "yes"}},
		Spec:       resources.WidgetSpec{Fields: map[string]string{"color": "red", "size": "1"}},
	}, client.FieldOwner("other")))
	kind := metav1.TypeMeta{APIVersion: "test.espalier.dev/v1", Kind: "Widget"}
	actual := &duckWidget{TypeMeta: kind}
	s.must(duck.NewDuckAwareClientWrapper(s.Client).Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "quacks"}, actual))
	desired := &duckWidget{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "quacks"}}
	desired.Spec.Fields = map[string]string{"color": "blue"}
	m := &reconcilers.ApplyingObjectManager[*duckWidget]{Type: &duckWidget{TypeMeta: kind}, FieldManager: "widgets"}
	managed := manage(s, "ducks", m, actual, desired, "patch", "Updated")
	if got := fmt.Sprintln(managed.Kind, managed.Annotations, managed.Spec.Fields); got != "Widget map[kept:yes] map[color:blue size:1]\n" {
		t.Errorf("the kind, annotations and fields are %s, want Widget map[kept:yes] map[color:blue size:1]", got)
	}
}

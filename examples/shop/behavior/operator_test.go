package behavior_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/bare"
	"github.com/espalier-dev/espalier/examples/shop/config"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/examples/shop/registry"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

// retryInterval stands in for the minute after which a host is asked for again.
const retryInterval = time.Second

// implementations are the operators that have to behave alike.
var implementations = map[string]func(ctx context.Context, mgr ctrl.Manager, hosts registry.Registry) error{
	"bare": func(ctx context.Context, mgr ctrl.Manager, hosts registry.Registry) error {
		return (&bare.Reconciler{
			Client:        mgr.GetClient(),
			Recorder:      mgr.GetEventRecorder("shop"),
			Registry:      hosts,
			RetryInterval: retryInterval,
		}).SetupWithManager(ctx, mgr)
	},
	// It runs with the role that is derived from its tree.
	"controller": func(ctx context.Context, mgr ctrl.Manager, hosts registry.Registry) error {
		return controller.New(espalier.NewConfig(mgr), hosts, retryInterval).SetupWithManager(ctx, mgr)
	},
}

var plane = controlplanetest.Shared{Options: controlplane.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd()}}}

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

func crd() *apiextensionsv1.CustomResourceDefinition {
	crd, err := config.CRD()
	if err != nil {
		panic(err)
	}
	return crd
}

// forEach runs a test with each implementation, in a namespace of its own.
func forEach(t *testing.T, test func(t *testing.T, o *operator)) {
	t.Parallel()
	for name := range implementations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newOperator(t, name))
		})
	}
}

// operator is one implementation that runs in one namespace, and a client of a user there.
type operator struct {
	client.Client
	t              *testing.T
	implementation string
	namespace      string
	hosts          *registry.Memory
	// config is that of the operator's user.
	config *rest.Config
	// requests counts those of the operator, not those of the user.
	requests *controlplane.Requests
	stop     func()
}

func newOperator(t *testing.T, implementation string) *operator {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	user, err := client.New(plane.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{
		Client:         user,
		t:              t,
		implementation: implementation,
		namespace:      plane.Namespace(t),
		hosts:          &registry.Memory{},
	}
	o.config = plane.Config(t)
	if implementation == "controller" {
		o.config = o.restricted()
	}
	o.start()
	t.Cleanup(func() { o.stop() })
	return o
}

// restricted returns the configuration of a user who may do in the namespace what the role of the operator says.
func (o *operator) restricted() *rest.Config {
	o.t.Helper()
	role, err := config.Role()
	o.do(err)
	o.do(client.IgnoreAlreadyExists(o.Create(o.t.Context(), role)))
	o.do(o.Create(o.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: o.meta(role.Name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role.Name}},
	}))
	restricted, err := plane.Environment(o.t).User(role.Name)
	o.do(err)
	user, err := client.New(restricted, client.Options{Scheme: o.Scheme()})
	o.do(err)
	o.eventually(func() error { return user.List(o.t.Context(), &v1.ShopList{}, client.InNamespace(o.namespace)) })
	return restricted
}

// start runs the operator until stop is called.
func (o *operator) start() {
	o.t.Helper()
	config, requests := controlplane.CountRequests(o.config)
	skipNameValidation := true
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:     o.Scheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{o.namespace: {}}},
		Controller: ctrlconfig.Controller{SkipNameValidation: &skipNameValidation},
	})
	if err != nil {
		o.t.Fatal(err)
	}
	if err := implementations[o.implementation](o.t.Context(), mgr, o.hosts); err != nil {
		o.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	o.requests = requests
	o.stop = func() {
		cancel()
		if err := <-done; err != nil {
			o.t.Errorf("the manager: %v", err)
		}
		o.stop = func() {}
	}
}

// do fails the test at once if there is an error.
func (o *operator) do(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// eventually waits until a check returns nil.
func (o *operator) eventually(check func() error) {
	o.t.Helper()
	controlplanetest.Eventually(o.t, "the shops of "+o.implementation, func(context.Context) error { return check() })
}

func (o *operator) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.namespace, Name: name}
}

// order creates a shop, with changes.
func (o *operator) order(name string, changes ...func(*v1.Shop)) *v1.Shop {
	o.t.Helper()
	shop := &v1.Shop{ObjectMeta: o.meta(name), Spec: v1.ShopSpec{Image: "shop:1", Replicas: 2}}
	for _, change := range changes {
		change(shop)
	}
	o.do(o.Create(o.t.Context(), shop))
	return shop
}

// running orders a shop with everything, and waits until it is ready.
func (o *operator) running(name string) *v1.Shop {
	o.t.Helper()
	o.do(client.IgnoreAlreadyExists(o.Create(o.t.Context(), o.settings("1"))))
	shop := o.order(name, withEverything)
	o.rollOut(name)
	o.expect(name, ready())
	return shop
}

func withEverything(shop *v1.Shop) {
	shop.Spec.Host = shop.Name + ".example.com"
	shop.Spec.Settings = "settings"
	shop.Spec.Workers = []v1.Worker{
		{Name: "mail", Schedule: "*/5 * * * *", Args: []string{"mail"}},
		{Name: "report", Schedule: "0 4 * * *"},
	}
}

func (o *operator) settings(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: o.meta("settings"), Data: map[string]string{"LEVEL": value}}
}

// change reads an object until it can be changed.
func change[T client.Object](o *operator, obj T, change func(T)) {
	o.t.Helper()
	o.eventually(func() error {
		if err := o.Get(o.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		change(obj)
		return o.Update(o.t.Context(), obj)
	})
}

// get returns an object once it is there.
func get[T client.Object](o *operator, obj T, name string) T {
	o.t.Helper()
	o.eventually(func() error { return o.Get(o.t.Context(), o.key(name), obj) })
	return obj
}

func (o *operator) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: o.namespace, Name: name}
}

// gone waits until there is no such object.
func (o *operator) gone(obj client.Object, name string) {
	o.t.Helper()
	o.eventually(func() error {
		err := o.Get(o.t.Context(), o.key(name), obj)
		if err == nil {
			return fmt.Errorf("%T %s is still there", obj, name)
		}
		return client.IgnoreNotFound(err)
	})
}

// absent fails the test if there is such an object.
func (o *operator) absent(obj client.Object, name string) {
	o.t.Helper()
	if err := o.Get(o.t.Context(), o.key(name), obj); !apierrors.IsNotFound(err) {
		o.t.Errorf("the read of the %T %s ends with %v, want it not found", obj, name, err)
	}
}

// rollOut plays the controller of Deployments: it has all pods of the latest generation available.
func (o *operator) rollOut(name string) {
	o.t.Helper()
	o.report(name, func(deployment *appsv1.Deployment) {
		replicas := *deployment.Spec.Replicas
		deployment.Status = appsv1.DeploymentStatus{
			ObservedGeneration: deployment.Generation,
			Replicas:           replicas,
			UpdatedReplicas:    replicas,
			ReadyReplicas:      replicas,
			AvailableReplicas:  replicas,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		}
	})
}

// report plays the controller of Deployments: it writes the status.
func (o *operator) report(name string, change func(*appsv1.Deployment)) {
	o.t.Helper()
	o.eventually(func() error {
		deployment := &appsv1.Deployment{}
		if err := o.Get(o.t.Context(), o.key(name), deployment); err != nil {
			return err
		}
		change(deployment)
		return o.Status().Update(o.t.Context(), deployment)
	})
}

// expectation is what a condition has to say.
type expectation struct {
	condition string
	status    metav1.ConditionStatus
	// message has to be part of the message. A condition that is False has one in any case.
	message string
}

func isTrue(condition string) expectation {
	return expectation{condition: condition, status: metav1.ConditionTrue}
}

func isFalse(condition, message string) expectation {
	return expectation{condition: condition, status: metav1.ConditionFalse, message: message}
}

func isUnknown(condition string) expectation {
	return expectation{condition: condition, status: metav1.ConditionUnknown}
}

// ready expects that all conditions are True.
func ready() []expectation {
	var all []expectation
	for _, condition := range []string{
		v1.Ready, v1.SettingsFound, v1.DeploymentReady, v1.ServiceReady, v1.IngressReady, v1.WorkersReady, v1.Registered,
	} {
		all = append(all, isTrue(condition))
	}
	return all
}

// expect waits until the conditions say what they have to of the latest generation. A shop that is ready has been
// observed in it.
func (o *operator) expect(name string, expectations []expectation) *v1.Shop {
	o.t.Helper()
	shop := &v1.Shop{}
	o.eventually(func() error {
		if err := o.Get(o.t.Context(), o.key(name), shop); err != nil {
			return err
		}
		var errs []error
		if got := shop.Status.ObservedGeneration; got != shop.Generation && slices.Contains(expectations, isTrue(v1.Ready)) {
			errs = append(errs, fmt.Errorf("generation %d is observed, not %d", got, shop.Generation))
		}
		for _, want := range expectations {
			errs = append(errs, want.check(shop))
		}
		return errors.Join(errs...)
	})
	return shop
}

func (e expectation) check(shop *v1.Shop) error {
	got := meta.FindStatusCondition(shop.Status.Conditions, e.condition)
	if got == nil {
		return fmt.Errorf("there is no condition %s", e.condition)
	}
	silent := got.Status == metav1.ConditionFalse && got.Message == ""
	if got.Status != e.status || !strings.Contains(got.Message, e.message) || silent || got.Reason == "" {
		return fmt.Errorf("condition %s is %s (reason %q, message %q), want %s (message with %q)",
			e.condition, got.Status, got.Reason, got.Message, e.status, e.message)
	}
	if got.ObservedGeneration != shop.Generation {
		return fmt.Errorf("condition %s is of generation %d", e.condition, got.ObservedGeneration)
	}
	return nil
}

func list(expectations ...expectation) []expectation { return expectations }

// event waits for an event about the shop.
func (o *operator) event(shop *v1.Shop, reason, message string) {
	o.t.Helper()
	o.eventually(func() error {
		seen := o.events(shop)
		if slices.ContainsFunc(seen, func(e string) bool {
			return strings.HasPrefix(e, reason+": ") && strings.Contains(e, message)
		}) {
			return nil
		}
		return fmt.Errorf("no event %s: %s among %q", reason, message, seen)
	})
}

// events returns the reasons and messages of the events about the shop.
func (o *operator) events(shop *v1.Shop) []string {
	o.t.Helper()
	var events corev1.EventList
	o.do(o.List(o.t.Context(), &events, client.InNamespace(o.namespace)))
	var seen []string
	for _, event := range events.Items {
		if event.InvolvedObject.UID == shop.UID {
			seen = append(seen, event.Reason+": "+event.Message)
		}
	}
	return seen
}

// reconciled waits until the operator has reconciled a shop after act. It calls the registry whenever it does.
func (o *operator) reconciled(act func()) {
	o.t.Helper()
	before := o.hosts.Calls()
	act()
	o.eventually(func() error {
		if o.hosts.Calls() == before {
			return errors.New("nothing was reconciled")
		}
		return nil
	})
}

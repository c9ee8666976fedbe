package feature_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature"
	gates "github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Shop is a resource with features.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ShopSpec   `json:"spec,omitempty"`
	Status ShopStatus `json:"status,omitempty"`
}

// ShopSpec says what the functions of features return.
type ShopSpec struct {
	Off        bool   `json:"off,omitempty"`
	GateError  string `json:"gateError,omitempty"`
	Unmet      string `json:"unmet,omitempty"`
	UnmetError string `json:"unmetError,omitempty"`
	Suspended  bool   `json:"suspended,omitempty"`
	// SuspendedError is the error of Suspended.
	SuspendedError string `json:"suspendedError,omitempty"`
	// Reports are what the scripted node reports: "Kind name State Grade message", with "-" for no grade.
	Reports []string `json:"reports,omitempty"`
	// Returns is what it returns: halt, quiet, conflict, durable, or an error.
	Returns string `json:"returns,omitempty"`
}

// ShopStatus is the observed state of a Shop.
type ShopStatus struct {
	apis.Status          `json:",inline"`
	apis.LifecycleStatus `json:",inline"`
}

// DeepCopyObject implements runtime.Object.
func (s *Shop) DeepCopyObject() runtime.Object {
	c := &Shop{TypeMeta: s.TypeMeta, Spec: s.Spec}
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Reports = append([]string(nil), s.Spec.Reports...)
	s.Status.Status.DeepCopyInto(&c.Status.Status)
	s.Status.LifecycleStatus.DeepCopyInto(&c.Status.LifecycleStatus)
	return c
}

// ShopList is a list of shops.
type ShopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Shop `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *ShopList) DeepCopyObject() runtime.Object {
	c := &ShopList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Shop))
	}
	return c
}

type (
	tests     = rtesting.NodeTests[*Shop]
	row       = rtesting.SubReconcilerTestCase[*Shop]
	node      = reconcilers.SubReconciler[*Shop]
	featureOf = feature.Feature[*Shop]
	edit      = func(*Shop)
)

const grace = 10 * time.Minute

var (
	scheme = newScheme()

	began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	// later is within the grace period, and expired is when it ends.
	later   = began.Add(time.Minute)
	expired = began.Add(grace)

	shop = rtesting.NewFixture(&Shop{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "corner", UID: "corner-uid", Generation: 3,
		CreationTimestamp: metav1.NewTime(time.UnixMilli(1000)),
	}})
	terminating edit = func(s *Shop) {
		s.DeletionTimestamp = new(metav1.NewTime(time.UnixMilli(2000)))
		s.Finalizers = []string{"test.espalier.dev/other"}
	}
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err)
	}
	version := schema.GroupVersion{Group: "test.espalier.dev", Version: "v1"}
	s.AddKnownTypes(version, &Shop{}, &ShopList{})
	metav1.AddToGroupVersion(s, version)
	return s
}

// was gives the feature Till a record.
func was(phase apis.FeaturePhase, passed bool, dependents ...apis.DependentStatus) edit {
	return since(phase, began, passed, dependents...)
}

// since gives the feature Till a record that began at a time.
func since(phase apis.FeaturePhase, at time.Time, passed bool, dependents ...apis.DependentStatus) edit {
	return recorded("Till", phase, at, passed, dependents...)
}

func recorded(name string, phase apis.FeaturePhase, at time.Time, passed bool,
	dependents ...apis.DependentStatus) edit {
	return func(s *Shop) {
		record := apis.FeatureStatus{
			Name: name, Condition: name + "Ready", Phase: phase, Since: metav1.NewTime(at), Generation: s.Generation,
			Passed: passed, Dependents: dependents,
		}
		if name == "Till" {
			record.Conditions = []string{"CashReady"}
		}
		for i, known := range s.Status.Features {
			if known.Name == name {
				s.Status.Features[i] = record
				return
			}
		}
		s.Status.Features = append(s.Status.Features, record)
	}
}

// is sets a condition.
func is(conditionType string, status metav1.ConditionStatus, reason apis.State, message string) edit {
	return func(s *Shop) {
		kept := s.Status.Conditions[:0:0]
		for _, c := range s.Status.Conditions {
			if c.Type != conditionType {
				kept = append(kept, c)
			}
		}
		s.Status.Conditions = append(kept, metav1.Condition{
			Type: conditionType, Status: status, Reason: string(reason), Message: message,
		})
	}
}

func spec(change func(*ShopSpec)) edit { return func(s *Shop) { change(&s.Spec) } }

func reports(reports ...string) edit { return spec(func(s *ShopSpec) { s.Reports = reports }) }

func returns(what string) edit { return spec(func(s *ShopSpec) { s.Returns = what }) }

// bad is a dependent that is not as it should be.
func bad(kind, name string, state apis.State, message string) apis.DependentStatus {
	return apis.DependentStatus{Kind: kind, Namespace: "default", Name: name, State: state, Message: message}
}

var errBoom = errors.New("boom")

// scripted is a node that reports what the spec says. Calls has the supervision of each call.
type scripted struct {
	calls *[]reconcilers.Supervision
}

func (n scripted) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

// Reconcile reads the reports. A report may be "absent", or have a word before it: auxiliary, unchecked, error. The
// name "-" is one that is not known.
func (n scripted) Reconcile(ctx context.Context, shop *Shop) (reconcilers.Result, error) {
	if n.calls != nil {
		*n.calls = append(*n.calls, reconcilers.SupervisionOf(ctx, shop))
	}
	if supervisor := reconcilers.SupervisorOf(ctx); supervisor != nil {
		for _, report := range shop.Spec.Reports {
			supervisor.Observe(observed(report))
		}
	}
	switch shop.Spec.Returns {
	case "":
		return reconcilers.Result{}, nil
	case "halt":
		return reconcilers.Result{RequeueAfter: time.Hour}, reconcilers.ErrHaltSubReconcilers
	case "quiet":
		return reconcilers.Result{}, fmt.Errorf("%w: not now", reconcilers.ErrQuiet)
	case "durable":
		return reconcilers.Result{}, errors.Join(errBoom, reconcilers.ErrDurable)
	case "conflict":
		return reconcilers.Result{}, apierrs.NewConflict(schema.GroupResource{Resource: "configmaps"}, "x", errBoom)
	}
	return reconcilers.Result{}, errBoom
}

func observed(report string) reconcilers.ObservedObject {
	words := strings.Fields(report)
	object := reconcilers.ObservedObject{Node: "Till/0/Scripted", Namespace: "default"}
	for ; ; words = words[1:] {
		switch words[0] {
		case "auxiliary":
			object.Auxiliary = true
			continue
		case "unchecked":
			object.Unchecked = true
			continue
		}
		break
	}
	object.Kind, object.Name = schema.GroupVersionKind{Version: "v1", Kind: words[0]}, words[1]
	if object.Name == "-" {
		object.Namespace, object.Name = "", ""
	}
	switch words[2] {
	case "absent":
	case "error":
		object.Err = errors.New(strings.Join(words[3:], " "))
	default:
		h := &apis.Health{State: apis.State(words[2])}
		if len(words) > 3 && words[3] != "-" {
			h.Grade = apis.State(words[3])
		}
		if len(words) > 4 {
			h.Message = strings.Join(words[4:], " ")
		}
		object.Health = h
	}
	return object
}

// Describe says that the node reports a condition.
func (n scripted) Describe() reconcilers.Description {
	return reconcilers.Description{Kind: "scripted", Name: "Scripted", Conditions: []string{"CashReady"}}
}

type gate struct {
	on  bool
	err error
}

func (g gate) Enabled() (bool, error) { return g.on, g.err }

// gateOf returns a gate. The error "version latest" is that of a version that is none.
func gateOf(s *Shop) gates.Gate {
	if version, ok := strings.CutPrefix(s.Spec.GateError, "version "); ok {
		return gates.Version(version, ">= 1")
	}
	if s.Spec.GateError != "" {
		return gate{err: errors.New(s.Spec.GateError)}
	}
	return gate{on: !s.Spec.Off}
}

// till returns the feature of most tables.
func till(nested node) *featureOf {
	return &featureOf{
		Name: "Till", Reconciler: nested, GracePeriod: grace,
		Gate: func(_ context.Context, s *Shop) gates.Gate { return gateOf(s) },
		Suspended: func(_ context.Context, s *Shop) (bool, error) {
			if s.Spec.SuspendedError != "" {
				return true, errors.New(s.Spec.SuspendedError)
			}
			return s.Spec.Suspended, nil
		},
		Prerequisites: []feature.Prerequisite[*Shop]{{Check: func(_ context.Context, s *Shop) (string, error) {
			if s.Spec.UnmetError != "" {
				return "", errors.New(s.Spec.UnmetError)
			}
			return s.Spec.Unmet, nil
		}}},
	}
}

// run runs a table with a feature that has a scripted node.
func run(t *testing.T, table tests) {
	t.Helper()
	table.RunNode(t, scheme, func() node { return till(scripted{}) })
}

// stockroom keeps a ConfigMap as its supervisor says.
type stockroom struct{}

func (stockroom) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

// Describe says that the node reports a condition.
func (stockroom) Describe() reconcilers.Description { return scripted{}.Describe() }

func (stockroom) Reconcile(ctx context.Context, shop *Shop) (reconcilers.Result, error) {
	if shop.DeletionTimestamp != nil {
		return reconcilers.Result{}, nil
	}
	config := reconcilers.RetrieveConfigOrDie(ctx)
	supervisor := reconcilers.SupervisorOf(ctx)
	report := reconcilers.ObservedObject{
		Node: "Stockroom", Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: "default", Name: "stock",
	}
	actual := &corev1.ConfigMap{}
	err := config.TrackAndGet(ctx, client.ObjectKey{Namespace: "default", Name: "stock"}, actual)
	exists := err == nil
	switch err = client.IgnoreNotFound(err); {
	case err != nil:
	case supervisor.Supervision() == reconcilers.Withdraw && exists:
		err = client.IgnoreNotFound(config.Delete(ctx, actual))
	case supervisor.Supervision() != reconcilers.Withdraw && !exists:
		actual = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stock"}}
		err = config.Create(ctx, actual)
		exists = err == nil
	}
	report.Err = err
	if exists {
		report.Object = actual
	}
	supervisor.Observe(report)
	return reconcilers.Result{}, reconcilers.Failed(ctx, actual, err)
}

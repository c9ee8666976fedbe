package component_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// referringOperator deploys Referrers on the real API server.
type referringOperator struct {
	*operator
	client    client.Client
	namespace string
	made      generator.Generator
	log       *lockedText
}

// lockedText is what was logged.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) note(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(&l.text, prefix, args)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func startReferring(t *testing.T, made generator.Generator, uncached ...client.Object) *referringOperator {
	t.Helper()
	o := &referringOperator{namespace: plane.Namespace(t), made: made, log: &lockedText{}}
	config, requests := controlplane.CountRequests(plane.Config(t))
	mgr := newManager(t, config, ctrl.Options{
		Cache:  cache.Options{DefaultNamespaces: map[string]cache.Config{o.namespace: {}}},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: uncached}},
		// From level 8 on, client-go logs the bodies of requests.
		Logger: funcr.New(o.log.note, funcr.Options{Verbosity: 5}),
	})
	addReferrer(mgr.GetScheme())
	root := component.NewComponentRoot(componentPrefix, made, component.Options[*Referrer]{
		Config: reconcilers.NewConfig(mgr, &Referrer{}, time.Hour),
	})
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatalf("set-up failed: %v", err)
	}
	startManager(t, mgr)
	o.operator = &operator{requests: requests}
	var err error
	if o.client, err = client.New(plane.Config(t), client.Options{Scheme: addReferrer(resources.NewScheme())}); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *referringOperator) says(t *testing.T, r *Referrer, reason string, texts ...string) {
	t.Helper()
	controlplanetest.Eventually(t, "the condition does not say "+reason, func(ctx context.Context) error {
		if err := o.client.Get(ctx, client.ObjectKeyFromObject(r), r); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(r.Status.Conditions, apis.ConditionReady)
		if condition == nil {
			return errors.New("there is no condition")
		}
		for _, text := range texts {
			if condition.Reason != reason || !strings.Contains(condition.Message, text) {
				return fmt.Errorf("the condition is %s: %s", condition.Reason, condition.Message)
			}
		}
		return nil
	})
}

// has waits until the result has a value, and the component is ready.
func (o *referringOperator) has(t *testing.T, r *Referrer, key, value string, revision int64) {
	t.Helper()
	controlplanetest.Eventually(t, "the result does not have "+value, func(ctx context.Context) error {
		result := &corev1.Secret{}
		if err := o.client.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: "referrer-result"}, result); err != nil {
			return err
		}
		if err := o.client.Get(ctx, client.ObjectKeyFromObject(r), r); err != nil {
			return err
		}
		if got := string(result.Data[key]); got != value || r.Status.Revision != revision || r.Status.State != apis.ComponentReady {
			return fmt.Errorf("%s is %q, revision %d, %s", key, got, r.Status.Revision, r.Status.State)
		}
		return nil
	})
}

// allowSecrets lets the service account of the component do something with Secrets.
func (o *referringOperator) allowSecrets(t *testing.T, name, user string, verbs ...string) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: verbs}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
	}
	if err := errors.Join(o.client.Create(t.Context(), role), o.client.Create(t.Context(), binding)); err != nil {
		t.Fatal(err)
	}
}

// A Secret is read as the service account of the component, which needs the right. A change of the Secret starts a revision. At rest there
// are no requests, and the content is nowhere to be seen.
func TestReferencesAreReadAsTheTenant(t *testing.T) {
	t.Parallel()
	o := startReferring(t, &referringGenerator{})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "login"},
		Data:       map[string][]byte{"password": []byte("confidential")},
	}
	r := newReferrer(o.namespace)
	r.Spec.ServiceAccountName = "tenant"
	r.Spec.RetryInterval = &metav1.Duration{Duration: time.Second}
	r.Spec.Password = &generator.SecretKeyReference{Name: "login", Key: "password"}
	user := "system:serviceaccount:" + o.namespace + ":tenant"
	o.allowSecrets(t, "deploy", user, "list", "watch", "create", "patch", "delete")
	if err := o.client.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	// Who may not read the Secret is not even told whether it exists.
	refused := `spec.password: unable to read the Secret "login": secrets "login" is forbidden: User "` + user +
		`" cannot get resource "secrets" in API group "" in the namespace "` + o.namespace + `"`
	o.says(t, r, component.ReasonError, refused)
	if err := o.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	o.says(t, r, component.ReasonError, refused)
	result := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "referrer-result"}}
	if err := goneFrom(o.client, result)(t.Context()); err != nil {
		t.Error(err)
	}

	o.allowSecrets(t, "read", user, "get")
	o.has(t, r, "password", "confidential", 1)
	controlplanetest.Quiet(t, o.requests)

	secret.Data["password"] = []byte("confidential, too")
	if err := o.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	o.has(t, r, "password", "confidential, too", 2)
	controlplanetest.Quiet(t, o.requests)

	if err := o.client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	o.says(t, r, component.ReasonRetrying, `spec.password: the Secret "login" does not exist`)
	secret.ResourceVersion, secret.UID, secret.Data["password"] = "", "", []byte("confidential again")
	began := time.Now()
	if err := o.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	o.has(t, r, "password", "confidential again", 3)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the Secret woke the component after %v, want at most 30s", took)
	}

	events := &eventsv1.EventList{}
	if err := o.client.List(t.Context(), events, client.InNamespace(o.namespace)); err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"the resource": fmt.Sprintf("%+v", r), "an event": fmt.Sprintf("%+v", events.Items), "the log": o.log.String(),
	} {
		if strings.Contains(text, "confidential") || strings.Contains(text, "Y29uZmlkZW50aWFs") {
			t.Errorf("%s shows the secret, want it hidden", what)
		}
	}
	if err := o.client.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it does not go", goneFrom(o.client, r, result))
}

// The operator reads what is referred to where no service account is given. Values come from ConfigMaps, whose change wakes the component.
func TestReferencesAreReadAsTheOperator(t *testing.T) {
	t.Parallel()
	made := &reportingReferrer{referringGenerator: &referringGenerator{}}
	// The client of the manager may read such objects past the cache.
	o := startReferring(t, made, &corev1.ConfigMap{}, &corev1.Secret{})
	values := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "base"},
		Data:       map[string]string{"values.yaml": "values: {roof: red}"},
	}
	r := newReferrer(o.namespace)
	r.Spec.ValuesFrom = []generator.ValuesReference{{Kind: "ConfigMap", Name: "base"}}
	if err := errors.Join(o.client.Create(t.Context(), values), o.client.Create(t.Context(), r)); err != nil {
		t.Fatal(err)
	}
	o.has(t, r, "values-roof", "red", 1)
	controlplanetest.Quiet(t, o.requests)

	values.Data["values.yaml"] = "values: {roof: green}"
	if err := o.client.Update(t.Context(), values); err != nil {
		t.Fatal(err)
	}
	o.has(t, r, "values-roof", "green", 2)
	controlplanetest.Quiet(t, o.requests)

	// An idle request asks for the inputs, and makes no request.
	calls, asked := made.calls.Load(), made.asked.Load()
	o.requests.Reset()
	if err := o.client.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
		t.Fatal(err)
	}
	r.Labels = map[string]string{"a": "b"}
	if err := o.client.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the inputs are not asked for", func(context.Context) error {
		if made.asked.Load() == asked {
			return errors.New("no request")
		}
		return nil
	})
	controlplanetest.Rest(t, o.requests)
	if n := o.requests.Total(); n > 0 || made.calls.Load() != calls || made.asked.Load() != asked+1 {
		t.Errorf("there are %d requests (%s), %d calls and %d questions, want none, none and 1", n, o.requests,
			made.calls.Load()-calls, made.asked.Load()-asked)
	}
}

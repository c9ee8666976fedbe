package component_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// referringRoot is a root for a Referrer in memory.
type referringRoot struct {
	client    client.Client
	root      *reconcilers.ResourceReconciler[*Referrer]
	node      *component.ComponentReconciler[*Referrer]
	generator *referringGenerator
	// reads are the objects of the types that may be referred to that were read with their content.
	reads  []string
	events eventTexts
}

func newReferringRoot(r *Referrer, given ...client.Object) *referringRoot {
	o := &referringRoot{generator: &referringGenerator{}}
	r.UID = "referrer-uid"
	cluster := rtesting.ExpectConfig{
		Scheme:       addReferrer(resources.NewScheme()),
		GivenObjects: append(given, r),
		UseFake:      true,
	}
	config := cluster.Config()
	config.Recorder = &o.events
	o.client = config.Client
	config.APIReader = &readsOf{config.Client, &o.reads}
	o.node = &component.ComponentReconciler[*Referrer]{Prefix: componentPrefix, Generator: o.generator, Parallel: 1, FenceMargin: -1}
	o.root = component.NewComponentRoot(componentPrefix, nil, component.Options[*Referrer]{Config: config})
	o.root.Reconciler = o.node
	return o
}

// readsOf notes what is read.
type readsOf struct {
	client.Reader
	reads *[]string
}

func (r *readsOf) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	switch object.(type) {
	case *corev1.ConfigMap, *corev1.Secret:
		*r.reads = append(*r.reads, fmt.Sprintf("%T %s", object, key.Name))
	}
	return r.Reader.Get(ctx, key, object, options...)
}

func (o *referringRoot) reconcile(t testing.TB) (reconcilers.Result, error) {
	t.Helper()
	o.reads = nil
	request := reconcilers.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "referrer"}}
	return o.root.Reconcile(rtime.StashNow(t.Context(), rtesting.RolledOutAt), request)
}

func (o *referringRoot) settle(t testing.TB) {
	t.Helper()
	for range 3 {
		if _, err := o.reconcile(t); err != nil {
			t.Fatal(err)
		}
	}
}

func (o *referringRoot) get(t testing.TB, name string, object client.Object) {
	t.Helper()
	if err := o.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, object); err != nil {
		t.Fatal(err)
	}
}

func (o *referringRoot) change(t testing.TB, name string, object client.Object, change func()) {
	t.Helper()
	o.get(t, name, object)
	change()
	if err := o.client.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func (o *referringRoot) result(t testing.TB) string {
	t.Helper()
	result := &corev1.Secret{}
	o.get(t, "referrer-result", result)
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(result.Data)) {
		lines = append(lines, key+"="+string(result.Data[key]))
	}
	return strings.Join(lines, " ")
}

func (o *referringRoot) referrer(t testing.TB) *Referrer {
	t.Helper()
	r := &Referrer{}
	o.get(t, "referrer", r)
	return r
}

func dataOf(name string, pairs ...string) (*corev1.ConfigMap, *corev1.Secret) {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "c-uid"}, Data: map[string]string{}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "s-uid"}, Data: map[string][]byte{}}
	for i := 0; i < len(pairs); i += 2 {
		config.Data[pairs[i]], secret.Data[pairs[i]] = pairs[i+1], []byte(pairs[i+1])
	}
	return config, secret
}

// referrerToAll refers to a ConfigMap and a Secret, by references and for values.
func referrerToAll() (*Referrer, *corev1.ConfigMap, *corev1.Secret) {
	r := newReferrer("default")
	r.Spec.Password = &generator.SecretKeyReference{Name: "login", Key: "password"}
	r.Spec.Colors = map[string]generator.ConfigMapReference{"main": {Name: "base"}}
	r.Spec.ValuesFrom = []generator.ValuesReference{
		{Kind: "ConfigMap", Name: "base"}, {Kind: "Secret", Name: "login", Key: "pin", TargetPath: "values.pin"},
	}
	r.Spec.Values = map[string]string{"door": "blue"}
	config, _ := dataOf("base", "values.yaml", "values: {roof: red, door: red}")
	_, secret := dataOf("login", "password", "confidential", "pin", "1234")
	return r, config, secret
}

// What is referred to reaches the generator. Its content is read when it changes, and then starts a revision.
func TestComponentWithReferences(t *testing.T) {
	r, config, secret := referrerToAll()
	o := newReferringRoot(r, config, secret)
	o.settle(t)
	const colors = "colors-main=map[values.yaml:values: {roof: red, door: red}]"
	if got := o.result(t); got != colors+" password=confidential values-door=blue values-pin=1234 values-roof=red" {
		t.Errorf("the result is %s, want the colors and the values of all references", got)
	}
	for _, step := range []struct {
		name            string
		change          func()
		reads           string
		calls, revision int64
		want            string
	}{
		{"nothing", func() {}, "[]", 0, 1, "password=confidential values-door=blue values-pin=1234 values-roof=red"},
		{"the Secret", func() {
			o.change(t, "login", secret, func() { secret.Data["password"] = []byte("secrecy") })
		}, "[*v1.Secret login]", 1, 2, "password=secrecy values-door=blue values-pin=1234 values-roof=red"},
		{"the ConfigMap", func() {
			o.change(t, "base", config, func() { config.Data["values.yaml"] = "values: {roof: green}" })
		}, "[*v1.ConfigMap base]", 1, 3, "password=secrecy values-door=blue values-pin=1234 values-roof=green"},
		{"a label of the ConfigMap", func() {
			o.change(t, "base", config, func() { config.Labels = map[string]string{"a": "b"} })
		}, "[*v1.ConfigMap base]", 0, 3, "password=secrecy values-door=blue values-pin=1234 values-roof=green"},
		{"which value", func() {
			r := &Referrer{}
			o.change(t, "referrer", r, func() { r.Spec.Password.Key, r.Generation = "pin", 2 })
		}, "[]", 1, 4, "password=1234 values-door=blue values-pin=1234 values-roof=green"},
		{"nothing again", func() {}, "[]", 0, 4, "password=1234 values-door=blue values-pin=1234 values-roof=green"},
	} {
		step.change()
		o.generator.calls.Store(0)
		_, err := o.reconcile(t)
		reads, calls := fmt.Sprint(o.reads), o.generator.calls.Load()
		o.settle(t)
		revision := o.referrer(t).Status.Revision
		if err != nil || reads != step.reads || calls != step.calls || revision != step.revision {
			t.Errorf("%s: there are the reads %s, %d calls, revision %d and the error %v, want %s, %d, %d and none",
				step.name, reads, calls, revision, err, step.reads, step.calls, step.revision)
		}
		if got := o.result(t); !strings.HasSuffix(got, "] "+step.want) {
			t.Errorf("%s: the result is %s, want it to end with %q", step.name, got, step.want)
		}
	}
}

// Where something is missing, the component stays as it is. The condition names the field.
func TestComponentWithoutWhatItRefersTo(t *testing.T) {
	r, config, secret := referrerToAll()
	o := newReferringRoot(r, config)
	result, err := o.reconcile(t)
	if err != nil || result.RequeueAfter < 10e9 || result.RequeueAfter > 11e9 {
		t.Errorf("the component comes back after %v with the error %v, want 10 to 11 s and none", result.RequeueAfter,
			err)
	}
	check := func(reason, message string) {
		t.Helper()
		condition := o.referrer(t).Status.Conditions[0]
		if condition.Reason != reason || condition.Message != message {
			t.Errorf("the condition says %s: %s, want %s: %s", condition.Reason, condition.Message, reason, message)
		}
	}
	check("Retrying", `Unable to load what the spec refers to: spec.valuesFrom[1]: the Secret "login" does not exist; `+
		`spec.password: the Secret "login" does not exist`)
	if n := o.generator.calls.Load(); n > 0 {
		t.Errorf("there are %d calls, want none", n)
	}
	if err := o.client.Create(t.Context(), secret.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	o.settle(t)
	check("Ready", "All objects are as desired, and ready")
	before := o.result(t)

	stored := &corev1.Secret{}
	o.change(t, "login", stored, func() { delete(stored.Data, "password") })
	o.settle(t)
	check("Retrying", `Unable to load what the spec refers to: spec.password: the Secret "login" has no key "password"`)
	o.change(t, "login", stored, func() { stored.Data["password"] = []byte("confidential") })
	o.change(t, "base", config, func() { config.Data["values.yaml"] = "confidential" })
	if _, err := o.reconcile(t); err == nil || strings.Contains(err.Error(), "confidential") {
		t.Errorf("the error for values that are no map is %v, want one without the secret", err)
	}
	check("Error", `Unable to merge values: spec.valuesFrom[0]: the key "values.yaml" of the ConfigMap "base" is not a map in YAML`)
	if got := o.result(t); got != before {
		t.Errorf("the result was changed to %s, want %s", got, before)
	}
}

// A deletion waits for nothing that is referred to. Hooks get what there is.
func TestDeletionDoesNotNeedReferences(t *testing.T) {
	for name, hooks := range map[string]bool{"with hooks": true, "without hooks": false} {
		t.Run(name, func(t *testing.T) {
			r, config, secret := referrerToAll()
			o := newReferringRoot(r, config, secret)
			var seen []string
			if hooks {
				o.node.Hooks.PreDelete = append(o.node.Hooks.PreDelete, func(_ context.Context, _ client.Client, r *Referrer) error {
					_, err := r.Spec.Password.Value()
					colors := r.Spec.Colors["main"]
					data, other := colors.Data()
					seen = append(seen, fmt.Sprint(err, len(data), other))
					return nil
				})
			}
			o.settle(t)
			if err := errors.Join(o.client.Delete(t.Context(), secret), o.client.Delete(t.Context(), r)); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if _, err := o.reconcile(t); err != nil {
					t.Fatal(err)
				}
				if !hooks && len(o.reads) > 0 {
					t.Errorf("the reads are %v, want none", o.reads)
				}
			}
			if err := goneFrom(o.client, r)(t.Context()); err != nil {
				t.Error(err)
			}
			if hooks && (len(seen) == 0 || seen[0] != `the Secret "login" does not exist 1 <nil>`) {
				t.Errorf("the hook sees %q, want first that the Secret does not exist", seen)
			}
		})
	}
}

// Nothing of a Secret is in the status, in events or in the digest, and a change of the digest does not tell what changed.
func TestReferencedSecretsAreNotShown(t *testing.T) {
	r, config, secret := referrerToAll()
	o := newReferringRoot(r, config, secret)
	o.settle(t)
	o.change(t, "login", secret, func() { secret.Data["password"] = []byte("confidential, too") })
	o.settle(t)
	text := fmt.Sprintf("%+v %v", o.referrer(t), o.events)
	for _, hidden := range []string{"confidential", "1234", "Y29uZmlkZW50aWFs"} {
		if strings.Contains(text, hidden) {
			t.Errorf("%s is shown, want it hidden: %s", hidden, text)
		}
	}
	// The digest is that of the version, so it says nothing of the content.
	digest := func(password string) string {
		r, config, secret := referrerToAll()
		secret.Data["password"] = []byte(password)
		o := newReferringRoot(r, config, secret)
		o.settle(t)
		return o.referrer(t).Status.ProcessingDigest
	}
	if a, b := digest("a"), digest("b"); a != b || a == "" {
		t.Errorf("the digests of two secrets of one version are %q and %q, want the same", a, b)
	}
}

// What the author refers to counts besides what the spec refers to.
func TestReferencesOfTheAuthorAreKept(t *testing.T) {
	r, config, secret := referrerToAll()
	o := newReferringRoot(r, config, secret)
	identity := "1"
	o.node.References = func(context.Context, *Referrer) (map[string]string, error) {
		return map[string]string{"mine": identity}, nil
	}
	o.settle(t)
	identity = "2"
	o.settle(t)
	if got := o.referrer(t).Status.Revision; got != 2 {
		t.Errorf("the revision is %d, want 2", got)
	}
	o.change(t, "login", secret, func() { secret.Data["password"] = []byte("other") })
	o.settle(t)
	if got := o.referrer(t).Status.Revision; got != 3 {
		t.Errorf("the revision is %d, want 3", got)
	}
}

// The permissions for references are those of the operator's tree.
func TestReferencesAreDescribed(t *testing.T) {
	var uses []string
	for _, access := range (&component.ComponentReconciler[*Referrer]{Prefix: componentPrefix}).Describe().Uses {
		uses = append(uses, fmt.Sprintf("%T %v", access.Object, access.Verbs))
	}
	if want := []string{"*v1.ConfigMap [get list watch]", "*v1.Secret [get list watch]"}; !slices.Equal(uses[len(uses)-2:], want) {
		t.Errorf("the uses are %q, want them to end with %q", uses, want)
	}
	for _, access := range assembling().Describe().Uses {
		// It reads Secrets, for kubeconfigs.
		if _, reads := access.Object.(*corev1.ConfigMap); reads {
			t.Errorf("there is a use of %T without references, want none of ConfigMaps", access.Object)
		}
	}
}

// A plan may be made outside of a request. It tracks nothing.
func TestPlanWithReferences(t *testing.T) {
	r, config, secret := referrerToAll()
	o := newReferringRoot(r, config, secret)
	plan, err := o.node.Plan(reconcilers.StashConfig(t.Context(), o.root.Config), o.referrer(t))
	if err != nil || !strings.Contains(plan.String(), "referrer-result") {
		t.Errorf("the plan is %v and the error %v, want one with referrer-result and none", plan, err)
	}
}

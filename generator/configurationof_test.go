package generator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fullSpec embeds all that there is.
type fullSpec struct {
	generator.PlacementSpec     `json:",inline"`
	generator.ClientSpec        `json:",inline"`
	generator.ImpersonationSpec `json:",inline"`
	generator.SuspensionSpec    `json:",inline"`
	generator.RequeueSpec       `json:",inline"`
	generator.RetrySpec         `json:",inline"`
	generator.TimeoutSpec       `json:",inline"`
	generator.PolicySpec        `json:",inline"`
	generator.TypeSpec          `json:",inline"`
	generator.ReapplySpec       `json:",inline"`
}

type garden struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              fullSpec `json:"spec"`
}

func gardenOf(t *testing.T, spec string) *garden {
	t.Helper()
	g := &garden{ObjectMeta: metav1.ObjectMeta{Namespace: "plots", Name: "garden"}}
	if err := json.Unmarshal([]byte(spec), &g.Spec); err != nil {
		t.Fatal(err)
	}
	return g
}

func defaults(change func(c *generator.Configuration)) generator.Configuration {
	c := generator.Configuration{
		Namespace: "plots", Name: "garden", Requeue: 10 * time.Minute, Retry: 10 * time.Minute, Timeout: 10 * time.Minute,
	}
	if change != nil {
		change(&c)
	}
	return c
}

func TestConfigurationOfSpec(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		want func(c *generator.Configuration)
	}{
		"nothing": {`{}`, nil},
		"everything": {`{
			"namespace": "beds", "name": "roses", "kubeConfig": {"secretRef": {"name": "far", "key": "config"}, "abandonOnDeletion": true},
			"serviceAccountName": "gardener", "suspend": true, "requeueInterval": "1h", "retryInterval": "10s", "timeout": "5m",
			"adoptionPolicy": "Always", "updatePolicy": "Replace", "deletePolicy": "OrphanOnDelete", "prunePolicy": "After",
			"missingNamespacesPolicy": "DoNotCreate", "additionalManagedTypes": [{"group": "*.example.com", "kind": "*"}],
			"reapplyInterval": "2h"
		}`, func(c *generator.Configuration) {
			*c = generator.Configuration{
				Namespace: "beds", Name: "roses", KubeConfigSecret: &generator.SecretKeyReference{Name: "far", Key: "config"}, AbandonOnDeletion: true,
				User: "system:serviceaccount:plots:gardener", Suspended: true, Requeue: time.Hour, Retry: 10 * time.Second, Timeout: 5 * time.Minute,
				ReapplyInterval: 2 * time.Hour, AdoptionPolicy: apis.AdoptAlways, UpdatePolicy: apis.UpdateReplace,
				DeletePolicy: apis.DeleteOrphanOnDelete, PrunePolicy: apis.PruneAfter, MissingNamespacesPolicy: apis.MissingNamespacesDoNotCreate,
				AdditionalManagedTypes: []generator.TypePattern{{Group: "*.example.com", Kind: "*"}},
			}
		}},
		"retry and timeout follow requeue": {`{"requeueInterval": "1m"}`, func(c *generator.Configuration) {
			c.Requeue, c.Retry, c.Timeout = time.Minute, time.Minute, time.Minute
		}},
		"zero is the default": {`{"requeueInterval": "0s", "retryInterval": "0s", "timeout": "0s", "reapplyInterval": "0s"}`, nil},
		"policies in other spellings": {`{"updatePolicy": "SsaOverride", "adoptionPolicy": "if-unowned", "deletePolicy": "default"}`, func(c *generator.Configuration) {
			c.UpdatePolicy, c.AdoptionPolicy = apis.UpdateApplyOverride, apis.AdoptIfUnowned
		}},
		"an abandonment without kubeconfig": {`{"kubeConfig": {"secretRef": {"name": "far"}}}`, func(c *generator.Configuration) {
			c.KubeConfigSecret = &generator.SecretKeyReference{Name: "far"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			resource := gardenOf(t, tc.spec)
			got, err := generator.ConfigurationOf(resource)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(defaults(tc.want), got, cmp.Transformer("fields", fields)); diff != "" {
				t.Errorf("the configuration differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(gardenOf(t, tc.spec), resource); diff != "" {
				t.Errorf("the resource was changed, want it as it was (-want +got):\n%s", diff)
			}
		})
	}
}

// fields keeps cmp from comparing what String returns.
func fields(c generator.Configuration) struct{ C plainConfiguration } {
	return struct{ C plainConfiguration }{plainConfiguration(c)}
}

type plainConfiguration generator.Configuration

func TestConfigurationOfErrors(t *testing.T) {
	for spec, want := range map[string]string{
		`{"requeueInterval": "-1s"}`:              "requeueInterval: must not be negative: -1s",
		`{"retryInterval": "-1s"}`:                "retryInterval: must not be negative: -1s",
		`{"timeout": "-1h"}`:                      "timeout: must not be negative: -1h0m0s",
		`{"reapplyInterval": "-1ns"}`:             "reapplyInterval: must not be negative: -1ns",
		`{"adoptionPolicy": "x"}`:                 `adoptionPolicy: must be one of never, if-unowned, always: "x"`,
		`{"updatePolicy": "x"}`:                   `updatePolicy: must be one of apply, apply-override, replace, recreate: "x"`,
		`{"deletePolicy": "x"}`:                   `deletePolicy: must be one of delete, orphan, orphan-on-apply, orphan-on-delete: "x"`,
		`{"prunePolicy": "x"}`:                    `prunePolicy: must be one of before, with, after: "x"`,
		`{"missingNamespacesPolicy": "x"}`:        `missingNamespacesPolicy: must be one of create, do-not-create: "x"`,
		`{"namespace": "a.b"}`:                    `namespace: is not a name of a namespace: "a.b"`,
		`{"name": "a/b"}`:                         `name: is not a name: "a/b"`,
		`{"serviceAccountName": "other:account"}`: `serviceAccountName: is not a name of a service account: "other:account"`,
		`{"kubeConfig": {}}`:                      `kubeConfig.secretRef.name: is not a name of a Secret: ""`,
		`{"kubeConfig": {"secretRef": {"name": "far", "key": "a/b"}}}`: `kubeConfig.secretRef.key: is not a key of a Secret: "a/b"`,
		`{"additionalManagedTypes": [{"group": "a", "kind": "B"}, {"group": "a*", "kind": "B"}, {"group": "a"}]}`: `additionalManagedTypes[1]: group: must be a group, "*", or "*." and a group: "a*"
additionalManagedTypes[2]: kind: must be a kind, or "*": ""`,
		`{"timeout": "-1h", "name": "..", "updatePolicy": "x"}`: `name: is not a name: ".."
timeout: must not be negative: -1h0m0s
updatePolicy: must be one of apply, apply-override, replace, recreate: "x"`,
	} {
		got, err := generator.ConfigurationOf(gardenOf(t, spec))
		if errorText(err) != want {
			t.Errorf("%s: %q, want %q", spec, errorText(err), want)
		}
		if diff := cmp.Diff(generator.Configuration{}, got, cmp.Transformer("fields", fields)); diff != "" {
			t.Errorf("%s: there is a configuration in spite of an error, want none (-want +got):\n%s", spec, diff)
		}
	}
}

// wilful says things itself that its spec says otherwise.
type wilful struct {
	garden
	user       string
	groups     []string
	kubeConfig []byte
	types      []generator.TypePattern
}

func (w *wilful) GetTimeout() time.Duration                          { return time.Second }
func (w *wilful) GetImpersonationUser() string                       { return w.user }
func (w *wilful) GetImpersonationGroups() []string                   { return w.groups }
func (w *wilful) GetKubeConfig() []byte                              { return w.kubeConfig }
func (w *wilful) GetAdditionalManagedTypes() []generator.TypePattern { return w.types }

func TestConfigurationOfResource(t *testing.T) {
	w := &wilful{
		garden: *gardenOf(t, `{"timeout": "5m", "serviceAccountName": "gardener", "requeueInterval": "1h"}`),
		user:   "jane", groups: []string{"gardeners"}, kubeConfig: []byte("far"), types: []generator.TypePattern{{Kind: "*"}},
	}
	got, err := generator.ConfigurationOf(w)
	if err != nil {
		t.Fatal(err)
	}
	want := defaults(func(c *generator.Configuration) {
		c.User, c.Groups, c.KubeConfig = "jane", []string{"gardeners"}, []byte("far")
		c.Requeue, c.Retry, c.Timeout = time.Hour, time.Hour, time.Second
		c.AdditionalManagedTypes = []generator.TypePattern{{Kind: "*"}}
	})
	if diff := cmp.Diff(want, got, cmp.Transformer("fields", fields)); diff != "" {
		t.Errorf("the configuration differs (-want +got):\n%s", diff)
	}
	w.groups[0], w.kubeConfig[0], w.types[0].Kind = "x", 'x', "x"
	if diff := cmp.Diff(want, got, cmp.Transformer("fields", fields)); diff != "" {
		t.Errorf("the configuration shares something with the resource, want nothing (-want +got):\n%s", diff)
	}
	w.user, w.types = "", nil
	if _, err := generator.ConfigurationOf(w); errorText(err) != "impersonation: there are groups, but no user" {
		t.Errorf("the error is %v, want one about groups without a user", err)
	}
	w.groups = nil
	w.Spec.KubeConfig = &generator.KubeConfigSpec{SecretRef: generator.SecretKeyReference{Name: "far"}}
	if _, err := generator.ConfigurationOf(w); errorText(err) != "kubeConfig: is given by the resource and by reference to a Secret; only one of them may be" {
		t.Errorf("the error is %v, want that only one kubeconfig may be given", err)
	}
	w.kubeConfig = []byte{}
	if got, err := generator.ConfigurationOf(w); err != nil || got.KubeConfig != nil || got.KubeConfigSecret == &w.Spec.KubeConfig.SecretRef {
		t.Errorf("the configuration is %#v (%v), want no kubeconfig and a copy of the reference", got, err)
	}
}

// A resource cannot ask for an identity that no role limits.
func TestImpersonationThatIsRefused(t *testing.T) {
	const masters = "impersonation: the group system:masters is refused: it may do anything, whatever the roles are"
	for name, test := range map[string]struct {
		user   string
		groups []string
		want   string
	}{
		"administrators":              {"jane", []string{"gardeners", "system:masters"}, masters},
		"a service account with them": {"system:serviceaccount::jane", []string{"system:masters"}, masters},
		"a controller":                {"system:kube-controller-manager", nil, "impersonation: the user \"system:kube-controller-manager\" of Kubernetes itself is refused, unless Configure sets it"},
		"an administrator":            {"system:admin", nil, "impersonation: the user \"system:admin\" of Kubernetes itself is refused, unless Configure sets it"},
		"a group without a name":      {"jane", []string{""}, "impersonation: a group has no name"},
		"a service account":           {"system:serviceaccount:other:jane", nil, ""},
		"other groups":                {"jane", []string{"b", "a"}, ""},
	} {
		_, err := generator.ConfigurationOf(&wilful{garden: *gardenOf(t, `{}`), user: test.user, groups: test.groups})
		if errorText(err) != test.want {
			t.Errorf("%s: got %q, want %q", name, errorText(err), test.want)
		}
	}
}

type panicking struct{ garden }

func (p *panicking) IsSuspended() bool         { panic("a secret") }
func (p *panicking) GetTimeout() time.Duration { return -1 }

func TestConfigurationOfStrangeResources(t *testing.T) {
	for name, resource := range map[string]any{"nil": nil, "nil pointer": (*garden)(nil), "number": 42, "no spec": struct{}{}} {
		got, err := generator.ConfigurationOf(resource)
		want := defaults(func(c *generator.Configuration) { c.Namespace, c.Name = "", "" })
		if diff := cmp.Diff(want, got, cmp.Transformer("fields", fields)); err != nil || diff != "" {
			t.Errorf("%s: the error is %v, want none, and the configuration differs (-want +got):\n%s", name, err, diff)
		}
	}
	_, err := generator.ConfigurationOf(&panicking{})
	if want := "SuspensionConfiguration panicked\ntimeout: must not be negative: -1ns"; errorText(err) != want {
		t.Errorf("the error is %q, want %q", errorText(err), want)
	}
	// To overlook the spec could mean to deploy to the wrong cluster.
	if _, err := generator.ConfigurationOf(&withPanic{}); errorText(err) != "GetSpec panicked" {
		t.Errorf("the error is %v, want GetSpec panicked", err)
	}
	clusterWide := gardenOf(t, `{"serviceAccountName": "gardener"}`)
	clusterWide.Namespace = ""
	if _, err := generator.ConfigurationOf(clusterWide); errorText(err) != `serviceAccountName: the resource is in no namespace in which "gardener" could be` {
		t.Errorf("the error is %v, want that the resource is in no namespace", err)
	}
	// Where the component is deployed to has nothing to do with where its service account is.
	clusterWide.Spec.Namespace = "kube-system"
	if _, err := generator.ConfigurationOf(clusterWide); err == nil {
		t.Error("the service account is taken from the namespace that is deployed to, want an error")
	}
}

func TestConfigurationIsPrintedWithoutKubeConfig(t *testing.T) {
	c := generator.Configuration{Namespace: "plots", Name: "garden", KubeConfig: []byte("token: hunter2"), User: "jane"}
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	secret := fmt.Sprint(c.KubeConfig)
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprintf("%v", &c), string(encoded)} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, strings.Trim(secret, "[]")) || strings.Contains(text, "dG9rZW4") {
			t.Errorf("the kubeconfig is shown, want it hidden: %s", text)
		}
	}
	if got := c.String(); got != "plots/garden in another cluster as jane" {
		t.Errorf("the text is %q, want the component in another cluster as jane", got)
	}
	c.KubeConfig, c.KubeConfigSecret = nil, &generator.SecretKeyReference{Name: "far"}
	if got := c.String(); got != "plots/garden in the cluster of Secret far as jane" {
		t.Errorf("the text is %q, want the component in the cluster of Secret far as jane", got)
	}
}

// said returns what v says about its deployment namespace.
func said(v any) string {
	placement, ok := generator.Lookup[generator.PlacementConfiguration](v)
	if !ok {
		return "nothing"
	}
	return placement.GetDeploymentNamespace()
}

type (
	placedSpec  struct{ generator.PlacementSpec }
	pointerSpec struct{ *generator.PlacementSpec }
	plainSpec   struct{ A string }
)

type (
	withField        struct{ Spec placedSpec }
	withPointer      struct{ Spec *placedSpec }
	withInterface    struct{ Spec any }
	withPlain        struct{ Spec plainSpec }
	withNilEmbedded  struct{ Spec pointerSpec }
	withPromotion    struct{ *withField }
	hidden           struct{ Spec placedSpec }
	withHidden       struct{ hidden }
	withMap          struct{ Spec generator.UnstructurableMap }
	withUnexported   struct{ spec placedSpec }
	withGetter       struct{ other placedSpec }
	withValueGetter  struct{ other placedSpec }
	withBoth         struct{ Spec placedSpec }
	withNilGetter    struct{ Spec placedSpec }
	withOddGetter    struct{ Spec placedSpec }
	withPanic        struct{ Spec placedSpec }
	withCrash        struct{ other *placedSpec }
	withOwn          struct{ Spec placedSpec }
	withValueMethods struct{ Spec valueSpec }
	valueSpec        struct{ namespace string }
)

func (w *withGetter) GetSpec() any                 { return &w.other }
func (w withValueGetter) GetSpec() placedSpec      { return w.other }
func (w *withBoth) GetSpec() *plainSpec            { return &plainSpec{} }
func (w *withNilGetter) GetSpec() *placedSpec      { return nil }
func (w *withOddGetter) GetSpec(int) (any, error)  { return nil, nil }
func (w *withPanic) GetSpec() any                  { panic("a secret") }
func (w *withCrash) GetSpec() any                  { return &plainSpec{w.other.Name} }
func (w *withOwn) GetDeploymentNamespace() string  { return "own" }
func (w *withOwn) GetDeploymentName() string       { return "" }
func (v valueSpec) GetDeploymentNamespace() string { return v.namespace }
func (v valueSpec) GetDeploymentName() string      { return "" }

// Lookup finds what a spec implements, although the resource does not, and never panics.
func TestLookup(t *testing.T) {
	placed := placedSpec{generator.PlacementSpec{Namespace: "spec"}}
	for name, tc := range map[string]struct {
		resource any
		want     string
	}{
		"nil":                      {nil, "nothing"},
		"nil pointer":              {(*withOwn)(nil), "nothing"},
		"no struct":                {42, "nothing"},
		"map":                      {map[string]any{"Spec": placed}, "nothing"},
		"resource wins":            {&withOwn{placed}, "own"},
		"Spec field":               {&withField{placed}, "spec"},
		"Spec field of a value":    {withField{placed}, "spec"},
		"Spec pointer":             {&withPointer{&placed}, "spec"},
		"Spec pointer, nil":        {&withPointer{}, "nothing"},
		"Spec interface":           {&withInterface{placed}, "spec"},
		"Spec interface, pointer":  {&withInterface{&placed}, "spec"},
		"Spec interface, nil":      {&withInterface{}, "nothing"},
		"Spec without it":          {&withPlain{}, "nothing"},
		"Spec map":                 {&withMap{generator.UnstructurableMap{}}, "nothing"},
		"spec, unexported":         {&withUnexported{placed}, "nothing"},
		"nil embedded in the spec": {&withNilEmbedded{}, ""},
		"promoted Spec":            {&withPromotion{&withField{placed}}, "spec"},
		"promoted through nil":     {&withPromotion{}, "nothing"},
		"promoted, hidden":         {&withHidden{hidden{placed}}, "spec"},
		"value methods":            {&withValueMethods{valueSpec{"value"}}, "value"},
		"GetSpec":                  {&withGetter{placed}, "spec"},
		"GetSpec of a value":       {&withValueGetter{placed}, "spec"},
		"GetSpec, then field":      {&withBoth{placed}, "spec"},
		"GetSpec nil, then field":  {&withNilGetter{placed}, "spec"},
		"GetSpec, other signature": {&withOddGetter{placed}, "spec"},
		"GetSpec panics":           {&withPanic{placed}, "nothing"},
		"GetSpec dereferences nil": {&withCrash{}, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := said(tc.resource); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLookupReachesTheSpecItself(t *testing.T) {
	resource := &withField{placedSpec{generator.PlacementSpec{Namespace: "before"}}}
	placement, _ := generator.Lookup[generator.PlacementConfiguration](resource)
	resource.Spec.Namespace = "after"
	if got := placement.GetDeploymentNamespace(); got != "after" {
		t.Errorf("the namespace is %q, want that of the spec itself, after", got)
	}
}

func TestSpecOf(t *testing.T) {
	resource := &withField{}
	if got, err := generator.SpecOf(resource); err != nil || got != any(&resource.Spec) {
		t.Errorf("the spec is %v (%v), want the field of the resource", got, err)
	}
	getter := &withGetter{}
	if got, err := generator.SpecOf(getter); err != nil || got != any(&getter.other) {
		t.Errorf("the spec is %v (%v), want that of GetSpec", got, err)
	}
	for _, none := range []any{nil, 42, (*withField)(nil), &withPointer{}} {
		if got, err := generator.SpecOf(none); err != nil || got != nil {
			t.Errorf("%T: the spec is %v (%v), want neither", none, got, err)
		}
	}
	if got, err := generator.SpecOf(&withPanic{}); errorText(err) != "GetSpec panicked" || got != nil {
		t.Errorf("the spec is %v and the error %v, want none and GetSpec panicked", got, err)
	}
	_, err := generator.SpecOf(&withCrash{})
	if want := "GetSpec panicked: runtime error: invalid memory address or nil pointer dereference"; errorText(err) != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	var crash interface{ RuntimeError() }
	if !errors.As(err, &crash) {
		t.Errorf("the error %v does not have its cause, want the runtime error in it", err)
	}
}

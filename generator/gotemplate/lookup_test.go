package gotemplate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/gotemplate"
)

const password = "hunter2-secret"

func secret(namespace, name string, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Data:       map[string][]byte{"password": []byte(password)},
	}
}

// clusters are the clients of a component, and the number of their requests.
type clusters struct {
	target, local client.Client
	requests      int
}

func newClusters() *clusters {
	c := &clusters{}
	counting := interceptor.Funcs{
		Get: func(ctx context.Context, in client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			c.requests++
			return in.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, in client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			c.requests++
			return in.List(ctx, list, options...)
		},
	}
	with := func(objects ...client.Object) client.Client {
		return fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(counting).Build()
	}
	c.target = with(secret("shop", "b", nil), secret("shop", "a", map[string]string{"app": "shop"}), secret("other", "c", nil))
	c.local = with(secret("home", "local", nil))
	return c
}

func (c *clusters) context() context.Context {
	return generator.NewContext(context.Background()).WithClient(c.target).WithLocalClient(c.local)
}

func execute(t *testing.T, ctx context.Context, text string) (string, error) {
	t.Helper()
	set, err := gotemplate.Parse(map[string]string{"test": text}, gotemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set.Execute(ctx, "test", map[string]any{"secret": password, "nil": nil}, nil)
}

func TestLookup(t *testing.T) {
	tests := map[string]struct{ text, want, err string }{
		"an object":               {text: `{{ (lookup "v1" "Secret" "shop" "a").metadata.name }}`, want: "a"},
		"no object":               {text: `{{ lookup "v1" "Secret" "shop" "none" }}`, want: "map[]"},
		"no object, must":         {text: `{{ mustLookup "v1" "Secret" "shop" "none" }}`, err: "unable to look up v1 Secret none in namespace shop: there is none"},
		"an object, must":         {text: `{{ (mustLookup "v1" "Secret" "shop" "a").data.password | b64dec }}`, want: password},
		"all, sorted":             {text: `{{ range (lookup "v1" "Secret" "shop" "").items }}{{ .metadata.name }} {{ end }}`, want: "a b "},
		"of all namespaces":       {text: `{{ range (lookup "v1" "Secret" "" "").items }}{{ .metadata.name }} {{ end }}`, want: "c a b "},
		"with labels":             {text: `{{ range (lookupList "v1" "Secret" "shop" "app=shop").items }}{{ .metadata.name }} {{ end }}`, want: "a "},
		"with all labels":         {text: `{{ len (lookupList "v1" "Secret" "shop" "").items }}`, want: "2"},
		"no labels":               {text: `{{ len (lookupList "v1" "Secret" "shop" "app=none").items }}`, want: "0"},
		"a wrong selector":        {text: `{{ lookupList "v1" "Secret" "shop" "a b" }}`, err: "unable to look up list of v1 Secret in namespace shop: label selector:"},
		"local":                   {text: `{{ (localLookup "v1" "Secret" "home" "local").metadata.name }}{{ localLookup "v1" "Secret" "shop" "a" }}`, want: "localmap[]"},
		"local, must":             {text: `{{ mustLocalLookup "v1" "Secret" "shop" "a" }}`, err: "there is none"},
		"local list":              {text: `{{ len (localLookupList "v1" "Secret" "" "").items }}`, want: "1"},
		"with a kubeconfig":       {text: `{{ lookupWithKubeConfig "v1" "Secret" "shop" "a" .secret }}`, err: "templates cannot look up anything with a kubeconfig"},
		"with a kubeconfig, must": {text: `{{ mustLookupWithKubeConfig "v1" "Secret" "shop" "a" .secret }}`, err: "with a kubeconfig"},
		"list with a kubeconfig":  {text: `{{ lookupListWithKubeConfig "v1" "Secret" "shop" "a" .secret }}`, err: "with a kubeconfig"},
		"a range over a text":     {text: `{{ range (lookup "v1" "Secret" "shop" "a").data.password }}{{ end }}`, err: "range can't iterate over a value"},
		"a secret as a date":      {text: `{{ mustToDate "2006" (lookup "v1" "Secret" "shop" "a").data.password }}`, err: "mustToDate: it does not accept its arguments"},
		"a secret as a URL":       {text: `{{ urlParse (print ":" .secret) }}`, err: "urlParse: it does not accept its arguments"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := execute(t, newClusters().context(), tc.text)
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("want error %q, got %v", tc.err, err)
			}
			if tc.err == "" && (err != nil || got != tc.want) {
				t.Errorf("want %q, got %q, %v", tc.want, got, err)
			}
			if err != nil && (strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "aHVudGVyMi")) {
				t.Errorf("the error shows the secret, want it hidden: %v", err)
			}
		})
	}
}

func TestMustLookupIsTriedAgain(t *testing.T) {
	_, err := execute(t, newClusters().context(), `{{ mustLookup "v1" "Secret" "shop" "none" }}`)
	var retriable *generator.RetriableError
	if !errors.As(err, &retriable) {
		t.Errorf("the error is %v, want a %T", err, retriable)
	}
}

func TestLookupWithoutClient(t *testing.T) {
	for _, text := range []string{`{{ lookup "v1" "Secret" "a" "b" }}`, `{{ localLookupList "v1" "Secret" "a" "b" }}`} {
		if _, err := execute(t, context.Background(), text); err == nil || !strings.Contains(err.Error(), "client not found in context") {
			t.Errorf("the error is %v, want that the client is not found in the context", err)
		}
	}
}

func TestLookupErrorsAreErrors(t *testing.T) {
	forbidden := errors.New("forbidden")
	failing := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return forbidden
		},
	}).Build()
	ctx := generator.NewContext(context.Background()).WithClient(failing)
	for _, text := range []string{`{{ lookup "v1" "Secret" "a" "b" }}`, `{{ lookup "v1" "Secret" "a" "" }}`, `{{ mustLookup "v1" "Secret" "a" "b" }}`} {
		if _, err := execute(t, ctx, text); !errors.Is(err, forbidden) {
			t.Errorf("%s: the error is %v, want %v", text, err, forbidden)
		}
	}
}

func TestLookupsAreRecorded(t *testing.T) {
	var lookups gotemplate.Lookups
	ctx := gotemplate.WithLookups(newClusters().context(), &lookups)
	_, err := execute(t, ctx, `{{ lookup "v1" "Secret" "shop" "none" }}{{ lookup "v1" "Secret" "shop" "a" }}{{ lookup "v1" "Secret" "shop" "a" }}
		{{ localLookup "v1" "Secret" "home" "local" }}{{ lookupList "v1" "Secret" "" "app=shop" }}{{ lookup "v1" "Secret" "shop" "" }}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []gotemplate.Lookup{
		{APIVersion: "v1", Kind: "Secret", Selector: "app=shop"},
		{APIVersion: "v1", Kind: "Secret", Namespace: "shop"},
		{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "a"},
		{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "none"},
		{APIVersion: "v1", Kind: "Secret", Namespace: "home", Name: "local", Local: true},
	}
	if diff := cmp.Diff(want, lookups.List()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestIdentityOfLookups(t *testing.T) {
	c := newClusters()
	ctx := c.context()
	var lookups gotemplate.Lookups
	for _, lookup := range []gotemplate.Lookup{
		{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "a"},
		{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "late"},
		{APIVersion: "v1", Kind: "Secret", Namespace: "other"},
		{APIVersion: "v1", Kind: "Secret", Namespace: "home", Name: "local", Local: true},
	} {
		lookups.Add(lookup)
	}
	identity := func() string {
		t.Helper()
		c.requests = 0
		got, err := lookups.Identity(ctx)
		if err != nil || c.requests != 4 {
			t.Fatalf("there are %d requests (%v), want 4", c.requests, err)
		}
		if strings.Contains(got, password) {
			t.Errorf("the identity shows the secret, want it hidden: %s", got)
		}
		return got
	}
	before := identity()
	if got := identity(); got != before {
		t.Errorf("want %s again, got %s", before, got)
	}
	change := func(in client.Client, namespace, name string) {
		t.Helper()
		object := secret(namespace, name, nil)
		if err := in.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		object.Data["password"] = []byte("another")
		if err := in.Update(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	changes := []struct {
		name    string
		changes bool
		do      func()
	}{
		{"an object changes", true, func() { change(c.target, "shop", "a") }},
		{"an object appears", true, func() { _ = c.target.Create(ctx, secret("shop", "late", nil)) }},
		{"one of a list changes", true, func() { change(c.target, "other", "c") }},
		{"one of a list appears", true, func() { _ = c.target.Create(ctx, secret("other", "d", nil)) }},
		{"one of a list disappears", true, func() { _ = c.target.Delete(ctx, secret("other", "c", nil)) }},
		{"a local one changes", true, func() { change(c.local, "home", "local") }},
		{"another one changes", false, func() { change(c.target, "shop", "b") }},
	}
	for _, tc := range changes {
		tc.do()
		after := identity()
		if changed := after != before; changed != tc.changes {
			t.Errorf("%s: the identity changed: %t, want %t", tc.name, changed, tc.changes)
		}
		before = after
	}
}

func TestIdentityWithoutLookups(t *testing.T) {
	var none *gotemplate.Lookups
	none.Add(gotemplate.Lookup{})
	want, err := (&gotemplate.Lookups{}).Identity(context.Background())
	if err != nil || want == "" {
		t.Fatalf("the identity of no lookups is %q (%v), want some", want, err)
	}
	if got, err := none.Identity(context.Background()); err != nil || got != want {
		t.Errorf("the identity of nil is %q (%v), want %q", got, err, want)
	}
	none = &gotemplate.Lookups{}
	none.Add(gotemplate.Lookup{APIVersion: "v1", Kind: "Secret", Name: "a"})
	if _, err := none.Identity(context.Background()); err == nil {
		t.Error("the error without a client is nil, want one")
	}
}

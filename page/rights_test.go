package page_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/page"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// only lets a viewer get what it names: "*" for all, a namespace with a slash, or a namespace and a name.
type only []string

func (o only) Viewer(*http.Request) (page.Viewer, error) { return o, nil }

func (o only) Name() string { return "viewer" }

func (o only) May(_ context.Context, verb string, kind schema.GroupVersionKind, namespace, name string) (bool, error) {
	if verb != "get" {
		return false, errors.New("it is asked to " + verb)
	}
	if kind.Kind != "Widget" {
		return false, errors.New("it is asked for " + kind.Kind)
	}
	right := namespace + "/" + name
	if namespace == "" {
		right = "*"
	}
	return slices.Contains(o, "*") || slices.Contains(o, namespace+"/") || slices.Contains(o, right), nil
}

// A viewer without the right to get a resource sees its kind and its name, and nothing else.
func TestAViewerWithoutRightsSeesNamesOnly(t *testing.T) {
	const secret = "what only some may know"
	for _, test := range []struct {
		name   string
		access only
		list   bool
		one    bool
	}{
		{"nothing", only{}, false, false},
		{"one resource", only{"default/w"}, false, true},
		{"a namespace", only{"default/"}, true, true},
		{"all", only{"*"}, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, page.Options{Access: test.access}, "w")
			w.reason, w.message = "NoPod", secret
			w.check = func(string) error { return nil }
			w.settle(t, "w")
			for path, want := range map[string]bool{
				"":                             false,
				"root?root=widgets":            test.list,
				"root?root=widgets&fragment=1": test.list,
				"dump":                         test.list,
				"resource?root=widgets&namespace=default&name=w":            test.one,
				"resource?root=widgets&namespace=default&name=w&fragment=1": test.one,
			} {
				a := w.get(t, path)
				if a.StatusCode != http.StatusOK {
					t.Errorf("GET %q: %s", path, a.Status)
				}
				if got := strings.Contains(a.body, secret); got != want {
					t.Errorf("GET %q shows the message: %v, wanted %v", path, got, want)
				}
			}
			if a := w.get(t, "root?root=widgets"); !strings.Contains(a.body, "default/w") {
				t.Error("the list lacks the name of the resource")
			}
			for _, filter := range []string{"q=NoPod", "state=Changed"} {
				table := w.document(t, "root?root=widgets&"+filter).all("table")[0]
				if got := len(table.rows()) - 1; (got == 1) != test.list {
					t.Errorf("the filter %s finds %d resources", filter, got)
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	from := func(change func(*http.Request)) func(*http.Request) { return change }
	host := func(name string) func(*http.Request) { return from(func(r *http.Request) { r.Host = name }) }
	origin := func(o string) func(*http.Request) { return from(func(r *http.Request) { r.Header.Set("Origin", o) }) }
	at := func(address string) func(*http.Request) {
		return from(func(r *http.Request) {
			local := &net.TCPAddr{IP: net.ParseIP(address), Port: 8080}
			*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
		})
	}
	for _, test := range []struct {
		name   string
		access page.Access
		change func(*http.Request)
		want   int
	}{
		{"no access is set", nil, host("localhost"), http.StatusForbidden},
		{"a name of this machine", page.OnLoopback(), host("localhost:8080"), http.StatusOK},
		{"an address of this machine", page.OnLoopback(), host("127.0.0.1:8080"), http.StatusOK},
		{"an address of version 6", page.OnLoopback(), host("[::1]:8080"), http.StatusOK},
		{"an address of version 6 without a port", page.OnLoopback(), host("[::1]"), http.StatusOK},
		{"a name that leads here", page.OnLoopback(), host("evil.example:8080"), http.StatusForbidden},
		{"a name that begins like one of this machine", page.OnLoopback(), host("localhost.evil.example"), 403},
		{"an address that begins like one", page.OnLoopback(), host("127.0.0.1.evil.example"), 403},
		{"no host", page.OnLoopback(), host(""), http.StatusForbidden},
		{"its own page", page.OnLoopback(), origin("http://localhost:8080"), http.StatusOK},
		{"a page of another site", page.OnLoopback(), origin("https://evil.example"), http.StatusForbidden},
		{"a page of another port", page.OnLoopback(), origin("http://localhost:9999"), http.StatusForbidden},
		{"a page without an origin", page.OnLoopback(), origin("null"), http.StatusForbidden},
		{"a loopback address", page.OnLoopback(), at("127.0.0.1"), http.StatusOK},
		{"an address of the network", page.OnLoopback(), at("10.0.0.1"), http.StatusForbidden},
		{"a write", only{"*"}, func(r *http.Request) { r.Method = http.MethodPost }, http.StatusMethodNotAllowed},
		{"another page", only{"*"}, func(r *http.Request) { r.URL.Path += "other" }, http.StatusNotFound},
	} {
		w := newWorld(t, page.Options{Access: test.access})
		a := w.get(t, "", test.change)
		if a.StatusCode != test.want {
			t.Errorf("%s: the answer is %s, not %d", test.name, a.Status, test.want)
		}
		const want = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; " +
			"base-uri 'none'; frame-ancestors 'none'"
		if got := a.Header.Get("Content-Security-Policy"); got != want {
			t.Errorf("%s: the policy is %q, not %q", test.name, got, want)
		}
	}
}

// reviewer is a client that answers reviews: a token is good if it is "token", and its user may get all in "default".
type reviewer struct {
	client.Client
	mapper meta.RESTMapper
	asked  []string
	err    error
	// denies is true if nobody may do anything.
	denies bool
}

func (r *reviewer) RESTMapper() meta.RESTMapper { return r.mapper }

func (r *reviewer) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	if r.err != nil {
		return r.err
	}
	switch review := obj.(type) {
	case *authenticationv1.TokenReview:
		r.asked = append(r.asked, "who is "+review.Spec.Token)
		if review.Status.Authenticated = review.Spec.Token == "token"; review.Status.Authenticated {
			review.Status.User = authenticationv1.UserInfo{
				Username: "ann", UID: "1", Groups: []string{"staff"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}},
			}
		}
	case *authorizationv1.SubjectAccessReview:
		s, a := review.Spec, review.Spec.ResourceAttributes
		if s.User != "ann" || s.UID != "1" || !slices.Equal(s.Groups, []string{"staff"}) || s.Extra["k"][0] != "v" {
			return errors.New("the review is of another user")
		}
		r.asked = append(r.asked, strings.TrimSpace(strings.Join([]string{
			s.User, a.Verb, a.Resource + "." + a.Group, a.Version, a.Namespace, a.Name,
		}, " ")))
		review.Status.Allowed = a.Namespace == "default" && !r.denies
	}
	return nil
}

func newReviewer() *reviewer {
	version := schema.GroupVersion{Group: "test.espalier.dev", Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{version})
	mapper.Add(version.WithKind("Widget"), meta.RESTScopeNamespace)
	return &reviewer{mapper: mapper}
}

func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// The API server says who a viewer is and what it may get. Its answers count for a while.
func TestReviews(t *testing.T) {
	reviewer := newReviewer()
	w := newWorld(t, page.Options{Access: page.Reviews(reviewer)}, "w", "away")
	w.settle(t, "w")
	w.settle(t, "away")
	for _, step := range []struct {
		name, path string
		change     func(*http.Request)
		status     int
		want       []string
	}{
		{"no token", "", func(*http.Request) {}, 401, nil},
		{"a password", "", func(r *http.Request) { r.SetBasicAuth("ann", "password") }, 401, nil},
		{"a token of nobody", "", bearer("other"), 401, []string{"who is other"}},
		{"the same token", "", bearer("other"), 401, nil},
		{"the overview", "", bearer("token"), 200, []string{"who is token"}},
		{"the list", "root?root=widgets", bearer("token"), 200, []string{
			"ann get widgets.test.espalier.dev v1", "ann get widgets.test.espalier.dev v1 default",
		}},
		{"the list again", "root?root=widgets", bearer("token"), 200, nil},
		{"a resource", "resource?root=widgets&namespace=default&name=w", bearer("token"), 200, []string{
			"ann get widgets.test.espalier.dev v1 default w",
		}},
	} {
		reviewer.asked = nil
		a := w.get(t, step.path, step.change)
		if a.StatusCode != step.status {
			t.Errorf("%s: the answer is %s, not %d", step.name, a.Status, step.status)
		}
		if diff := cmp.Diff(step.want, reviewer.asked); diff != "" {
			t.Errorf("%s: (-want, +asked)\n%s", step.name, diff)
		}
	}
	reviewer.err = errors.New("an address of the API server")
	for _, path := range []string{"", "resource?root=widgets&namespace=default&name=away"} {
		token := "token"
		if path == "" {
			token = "new"
		}
		a := w.get(t, path, bearer(token))
		if a.StatusCode != http.StatusServiceUnavailable || strings.Contains(a.body, reviewer.err.Error()) {
			t.Errorf("GET %q while the API server is away: %s: %s", path, a.Status, a.body)
		}
	}
}

// The filter of controller-runtime removes the token of a request.
func TestKeepToken(t *testing.T) {
	removing := func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
		return func(_ logr.Logger, next http.Handler) (http.Handler, error) {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Del("Authorization")
				next.ServeHTTP(w, r)
			}), nil
		}, nil
	}
	for _, test := range []struct {
		name     string
		provider page.FilterProvider
		want     int
	}{{"as it is", removing, http.StatusUnauthorized}, {"kept", page.KeepToken(removing), http.StatusOK}} {
		w := newWorld(t, page.Options{Access: page.Reviews(newReviewer())})
		filter, err := test.provider(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		handler, err := filter(logr.Discard(), w.page)
		if err != nil {
			t.Fatal(err)
		}
		if a := serve(t, handler, "", bearer("token")); a.StatusCode != test.want {
			t.Errorf("%s: the answer is %s, not %d", test.name, a.Status, test.want)
		}
	}
}

// A viewer without the right gets no stream of a resource. Of what the page does not know there is none, and nobody is
// asked for the rights to it: with names that they make up, viewers could ask the API server as often as they like.
func TestAViewerWithoutRightsFollowsNothing(t *testing.T) {
	client := newReviewer()
	w := newWorld(t, page.Options{Access: page.Reviews(client)}, "w")
	w.settle(t, "w")
	for _, test := range []struct {
		query    string
		want     int
		reviewed bool
	}{
		{"root=widgets&namespace=elsewhere&name=w", http.StatusNotFound, false},
		{"root=widgets&namespace=default&name=later", http.StatusNotFound, false},
		{"root=others&namespace=default&name=w", http.StatusNotFound, false},
		{"root=others", http.StatusNotFound, false},
		{"root=widgets&namespace=default&name=w", http.StatusForbidden, true},
	} {
		client.asked, client.denies = nil, true
		a := w.get(t, "events?"+test.query, bearer("token"))
		reviewed := slices.ContainsFunc(client.asked, func(asked string) bool { return strings.HasPrefix(asked, "ann get ") })
		if a.StatusCode != test.want || reviewed != test.reviewed {
			t.Errorf("the stream %s: the answer is %s, not %d, and the API server was asked for %q", test.query, a.Status,
				test.want, client.asked)
		}
	}
}

// An API server quotes the values that it refuses. They are content of an object that the viewer may not get.
func TestErrorsAreShownWithoutValues(t *testing.T) {
	w := newWorld(t, page.Options{Access: page.OnLoopback()}, "w")
	const value = "hunter2"
	refused := apierrors.NewInvalid(schema.GroupKind{Kind: "Vault"}, "v", field.ErrorList{
		field.Invalid(field.NewPath("spec", "password"), value, "is too short"),
	})
	w.check = func(string) error { return fmt.Errorf("write it: %w", refused) }
	_ = w.reconcile(t, began, "w")
	for _, path := range []string{"root?root=widgets", "resource?root=widgets&namespace=default&name=w", "dump"} {
		a := w.get(t, path)
		if strings.Contains(a.body, value) || !strings.Contains(a.body, "spec.password (FieldValueInvalid)") {
			t.Errorf("GET %q: it has the value, or does not name the field: %s", path, a.body)
		}
	}
}

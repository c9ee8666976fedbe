package page_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/testing/fake"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// verbs lets a viewer do what it names: a verb and a kind.
type verbs []string

func (v verbs) Viewer(r *http.Request) (page.Viewer, error) {
	return named{v, r.Header.Get("Name")}, nil
}

type named struct {
	verbs
	name string
}

func (n named) Name() string { return n.name }

func (n named) May(_ context.Context, verb string, kind schema.GroupVersionKind, _, _ string) (bool, error) {
	return slices.Contains(n.verbs, verb+" "+kind.Kind), nil
}

const componentPath = "component?component=AssemblyResourceReconciler%2FComponentReconciler&name=house&" +
	"namespace=default&root=assembly"

// form returns the values of the form that asks for a plan, or nil.
func (h *house) form(t *testing.T, change ...func(*http.Request)) url.Values {
	t.Helper()
	w := world{page: h.page}
	for _, form := range w.document(t, componentPath, change...).all("form") {
		if form.attribute("action") == "plan" && form.attribute("method") == "post" {
			values := url.Values{}
			for _, input := range form.all("input") {
				values.Set(input.attribute("name"), input.attribute("value"))
			}
			return values
		}
	}
	return nil
}

// post sends a form.
func (h *house) post(t *testing.T, values url.Values, change ...func(*http.Request)) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost:8080/some/prefix/plan",
		strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range change {
		c(r)
	}
	recorder := httptest.NewRecorder()
	h.page.ServeHTTP(recorder, r)
	return answer{Response: recorder.Result(), body: recorder.Body.String()}
}

// plan asks for a plan, and returns the page that the browser is sent to.
func (h *house) plan(t *testing.T, change ...func(*http.Request)) element {
	t.Helper()
	a := h.post(t, h.form(t, change...), change...)
	if want := componentPath + "#plan"; a.StatusCode != http.StatusSeeOther ||
		a.Header.Get("Location") != want {
		t.Fatalf("the answer is %s to %q, not 303 to %q: %s", a.Status, a.Header.Get("Location"), want, a.body)
	}
	w := world{page: h.page}
	return w.document(t, componentPath, change...)
}

// planRows returns the rows of the table of a plan, without its head.
func planRows(doc element) [][]string {
	for _, div := range doc.all("div") {
		if div.attribute("aria-label") == "Changes" {
			return div.rows()[1:]
		}
	}
	return nil
}

func with(obj client.Object, value string) client.Object {
	obj.(*corev1.ConfigMap).Data = map[string]string{"color": value}
	return obj
}

func secret(value string) client.Object {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "door"},
		Data:       map[string][]byte{"passphrase": []byte(value)},
	}
}

// want changes what is desired of a house. Nothing reconciles it.
func (h *house) want(t *testing.T, objects ...client.Object) {
	t.Helper()
	a := &resources.Assembly{}
	if err := h.client.Get(t.Context(), keyOf("house"), a); err != nil {
		t.Fatal(err)
	}
	a.SetObjects(objects...)
	a.Generation++ // a server counts itself
	if err := h.client.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// versions returns the versions of the objects of a house.
func (h *house) versions(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}, &resources.AssemblyList{}} {
		if err := h.client.List(t.Context(), list, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			o := item.(client.Object)
			versions[fmt.Sprintf("%T %s", o, o.GetName())] = o.GetResourceVersion()
		}
	}
	return versions
}

// A fresh plan is one of the resource as it is now. It says what would be done about each object, and which fields that
// would change, without their values. Nothing is written.
func TestAFreshPlan(t *testing.T) {
	options := page.Options{Access: page.OnLoopback()}
	objects := []client.Object{
		with(settings("first", "0"), "scarlet"), settings("same", "0"), settings("dropped", "0"), secret("old secret"),
	}
	t.Run("in memory", func(t *testing.T) { testFreshPlan(t, newHouse(t, options, objects...)) })
	t.Run("on a server", func(t *testing.T) {
		c := newClient(t, plane.Config(t))
		a := resources.NewAssembly("default", "house", objects...)
		if err := c.Create(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		h := newHouseOn(t, options, c)
		testFreshPlan(t, h)
		if err := c.Delete(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		h.reconcile(t, 4)
	})
}

func testFreshPlan(t *testing.T, h *house) {
	h.reconcile(t, 4)
	h.want(t, with(settings("first", "0"), "crimson"), settings("same", "0"), settings("added", "1"), secret("new secret"))
	before := h.versions(t)
	doc := h.plan(t)
	want := [][]string{
		{"apply", "ConfigMap default/first", "its desired state changed", ".data.color differs"},
		{"apply", "Secret default/door", "its content differs", ".data differs"},
		{"create", "ConfigMap default/added", "it does not exist", ""},
		{"delete", "ConfigMap default/dropped", "it is not desired any more", ""},
	}
	rows := planRows(doc)
	slices.SortFunc(rows, slices.Compare)
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("the plan (-want, +shown)\n%s", diff)
	}
	text := doc.byID(t, "inventory").text()
	if counts := "Fresh plan of 0s ago Objects: 2 to apply, 1 to create, 1 to delete, 1 unchanged."; !strings.Contains(text, counts) {
		t.Errorf("the page lacks %q: %s", counts, text)
	}
	for _, value := range []string{"scarlet", "crimson", "old secret", "new secret", "passphrase", "b2xkIHNlY3JldA=="} {
		if strings.Contains(doc.text(), value) {
			t.Errorf("the page has the value %q", value)
		}
	}
	if diff := cmp.Diff(before, h.versions(t)); diff != "" {
		t.Errorf("the plan has changed objects (-before, +after)\n%s", diff)
	}
}

// What the API server refuses is known before it is tried: by the fields, without the values that it quotes. Of a Secret
// there are no fields.
func TestAPlanSaysWhatWouldBeRefused(t *testing.T) {
	objects := func(value string) []client.Object {
		return []client.Object{with(settings("first", "0"), value), secret(value)}
	}
	a := resources.NewAssembly("default", "house", objects("scarlet")...)
	a.UID = "house-uid"
	inner := fake.NewClientBuilder().WithScheme(resources.NewScheme()).WithObjects(a).Build()
	c := interceptor.NewClient(inner, interceptor.Funcs{Apply: func(
		ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, options ...client.ApplyOption,
	) error {
		if slices.Contains(options, client.ApplyOption(client.DryRunAll)) {
			return apierrors.NewInvalid(schema.GroupKind{}, "first", field.ErrorList{
				field.Invalid(field.NewPath("data", "color"), "crimson", "is no color"),
			})
		}
		return c.Apply(ctx, obj, options...)
	}})
	h := newHouseOn(t, page.Options{Access: page.OnLoopback()}, c)
	h.reconcile(t, 4)
	h.want(t, objects("crimson")...)
	doc := h.plan(t)
	rows := planRows(doc)
	slices.SortFunc(rows, slices.Compare)
	want := [][]string{
		{
			"apply", "ConfigMap default/first",
			"its desired state changed the API server refuses data.color (FieldValueInvalid)", "",
		},
		{"apply", "Secret default/door", "its content differs Terminal", ""},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("the plan (-want, +shown)\n%s", diff)
	}
	if text := doc.text(); strings.Contains(text, "crimson") {
		t.Errorf("the page has the value: %s", text)
	}
}

func TestWhoMayHavePlans(t *testing.T) {
	as := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Name", name) }
	}
	for _, test := range []struct {
		name   string
		may    verbs
		want   int
		hidden bool
	}{
		{"to get the resource is not enough", verbs{"get Assembly", "get ConfigMap"}, http.StatusForbidden, false},
		{"to update it without seeing it is not enough", verbs{"update Assembly"}, http.StatusForbidden, false},
		{"who may not get the objects sees names", verbs{"get Assembly", "update Assembly"}, http.StatusSeeOther, true},
		{"who may get the objects sees all", verbs{"get Assembly", "update Assembly", "get ConfigMap"}, 303, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t, page.Options{Access: verbs{"get Assembly", "update Assembly"}}, with(settings("first", "0"), "a"))
			h.reconcile(t, 3)
			h.want(t, with(settings("first", "0"), "b"))
			form := h.form(t, as("ann"))
			h.page.SetAccess(test.may)
			if shown := h.form(t, as("ann")) != nil; shown != (test.want == http.StatusSeeOther) {
				t.Errorf("the page has the form: %v", shown)
			}
			if a := h.post(t, form, as("ann")); a.StatusCode != test.want {
				t.Fatalf("the answer is %s, not %d: %s", a.Status, test.want, a.body)
			}
			if test.want != http.StatusSeeOther {
				return
			}
			w := world{page: h.page}
			want := []string{"apply", "ConfigMap default/first", "its desired state changed", ".data.color differs"}
			if test.hidden {
				want = []string{"apply", "ConfigMap default/first", "not shown to you"}
			}
			if diff := cmp.Diff([][]string{want}, planRows(w.document(t, componentPath, as("ann")))); diff != "" {
				t.Errorf("the plan (-want, +shown)\n%s", diff)
			}
		})
	}
}

// Only a form that the page gave to a viewer makes a plan, and only if that page sends it.
func TestFormsOfOthersMakeNoPlan(t *testing.T) {
	header := func(name, value string) func(url.Values, *http.Request) {
		return func(_ url.Values, r *http.Request) { r.Header.Set(name, value) }
	}
	value := func(name, value string) func(url.Values, *http.Request) {
		return func(form url.Values, _ *http.Request) { form.Set(name, value) }
	}
	for _, test := range []struct {
		name   string
		change func(form url.Values, r *http.Request)
		want   int
	}{
		{"the form of the page", header("Origin", "http://localhost:8080"), http.StatusSeeOther},
		{"a browser that says so", header("Sec-Fetch-Site", "same-origin"), http.StatusSeeOther},
		{"no token", value("token", ""), http.StatusForbidden},
		{"another token", value("token", strings.Repeat("0", 64)), http.StatusForbidden},
		{"a token of another resource", value("name", "other"), http.StatusForbidden},
		{"a token of another viewer", header("Name", "ben"), http.StatusForbidden},
		{"another origin", header("Origin", "https://evil.example"), http.StatusForbidden},
		{"no origin", header("Origin", "null"), http.StatusForbidden},
		{"a browser that says another site", header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		{"a browser that says another port", header("Sec-Fetch-Site", "same-site"), http.StatusForbidden},
		{"a form without end", value("q", strings.Repeat("x", 1<<20)), http.StatusBadRequest},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t, page.Options{Access: verbs{"get Assembly", "update Assembly"}}, settings("first", "0"))
			h.reconcile(t, 3)
			generated := false
			h.generates = func(context.Context) error { generated = true; return nil }
			form, ann := h.form(t, func(r *http.Request) { r.Header.Set("Name", "ann") }), &http.Request{Header: http.Header{}}
			ann.Header.Set("Name", "ann")
			test.change(form, ann)
			a := h.post(t, form, func(r *http.Request) {
				for name, values := range ann.Header {
					r.Header[name] = values
				}
			})
			if a.StatusCode != test.want || generated != (test.want == http.StatusSeeOther) {
				t.Errorf("the answer is %s, not %d, and the generator ran: %v", a.Status, test.want, generated)
			}
		})
	}
	h := newHouse(t, page.Options{Access: page.OnLoopback()}, settings("first", "0"))
	w := world{page: h.page}
	if a := w.get(t, "plan"); a.StatusCode != http.StatusMethodNotAllowed || a.Header.Get("Allow") != "POST" {
		t.Errorf("GET plan is answered with %s, and allows %q", a.Status, a.Header.Get("Allow"))
	}
}

// A resource gets one plan a minute.
func TestPlansAreRare(t *testing.T) {
	h := newHouse(t, page.Options{Access: page.OnLoopback()}, settings("first", "0"))
	h.reconcile(t, 3)
	h.plan(t)
	for _, test := range []struct {
		after time.Duration
		want  int
		retry string
	}{
		{0, http.StatusTooManyRequests, "60"},
		{45 * time.Second, http.StatusTooManyRequests, "15"},
		{time.Minute, http.StatusSeeOther, ""},
	} {
		h.page.At(later.Add(test.after))
		a := h.post(t, h.form(t))
		if a.StatusCode != test.want || a.Header.Get("Retry-After") != test.retry {
			t.Errorf("after %s the answer is %s, retry after %q; wanted %d and %q", test.after, a.Status,
				a.Header.Get("Retry-After"), test.want, test.retry)
		}
	}
}

// One plan is made at a time, and one that takes too long is given up. No other is made before its generator returns.
func TestPlansAreMadeOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, page.Options{Access: page.OnLoopback()}, settings("first", "0"))
		h.reconcile(t, 3)
		stuck := make(chan struct{})
		h.generates = func(context.Context) error { <-stuck; return nil }
		form := h.form(t)
		began := time.Now()
		var first answer
		done := make(chan struct{})
		go func() { defer close(done); first = h.post(t, form) }()
		synctest.Wait()
		if a := h.post(t, form); a.StatusCode != http.StatusConflict || a.Header.Get("Retry-After") != "30" {
			t.Errorf("while a plan is made, the answer is %s, retry after %q", a.Status, a.Header.Get("Retry-After"))
		}
		<-done
		if first.StatusCode != http.StatusSeeOther || time.Since(began) != 30*time.Second {
			t.Errorf("the answer is %s after %s, not 303 after 30s", first.Status, time.Since(began))
		}
		w := world{page: h.page}
		text := w.document(t, componentPath).byID(t, "inventory").text()
		if want := "No plan could be made: it was not made in time"; !strings.Contains(text, want) {
			t.Errorf("the page lacks %q: %s", want, text)
		}
		h.page.At(later.Add(time.Hour))
		if a := h.post(t, form); a.StatusCode != http.StatusConflict {
			t.Errorf("while the generator runs, the answer is %s, not 409", a.Status)
		}
		close(stuck)
		synctest.Wait()
		h.generates = func(context.Context) error { return nil }
		if a := h.post(t, form); a.StatusCode != http.StatusSeeOther {
			t.Errorf("when it has returned, the answer is %s, not 303: %s", a.Status, a.body)
		}
	})
}

// A plan that cannot be made says why, and the operator goes on.
func TestAPlanThatFails(t *testing.T) {
	for name, test := range map[string]struct {
		generates func(context.Context) error
		want      string
	}{
		"the generator returns an error": {
			func(context.Context) error { return errors.New("the chart is broken") }, "the chart is broken",
		},
		"the generator panics": {func(context.Context) error { panic("it is dark") }, "it is dark"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, page.Options{Access: page.OnLoopback()}, settings("first", "0"))
			h.reconcile(t, 3)
			h.generates = test.generates
			text := h.plan(t).byID(t, "inventory").text()
			if !strings.Contains(text, "No plan could be made: ") || !strings.Contains(text, test.want) {
				t.Errorf("the page does not say %q: %s", test.want, text)
			}
		})
	}
}

// Of a resource that is gone nothing is planned, and no plan is left.
func TestThePlanOfAResourceThatIsGone(t *testing.T) {
	h := newHouse(t, page.Options{Access: page.OnLoopback()}, settings("first", "0"))
	h.reconcile(t, 3)
	form := h.form(t)
	h.plan(t)
	if err := h.client.Delete(t.Context(), resources.NewAssembly("default", "house")); err != nil {
		t.Fatal(err)
	}
	h.reconcile(t, 4)
	w := world{page: h.page}
	if text := w.document(t, componentPath).text(); strings.Contains(text, "Fresh plan") {
		t.Errorf("the plan is still there: %s", text)
	}
	h.page.At(later.Add(time.Hour))
	if a := h.post(t, form); a.StatusCode != http.StatusNotFound {
		t.Errorf("the answer is %s, not 404", a.Status)
	}
}

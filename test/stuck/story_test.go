package stuck_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/html"
	authorizationv1 "k8s.io/api/authorization/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"
)

// story is a case in which an operator seems stuck.
type story struct {
	// plant makes the trouble. It creates the resource that is stuck.
	plant func(s *scene)
	// mend does what the page tells to do.
	mend func(s *scene)
	// goes is true if the resource is to go in the end, not to be ready.
	goes bool
	// alone is true if plant starts an operator of its own.
	alone bool
	// first is true if no other story runs at the same time. A controller that starts sets metrics of the process back,
	// also those of a controller of its name that runs.
	first bool
}

// stories are all, by the anchors of their rows.
func stories() map[string]story {
	all := map[string]story{}
	for _, some := range []map[string]story{refusals, waits, codes, bundles, operators} {
		maps.Copy(all, some)
	}
	return all
}

// scene is where a story happens: a resource in a namespace.
type scene struct {
	testing.TB
	client.Client
	*operator
	namespace, name string
	// resource is the one that is stuck.
	resource client.Object
	alone    bool
}

// resourceName is the name of each resource in the tests, and in the page.
const resourceName = "corner"

func TestStories(t *testing.T) {
	written := rowsOf(t)
	told := stories()
	for name := range written {
		if _, ok := told[name]; !ok {
			t.Errorf("%s has the row %s, of which no story is told here", docsPage, name)
		}
	}
	shared := startShared(t)
	for _, name := range slices.Sorted(maps.Keys(told)) {
		s := told[name]
		t.Run(name, func(t *testing.T) {
			row, ok := written[name]
			if !ok {
				t.Errorf("%s has no row with the anchor %s", docsPage, name)
			}
			at := newScene(t, plane.Namespace(t), resourceName)
			if at.alone = s.alone; !s.alone {
				at.operator = shared
			}
			if !s.first {
				t.Parallel()
			}
			s.plant(at)
			for _, quote := range row {
				eventually(t, fmt.Sprintf("the %s does not say %q", quote.place, quote.text), func(context.Context) error {
					return at.shows(quote)
				})
			}
			s.mend(at)
			eventually(t, "it is stuck still", func(ctx context.Context) error {
				if s.goes {
					return at.isGone(ctx)
				}
				return at.isReady(ctx)
			})
		})
	}
}

// newScene lets the operator write in the namespace.
func newScene(t testing.TB, namespace, name string) *scene {
	t.Helper()
	s := &scene{TB: t, Client: live(t), namespace: namespace, name: name}
	s.mayWrite(true)
	return s
}

// mayWrite says whether the operator may write in the namespace, and waits until that has taken effect.
func (s *scene) mayWrite(may bool) {
	s.Helper()
	if may {
		s.made(writes(operatorUser, s.namespace))
	} else {
		s.deletes(writes(operatorUser, s.namespace))
	}
	s.awaitsRights(operatorUser, may)
}

// awaitsRights waits until a user may write in the namespace, or may not.
func (s *scene) awaitsRights(user string, may bool) {
	s.Helper()
	eventually(s, "the role has no effect", func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: s.namespace, Verb: "create", Version: "v1", Resource: "configmaps",
			},
		}}
		err := s.Create(ctx, review)
		if err == nil && review.Status.Allowed != may {
			err = fmt.Errorf("%s may create ConfigMaps: %t", user, review.Status.Allowed)
		}
		return err
	})
}

// meta is the metadata of the resource.
func (s *scene) meta() metav1.ObjectMeta {
	m := s.part("")
	if s.alone {
		m.Labels = map[string]string{operatorLabel: s.namespace}
	}
	return m
}

// widget creates a Widget with fields, which come in pairs.
func (s *scene) widget(fields ...string) {
	s.Helper()
	w := &resources.Widget{ObjectMeta: s.meta()}
	w.Spec.Fields = map[string]string{}
	for i := 0; i < len(fields); i += 2 {
		w.Spec.Fields[fields[i]] = fields[i+1]
	}
	s.creates(w)
}

// bundle creates an Assembly of manifests.
func (s *scene) bundle(manifests ...string) {
	s.Helper()
	s.creates(resources.NewAssembly(s.namespace, s.name, s.manifests(manifests...)...))
}

func (s *scene) manifests(manifests ...string) []client.Object {
	s.Helper()
	var objects []client.Object
	for _, manifest := range manifests {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(manifest, "NAME", s.name)), &u.Object); err != nil {
			s.Fatal(err)
		}
		objects = append(objects, u)
	}
	return objects
}

// creates creates the resource that the story is about.
func (s *scene) creates(resource client.Object) {
	s.Helper()
	s.resource = resource
	s.made(resource)
}

func (s *scene) made(objects ...client.Object) {
	s.Helper()
	for _, object := range objects {
		if err := s.Create(s.Context(), object); err != nil {
			s.Fatal(err)
		}
	}
}

// patches changes an object by a merge patch, once it exists; with a subresource, such as status, that.
func (s *scene) patches(object client.Object, patch string, subresource ...string) {
	s.Helper()
	if object.GetNamespace() == "" {
		object.SetNamespace(s.namespace)
	}
	raw := client.RawPatch(types.MergePatchType, []byte(patch))
	eventually(s, fmt.Sprintf("%T %s cannot be changed", object, object.GetName()), func(ctx context.Context) error {
		if len(subresource) > 0 {
			return s.SubResource(subresource[0]).Patch(ctx, object, raw)
		}
		return s.Patch(ctx, object, raw)
	})
}

// sets changes a field of the Widget; an empty value removes it.
func (s *scene) sets(field, value string) {
	s.Helper()
	text := fmt.Sprintf("%q", value)
	if value == "" {
		text = "null"
	}
	s.patches(&resources.Widget{ObjectMeta: s.part("")}, fmt.Sprintf(`{"spec":{"fields":{%q:%s}}}`, field, text))
}

// part is the metadata of a part of the resource.
func (s *scene) part(part string) metav1.ObjectMeta {
	if part != "" {
		part = "-" + part
	}
	return metav1.ObjectMeta{Namespace: s.namespace, Name: s.name + part}
}

// deletes deletes an object.
func (s *scene) deletes(object client.Object) {
	s.Helper()
	if err := s.Delete(s.Context(), object); err != nil {
		s.Fatal(err)
	}
}

// settles waits until the resource is ready.
func (s *scene) settles() {
	s.Helper()
	eventually(s, "it is not ready at first", s.isReady)
}

// current is the resource as it is.
func (s *scene) current(ctx context.Context) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	gvk, err := s.GroupVersionKindFor(s.resource)
	if err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(gvk)
	return u, s.Get(ctx, client.ObjectKeyFromObject(s.resource), u)
}

func conditionsOf(u *unstructured.Unstructured) (conditions []metav1.Condition, err error) {
	content, _, err := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	if err != nil {
		return nil, err
	}
	raw, err := yaml.Marshal(content)
	return conditions, errors.Join(err, yaml.Unmarshal(raw, &conditions))
}

func (s *scene) isReady(ctx context.Context) error {
	u, err := s.current(ctx)
	if err != nil {
		return err
	}
	conditions, err := conditionsOf(u)
	if err != nil {
		return err
	}
	observed, _, err := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	ready := meta.IsStatusConditionTrue(conditions, apis.ConditionReady)
	if err != nil || !ready || observed != u.GetGeneration() {
		return fmt.Errorf("generation %d of %d has the conditions %v: %w", observed, u.GetGeneration(), conditions, err)
	}
	return nil
}

func (s *scene) isGone(ctx context.Context) error {
	switch u, err := s.current(ctx); {
	case apierrs.IsNotFound(err):
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("it is there: %v", u.Object)
	}
}

// shows returns nil if the place of a quote shows its text.
func (s *scene) shows(q quote) error {
	shown, err := s.look(q.place)
	if err != nil {
		return err
	}
	for _, text := range shown {
		text = strings.ReplaceAll(text, s.namespace, "default")
		if q.matches(text) {
			return nil
		}
	}
	const most = 20
	return fmt.Errorf("but, at last:\n%s", strings.Join(shown[max(0, len(shown)-most):], "\n"))
}

// look returns the texts that a place shows.
func (s *scene) look(where place) ([]string, error) {
	switch where {
	case inCondition:
		return s.conditions()
	case onPage:
		return s.read("resource", url.Values{"name": {s.name}, "namespace": {s.namespace}})
	case onFirstPage:
		return s.read("", nil)
	case onList:
		return s.read("root", nil)
	case inLog:
		return strings.Split(s.log.String()+processLog.String(), "\n"), nil
	case inMetrics:
		return s.series()
	case inEvents:
		return s.events()
	case inObject:
		u, err := s.current(s.Context())
		if err != nil {
			return nil, err
		}
		u.SetManagedFields(nil)
		content, err := yaml.Marshal(u.Object)
		return []string{string(content)}, err
	}
	return nil, fmt.Errorf("nobody knows where %q is", where)
}

// conditions are those of the object that the page of the resource shows, too.
func (s *scene) conditions() ([]string, error) {
	u, err := s.current(s.Context())
	if err != nil {
		return nil, err
	}
	conditions, err := conditionsOf(u)
	if err != nil {
		return nil, err
	}
	page, err := s.look(onPage)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, c := range conditions {
		shown := joined(fmt.Sprintf("%s %s %s %s", c.Type, c.Status, c.Reason, c.Message)) // as in its table
		if strings.Contains(page[0], shown) {
			texts = append(texts, c.Reason+": "+c.Message)
		} else {
			texts = append(texts, "not on the page: "+shown)
		}
	}
	return texts, nil
}

// read returns the text of a page, of the root of the kind of the resource.
func (s *scene) read(path string, query url.Values) ([]string, error) {
	if query != nil || path != "" {
		gvk, err := s.GroupVersionKindFor(s.resource)
		if err != nil {
			return nil, err
		}
		if query == nil {
			query = url.Values{}
		}
		query.Set("root", strings.ToLower(gvk.Kind))
	}
	return read(s.operator, path+"?"+query.Encode())
}

func read(o *operator, path string) ([]string, error) {
	r := httptest.NewRequest(http.MethodGet, "http://localhost/"+path, nil)
	answer := httptest.NewRecorder()
	o.page.ServeHTTP(answer, r)
	if answer.Code != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %d: %s", path, answer.Code, answer.Body)
	}
	document, err := html.Parse(answer.Body)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	for n := range document.Descendants() {
		if n.Type == html.TextNode {
			text.WriteString(n.Data + " ")
		}
	}
	return []string{joined(text.String())}, nil
}

// joined is a text with single spaces.
func joined(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *scene) series() ([]string, error) {
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(prometheus.Gatherers{s.metrics, ctrlmetrics.Registry}, promhttp.HandlerOpts{}).
		ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return strings.Split(answer.Body.String(), "\n"), nil
}

func (s *scene) events() ([]string, error) {
	list := &eventsv1.EventList{}
	if err := s.List(s.Context(), list, client.InNamespace(s.namespace)); err != nil {
		return nil, err
	}
	texts := []string{""}
	for i := range list.Items {
		texts = append(texts, list.Items[i].Reason+": "+list.Items[i].Note)
	}
	return texts, nil
}

// definition returns the definition of a kind with any content.
func definition(gvk schema.GroupVersionKind, plural string) client.Object {
	crd := resources.CRD()
	crd.Name = plural + "." + gvk.Group
	crd.Spec.Group = gvk.Group
	crd.Spec.Names.Plural, crd.Spec.Names.Singular = plural, strings.ToLower(gvk.Kind)
	crd.Spec.Names.Kind, crd.Spec.Names.ListKind = gvk.Kind, gvk.Kind+"List"
	crd.Spec.Versions[0].Name = gvk.Version
	return crd
}

// ellipsis stands in a quote for what is another text each time.
const ellipsis = "…"

func (q quote) matches(text string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(q.text), ellipsis, ".*")
	if q.place == inCondition || q.place == inEvents {
		pattern = "^" + pattern + "$"
	}
	return regexp.MustCompile("(?s)" + pattern).MatchString(text)
}

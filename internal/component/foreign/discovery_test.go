package foreign_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/plan"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// inGroup puts a kind in a group of its own.
func inGroup(group string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Group = group
		crd.Name = crd.Spec.Names.Plural + "." + group
	}
}

func TestCheckPattern(t *testing.T) {
	t.Parallel()
	namespace := plane.Namespace(t)
	brook := install(t, crdOf("Brook", inGroup("water.pattern.example.com")))
	creek := install(t, crdOf("Creek", inGroup("water.pattern.example.com"), clusterScoped))
	river := install(t, crdOf("River", inGroup("pattern.example.com")))
	lakes := install(t, crdOf("Lake", inGroup("still.water.pattern.example.com")))
	create(t, instance(brook, namespace, "b1", ""))
	create(t, instance(brook, namespace, "b2", "them"))
	create(t, instance(creek, namespace, "c", "them"))
	create(t, instance(river, namespace, "r", ""))
	create(t, instance(lakes, namespace, "mine", ours))
	eventually(t, "the types are not discovered", func(ctx context.Context) error {
		use, err := newGuard(t, plane.Config(t)).CheckPattern(ctx, plan.Pattern{Group: "*.pattern.example.com", Kind: "*"})
		if err != nil || len(use.Instances) != 2 {
			return fmt.Errorf("%+v, %v", use, err)
		}
		_, err = newGuard(t, plane.Config(t)).Client.RESTMapper().RESTMapping(plan.Key{Group: lakes.Spec.Group, Kind: "Lake"}.GroupKind(), "v1")
		return err
	})

	b, c, r := "Brook "+namespace+"/b1", "Creek c", "River "+namespace+"/r"
	tests := []struct {
		group, kind string
		limit       int
		want        plan.Use
	}{
		{group: "*.pattern.example.com", kind: "*", want: blocking(-1, b, c)},
		{group: "*.pattern.example.com", kind: "Creek", want: blocking(0, c)},
		{group: "*.water.pattern.example.com", kind: "*", want: none},
		{group: "water.pattern.example.com", kind: "*", limit: 1, want: blocking(-1, b)},
		{group: "pattern.example.com", kind: "*", want: blocking(0, r)},
		{group: "pattern.example.com", kind: "river", want: none},
		{group: "*", kind: "River", want: blocking(0, r)},
		{group: "*pattern.example.com", kind: "*", want: none},
		{group: "*.*.example.com", kind: "*", want: none},
		{group: "water.*", kind: "*", want: none},
		{group: "", kind: "River", want: none},
		{group: "", kind: "Binding", want: none},
		{group: "authorization.k8s.io", kind: "*", want: none},
	}
	g, requests := guarded(t, interceptor.Funcs{})
	for _, test := range tests {
		t.Run(test.group+" "+test.kind, func(t *testing.T) {
			g.Limit = test.limit
			use, err := g.CheckPattern(t.Context(), plan.Pattern{Group: test.group, Kind: test.kind})
			assertUse(t, use, err, test.want)
		})
	}
	discoveries := 0
	for request, n := range requests.Counts() {
		if request.Path == "/apis" {
			discoveries += n
		}
	}
	// The client's mapper asks once as well.
	if discoveries > 2 {
		t.Errorf("the cluster was discovered %d times: %v", discoveries, requests.Counts())
	}
	if n := requests.Writes(); n != 0 {
		t.Errorf("%d writes", n)
	}
}

// What is found does not depend on which list is answered first.
func TestPatternInOrder(t *testing.T) {
	t.Parallel()
	names := []string{"Xylo", "Xylp", "Xylq"}
	namespace := plane.Namespace(t)
	for _, name := range names {
		create(t, instance(install(t, crdOf(name, inGroup("order.example.com"))), namespace, "theirs", ""))
	}
	pattern := plan.Pattern{Group: "order.example.com", Kind: "*"}
	eventually(t, "the types are not discovered", func(ctx context.Context) error {
		use, err := newGuard(t, plane.Config(t)).CheckPattern(ctx, pattern)
		if err == nil && len(use.Instances) != len(names) {
			err = fmt.Errorf("%+v", use)
		}
		return err
	})
	var others sync.WaitGroup
	others.Add(2)
	g, _ := guarded(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if list.GetObjectKind().GroupVersionKind().Kind == names[0]+"List" {
			others.Wait()
		} else {
			defer others.Done()
		}
		return c.List(ctx, list, opts...)
	}})
	g.Limit = 1
	use, err := g.CheckPattern(t.Context(), pattern)
	assertUse(t, use, err, blocking(-1, "Xylo "+namespace+"/theirs"))
}

// backend is a server of an aggregated API.
type backend struct {
	group  string
	down   atomic.Bool
	server *httptest.Server
	// things are those that are not ours.
	things atomic.Int64
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if b.down.Load() {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	gv := b.group + "/v1"
	var answer any
	switch r.URL.Path {
	case "/apis/" + gv:
		resources := []metav1.APIResource{
			{Name: "things", SingularName: "thing", Kind: "Thing", Namespaced: true, Verbs: metav1.Verbs{"list", "create", "get"}},
			{Name: "things/scale", Kind: "Scale", Namespaced: true, Verbs: metav1.Verbs{"list", "create", "get"}},
			{Name: "usages", SingularName: "usage", Kind: "Usage", Namespaced: true, Verbs: metav1.Verbs{"list", "get"}},
			{Name: "reviews", SingularName: "review", Kind: "Review", Verbs: metav1.Verbs{"create"}},
		}
		answer = &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: gv, APIResources: resources}
	case "/apis/" + b.group:
		version := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: "v1"}
		answer = &metav1.APIGroup{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: b.group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
	case "/apis/" + gv + "/things", "/apis/" + gv + "/usages":
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		n := b.things.Load()
		if strings.HasSuffix(r.URL.Path, "usages") {
			n = 7
		}
		if r.URL.Query().Get("labelSelector") != ownerLabel+"!="+ours {
			n = 99
		}
		for i := range n {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: fmt.Sprintf("t%d", i)}})
		}
		answer = &list
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// aggregate serves an API by a server of its own, or, without one, by none.
func aggregate(t *testing.T, group string, served bool) (*backend, plan.Key, *unstructured.Unstructured) {
	t.Helper()
	b := &backend{group: group}
	port := int32(1)
	if served {
		b.server = httptest.NewTLSServer(b)
		t.Cleanup(b.server.Close)
		u, err := url.Parse(b.server.URL)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseInt(u.Port(), 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		port = int32(n)
	}
	namespace := plane.Namespace(t)
	create(t, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "backend"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	})
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1." + group},
		"spec": map[string]any{
			"group": group, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": namespace, "name": "backend", "port": int64(port)},
		},
	}}
	create(t, service)
	t.Cleanup(func() {
		if err := live(t).Delete(context.Background(), service); client.IgnoreNotFound(err) != nil {
			t.Errorf("could not clean up: %v", err)
		}
	})
	return b, plan.Key{Group: "apiregistration.k8s.io", Kind: "APIService", Name: "v1." + group}, service
}

// TestAPIService: subresources, and what is not kept, do not block, and a server that is down is told of (pitfall G-11,
// numbers 2 to 5).
func TestAPIService(t *testing.T) {
	t.Parallel()
	b, key, service := aggregate(t, "things.aggregated.example.com", true)
	b.things.Store(1)
	g, requests := guarded(t, interceptor.Funcs{})
	eventually(t, "the API is not served", func(ctx context.Context) error {
		use, err := newGuard(t, plane.Config(t)).Check(ctx, key, false)
		if err == nil && use.State != plan.ForeignBlocking {
			err = fmt.Errorf("%+v", use)
		}
		return err
	})
	requests.Reset()
	use, err := g.Check(t.Context(), key, true)
	assertUse(t, use, err, blocking(0, "Thing app/t0"))
	use, err = g.Delete(t.Context(), key, service.GetUID())
	assertUse(t, use, err, blocking(0, "Thing app/t0"))

	// What it makes up, what is part of something else, and what is not kept does not block.
	b.things.Store(0)
	use, err = g.Check(t.Context(), key, true)
	assertUse(t, use, err, none)

	b.down.Store(true)
	const down = "the types of things.aggregated.example.com/v1 could not be discovered: the server behind it is not available"
	use, err = g.Check(t.Context(), key, false)
	assertUse(t, use, err, unknown(down))
	use, err = g.Delete(t.Context(), key, service.GetUID())
	assertUse(t, use, err, unknown(down))
	b.down.Store(false)

	use, err = g.Delete(t.Context(), key, types.UID("another"))
	assertUse(t, use, err, none)
	if n := requests.Writes(); n != 0 {
		t.Errorf("%d writes: %v", n, requests.Counts())
	}
	use, err = g.Delete(t.Context(), key, service.GetUID())
	assertUse(t, use, err, none)
	eventually(t, "the APIService does not go", func(ctx context.Context) error {
		if err := live(t).Get(ctx, client.ObjectKeyFromObject(service), service); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
}

// An instance that appears between the two looks blocks.
func TestAPIServiceSecondLook(t *testing.T) {
	t.Parallel()
	b, key, service := aggregate(t, "late.aggregated.example.com", true)
	eventually(t, "the API is not served", func(ctx context.Context) error {
		use, err := newGuard(t, plane.Config(t)).Check(ctx, key, false)
		if err == nil && use.State != plan.ForeignNone {
			err = fmt.Errorf("%+v", use)
		}
		return err
	})
	g, requests := guarded(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		defer b.things.Store(1)
		return c.List(ctx, list, opts...)
	}})
	use, err := g.Delete(t.Context(), key, service.GetUID())
	assertUse(t, use, err, blocking(0, "Thing app/t0"))
	if n := requests.Writes(); n != 0 {
		t.Errorf("%d writes: %v", n, requests.Counts())
	}
}

// A part of the cluster that is broken matters only to what may be in it (pitfall G-11, number 1).
func TestBrokenAPI(t *testing.T) {
	t.Parallel()
	_, key, _ := aggregate(t, "broken.aggregated.example.com", false)
	crd := install(t, crdOf("Quern"))
	const group = "API groups could not be discovered: broken.aggregated.example.com"
	eventually(t, "the API is not discovered as broken", func(ctx context.Context) error {
		use, err := newGuard(t, plane.Config(t)).CheckPattern(ctx, plan.Pattern{Group: "*.aggregated.example.com", Kind: "Ghost"})
		if err == nil && !strings.Contains(use.Reason, "broken.") {
			err = fmt.Errorf("%+v", use)
		}
		return err
	})
	g := newGuard(t, plane.Config(t))
	use, err := g.CheckPattern(t.Context(), plan.Pattern{Group: "broken.aggregated.example.com", Kind: "*"})
	assertUse(t, use, err, unknown(group))
	use, err = g.CheckPattern(t.Context(), plan.Pattern{Group: smithy, Kind: "Anchor"})
	assertUse(t, use, err, none)
	use, err = g.Check(t.Context(), key, true)
	assertUse(t, use, err, unknown("the types of broken.aggregated.example.com/v1 could not be discovered: the server behind it is not available"))
	// What is found is found, whatever is broken besides.
	create(t, instance(crd, plane.Namespace(t), "theirs", ""))
	use, err = g.CheckPattern(t.Context(), plan.Pattern{Group: "*", Kind: "Quern"})
	if err != nil || use.State != plan.ForeignBlocking {
		t.Errorf("%+v, %v", use, err)
	}
}

// as is a configuration of somebody who may do no more than the rules say.
func as(t *testing.T, name string, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "User", Name: name}},
	})
	config := plane.Config(t)
	config.Impersonate.UserName = name
	return config
}

func allow(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func TestForbidden(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Rasp"))
	const definitions = "apiextensions.k8s.io"
	tests := []struct {
		name  string
		rules []rbacv1.PolicyRule
		want  string
	}{
		{name: "read", want: "CustomResourceDefinition rasps.smithy.example.com could not be read: forbidden"},
		{name: "list", rules: []rbacv1.PolicyRule{allow(definitions, "*", "get")}, want: "instances of Rasp could not be listed: forbidden"},
		{
			name:  "fence",
			rules: []rbacv1.PolicyRule{allow(definitions, "*", "get"), allow(smithy, "*", "list")},
			want:  "creation of Rasp could not be fenced off: forbidden",
		},
		{
			name:  "prove",
			rules: []rbacv1.PolicyRule{allow(definitions, "*", "get", "patch"), allow(smithy, "*", "list")},
			want:  "the fence of Rasp could not be proven: an instance is refused for another reason: forbidden",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := newGuard(t, as(t, "espalier-test-"+test.name, test.rules...))
			g.ProofTimeout = 1
			eventually(t, "the rights are not in force", func(ctx context.Context) error {
				use, err := g.Check(ctx, keyOf(crd), true)
				if err != nil || use.Reason != test.want {
					return fmt.Errorf("%+v, %v", use, err)
				}
				return nil
			})
			assertFences(t, crd, 0)
		})
	}
	t.Run("pattern", func(t *testing.T) {
		g := newGuard(t, as(t, "espalier-test-pattern"))
		eventually(t, "the rights are not in force", func(ctx context.Context) error {
			use, err := g.CheckPattern(ctx, plan.Pattern{Group: smithy, Kind: "Rasp"})
			if err != nil || use.Reason != "instances of Rasp could not be listed: forbidden" {
				return fmt.Errorf("%+v, %v", use, err)
			}
			return nil
		})
	})
}

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
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// backend is a server of an aggregated API.
type backend struct {
	group  string
	down   atomic.Bool
	server *httptest.Server
	// things is how many instances of others there are.
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
			{Name: "things", SingularName: "thing", Kind: "Thing", Namespaced: true,
				Verbs: metav1.Verbs{"list", "create", "get"}},
			{Name: "things/scale", Kind: "Scale", Namespaced: true, Verbs: metav1.Verbs{"list", "create", "get"}},
			{Name: "usages", SingularName: "usage", Kind: "Usage", Namespaced: true,
				Verbs: metav1.Verbs{"list", "get"}},
			{Name: "reviews", SingularName: "review", Kind: "Review", Verbs: metav1.Verbs{"create"}},
		}
		answer = &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
			GroupVersion: gv, APIResources: resources}
	case "/apis/" + b.group:
		version := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: "v1"}
		answer = &metav1.APIGroup{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: b.group,
			Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
	case "/apis/" + gv + "/things", "/apis/" + gv + "/usages":
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1",
			Kind: "PartialObjectMetadataList"}}
		n := b.things.Load()
		if strings.HasSuffix(r.URL.Path, "usages") {
			n = 7
		}
		if r.URL.Query().Get("labelSelector") != ownerLabel+"!="+ours {
			n = 99
		}
		for i := range n {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "app",
				Name: fmt.Sprintf("t%d", i)}})
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

// aggregate registers an API with a server of its own, or, if it is not served, without a server.
func aggregate(t *testing.T, group string, served bool) *backend {
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
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1." + group},
		"spec": map[string]any{
			"group": group, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"namespace": namespace, "name": "backend", "port": int64(port)},
		},
	}}
	create(t, service)
	t.Cleanup(func() {
		if err := live(t).Delete(context.Background(), service); client.IgnoreNotFound(err) != nil {
			t.Errorf("the clean-up ends with %v, want the service deleted", err)
		}
	})
	return b
}

// Subresources and types that are not stored do not block. The test is alone with the API server: others find its API
// in every namespace.
func TestAggregatedTypes(t *testing.T) {
	controlplanetest.Real(t, "an APIService has to name another API server")
	b := aggregate(t, "things.aggregated.example.com", true)
	b.things.Store(1)
	pattern := plan.Pattern{Group: "things.aggregated.example.com", Kind: "*"}
	controlplanetest.Eventually(t, "the API is not served", func(ctx context.Context) error {
		use, err := newGuard(t, plane.Config(t)).CheckPattern(ctx, pattern)
		if err == nil && use.State != plan.ForeignBlocking {
			err = fmt.Errorf("%+v", use)
		}
		return err
	})
	g := newGuard(t, plane.Config(t))
	use, err := g.CheckPattern(t.Context(), pattern)
	assertUse(t, use, err, blocking(0, "Thing app/t0"))
	b.things.Store(0)
	use, err = g.CheckPattern(t.Context(), pattern)
	assertUse(t, use, err, none)
}

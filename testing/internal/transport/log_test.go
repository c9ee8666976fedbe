package transport_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/transport"
)

// inProtobuf returns an object as clients of built-in kinds write it.
func inProtobuf(t *testing.T, obj runtime.Object) string {
	t.Helper()
	var text strings.Builder
	s := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme)
	if err := s.Encode(obj, &text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestLog(t *testing.T) {
	options := transport.Options{Kind: transport.Kinds(clientgoscheme.Scheme)}
	run(t, options, func(f *fixture) {
		c := f.Client("operator")
		mark := f.Mark()
		for _, r := range []struct{ method, path, body string }{
			{"GET", "/apis", ""},
			{"GET", "/api/v1/namespaces/shop", ""},
			{"GET", configMaps, ""},
			{"GET", "/api/v1/configmaps?labelSelector=app%3Dweb,tier+in+(a,b)&watch=1", ""},
			{"GET", "/api/v1/nodes?fieldSelector=metadata.name%3Da", ""},
			{"POST", configMaps, `{"metadata":{"name":"one","generateName":"o-"}}`},
			{"POST", configMaps, `{"metadata":{"generateName":"o-"}}`},
			{"POST", configMaps, "not an object"},
			{"POST", configMaps, inProtobuf(t, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "two"}, Data: map[string]string{"a": "b"},
			})},
			{"POST", "/api/v1/namespaces/shop/pods/a/eviction", `{"metadata":{"name":"a"}}`},
			{"PUT", "/apis/apps/v1/namespaces/shop/deployments/web/status", "{}"},
			{"PATCH", "/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies/a", "{}"},
			{"DELETE", "/apis/example.org/v1/namespaces/shop/tenants/a", ""},
			{"DELETE", configMaps, ""},
		} {
			if a := f.ask(c, r.method, r.path, r.body); a.err != nil || r.body != "" && a.body != r.body {
				f.Errorf("%s %s: %v", r.method, r.path, a)
			}
			if r.method == "GET" {
				time.Sleep(time.Second)
			}
		}
		f.Note("the shop closes")
		apply := f.newRequest(f.Context(), http.MethodPatch, one, "{}")
		apply.Header.Set("Content-Type", "application/apply-patch+yaml")
		list := f.newRequest(f.Context(), http.MethodGet, configMaps, "")
		list.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
		for _, r := range []*http.Request{apply, list} {
			if response, err := c.RoundTrip(r); err != nil || response.Body.Close() != nil {
				f.Error(err)
			}
		}
		f.logged(`
00:00:00.000 operator discover /apis → 200
00:00:01.000 operator get Namespace shop → 200
00:00:02.000 operator list ConfigMap shop/* → 200
00:00:03.000 operator watch ConfigMap labelSelector=app=web,tier in (a,b) → 200
00:00:24.000 operator list Node a fieldSelector=metadata.name=a → 200
00:00:25.000 operator create ConfigMap shop/one → 201
00:00:25.001 operator create ConfigMap shop/o- → 201
00:00:25.001 operator create ConfigMap shop/* → 201
00:00:25.002 operator create ConfigMap shop/two → 201
00:00:25.002 operator create Pod/eviction shop/a → 201
00:00:25.003 operator update Deployment/status shop/web → 201
00:00:25.003 operator patch NetworkPolicy shop/a → 201
00:00:25.003 operator delete tenants shop/a → 201
00:00:25.004 operator deletecollection ConfigMap shop/* → 201
00:00:25.004 = the shop closes =
00:00:25.004 operator apply ConfigMap shop/one → 201
00:00:25.004 operator list ConfigMap shop/* as=PartialObjectMetadata → 200
`)
		since := f.Since(mark)
		if n := since.Of("operator"); n != 16 {
			f.Errorf("there were %d requests", n)
		}
		if n := since.Of("operator", fault.Create, fault.Apply); n != 6 {
			f.Errorf("there were %d creates and applies", n)
		}
		if n := since.Of("kubelet"); n != 0 {
			f.Errorf("the kubelet made %d requests", n)
		}
	})
}

func TestSince(t *testing.T) {
	run(t, transport.Options{}, func(f *fixture) {
		c := f.Client("operator")
		f.get(c)
		mark := f.Mark()
		if since := f.Since(mark); len(since) != 0 {
			f.Errorf("there were %v", since)
		}
		f.get(c)
		f.get(f.Client("kubelet"))
		if got := f.Since(mark).String(); got != "kubelet get configmaps: 1\noperator get configmaps: 1\n" {
			f.Errorf("since the mark there were\n%s", got)
		}
		if got := f.Since(nil).Of("operator"); got != 2 {
			f.Errorf("since the beginning there were %d", got)
		}
	})
}

// TestLogIsBounded makes more requests than are kept.
func TestLogIsBounded(t *testing.T) {
	run(t, transport.Options{Lines: 3}, func(f *fixture) {
		c := f.Client("operator")
		for range 1000 {
			f.get(c)
			time.Sleep(time.Second)
			if n := len(f.Log().Entries); n > 3 {
				f.Fatalf("%d lines are kept", n)
			}
		}
		f.logged(`
(997 lines before are not kept)
00:16:37.297 operator get configmaps shop/one → 200
00:16:38.298 operator get configmaps shop/one → 200
00:16:39.298 operator get configmaps shop/one → 200
`)
		if n := f.Since(nil).Of("operator"); n != 1000 {
			f.Errorf("%d requests are counted", n)
		}
	})
}

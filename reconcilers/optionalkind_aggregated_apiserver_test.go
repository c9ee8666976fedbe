package reconcilers_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

// meterServer is an API server of its own that serves one Meter, called read, in each namespace. It cannot be written
// to.
type meterServer struct{ gvk schema.GroupVersionKind }

func (s meterServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	base := "/apis/" + s.gvk.GroupVersion().String()
	answer := func(code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	namespace, meters := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, base+"/namespaces/"), "/meters")
	switch {
	case r.URL.Path == base:
		answer(http.StatusOK, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: s.gvk.GroupVersion().String(),
			APIResources: []metav1.APIResource{{
				Name: "meters", SingularName: "meter", Namespaced: true, Kind: "Meter", Verbs: metav1.Verbs{"get", "list", "watch"},
			}},
		})
	case !meters:
		answer(http.StatusNotFound, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
		})
	case r.URL.Query().Get("sendInitialEvents") != "":
		// It is an old one.
		answer(http.StatusBadRequest, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonBadRequest, Code: http.StatusBadRequest,
		})
	case r.URL.Query().Get("watch") != "":
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		list := &meterList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []meter{{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "read", UID: "1", ResourceVersion: "5"},
			Spec:       map[string]string{"of": "another server"},
		}}}
		list.SetGroupVersionKind(s.gvk.GroupVersion().WithKind("MeterList"))
		answer(http.StatusOK, list)
	}
}

// aggregate makes the API server of the operator pass on requests to another one, until the returned function is called.
func (o *meterOperator) aggregate(t *testing.T, address string) (end func()) {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "meters"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
	registration := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"group": o.gvk.Group, "version": o.gvk.Version, "groupPriorityMinimum": int64(100),
			"versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": o.namespace, "name": service.Name, "port": port},
		},
	}}
	registration.SetAPIVersion("apiregistration.k8s.io/v1")
	registration.SetKind("APIService")
	registration.SetName(o.gvk.Version + "." + o.gvk.Group)
	for _, obj := range []client.Object{service, registration} {
		if err := o.live.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	end = func() {
		for _, obj := range []client.Object{service, registration} {
			_ = o.live.Delete(context.Background(), obj)
		}
	}
	t.Cleanup(end)
	return end
}

// A kind of an aggregated API, which has no CustomResourceDefinition, may come, go and come back.
func TestAnOptionalKindOfAnAggregatedAPIMayComeAndGo(t *testing.T) {
	controlplanetest.Real(t, "an APIService has to name another API server")
	t.Parallel()
	o := startMeterOperator(t, meterKind("aggregated"), plane.Config(t), widgetSequence{configMapChild("a"), readMeter()})
	server := httptest.NewTLSServer(meterServer{o.gvk})
	defer server.Close()
	defer server.CloseClientConnections()
	w := o.widget(t, "with", "")
	for range 2 {
		o.shows(t, w, map[string]string{"read": "not served"})
		end := o.aggregate(t, server.Listener.Addr().String())
		o.shows(t, w, map[string]string{"read": "is another server"})
		end()
	}
	o.shows(t, w, map[string]string{"read": "not served"})
}

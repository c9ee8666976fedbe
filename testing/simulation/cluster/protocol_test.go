package cluster_test

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

// TestProtocols watches and applies over both versions of HTTP.
func TestProtocols(t *testing.T) {
	t.Parallel()
	config := start(t, &cluster.Environment{})
	for protocol, name := range map[string]string{"http/1.1": "one", "h2": "two"} {
		config := rest.CopyConfig(config)
		config.NextProtos = []string{protocol}
		config.CAData = append([]byte("\n"), config.CAData...) // It has a connection of its own.
		used := ""
		config.Wrap(func(base http.RoundTripper) http.RoundTripper { return noting{base, &used} })
		c := newClient(t, config)
		w, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default"),
			client.MatchingFields{"metadata.name": name})
		if err != nil {
			t.Fatal(err)
		}
		apply := func(owner, value string, options ...client.ApplyOption) error {
			data := corev1apply.ConfigMap(name, "default").WithData(map[string]string{"a": value})
			return c.Apply(t.Context(), data, append(options, client.FieldOwner(owner))...)
		}
		if err := apply("first", "1"); err != nil {
			t.Fatal(err)
		}
		if err := apply("second", "2"); !apierrors.IsConflict(err) {
			t.Errorf("%s: the field of somebody else is applied with the error %v, want a conflict", protocol, err)
		}
		if err := apply("second", "2", client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
		for _, want := range []struct {
			event watch.EventType
			value string
		}{{watch.Added, "1"}, {watch.Modified, "2"}} {
			got := <-w.ResultChan()
			obj, ok := got.Object.(*corev1.ConfigMap)
			if got.Type != want.event || !ok || obj.Data["a"] != want.value {
				t.Errorf("%s: the event is %v, want %v", protocol, got, want)
			}
		}
		w.Stop()
		if want := map[string]string{"http/1.1": "HTTP/1.1", "h2": "HTTP/2.0"}[protocol]; used != want {
			t.Errorf("the protocol is %s, want %s", used, want)
		}
	}
}

// noting notes the protocol of the last answer.
type noting struct {
	base http.RoundTripper
	used *string
}

// RoundTrip implements [http.RoundTripper].
func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := n.base.RoundTrip(r)
	if err == nil {
		*n.used = response.Proto
	}
	return response, err
}

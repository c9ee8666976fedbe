package server_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/server"
)

func TestProtocol(t *testing.T) {
	for name, test := range map[string]func(c cluster){
		"metadata alone": func(c cluster) {
			obj := configMap("a")
			obj.Labels = map[string]string{"a": "1"}
			c.create(obj)
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
			c.must(c.List(c.ctx, list, client.MatchingLabels{"a": "1"}))
			if len(list.Items) != 1 || list.Items[0].UID != obj.UID {
				c.Errorf("the list is %v", list.Items)
			}
		},
		"lists in pages": func(c cluster) {
			for _, name := range []string{"a", "b", "c"} {
				c.create(configMap(name))
			}
			list := &corev1.ConfigMapList{}
			c.must(c.List(c.ctx, list, client.InNamespace("default"), client.Limit(2)))
			if len(list.Items) != 2 || list.Continue == "" {
				c.Fatalf("the first page is %v", list)
			}
			c.must(c.List(c.ctx, list, client.InNamespace("default"), client.Continue(list.Continue)))
			if len(list.Items) != 1 || list.Items[0].Name != "c" {
				c.Errorf("the second page is %v", list.Items)
			}
		},
		"collections are deleted": func(c cluster) {
			c.create(configMap("a"))
			c.create(configMap("b"))
			c.must(c.DeleteAllOf(c.ctx, &corev1.ConfigMap{}, client.InNamespace("default")))
			list := &corev1.ConfigMapList{}
			c.must(c.List(c.ctx, list, client.InNamespace("default")))
			if len(list.Items) > 0 {
				c.Errorf("there are %v", list.Items)
			}
		},
		"initial events end with a bookmark": func(c cluster) {
			c.create(configMap("a"))
			w, err := c.Watch(c.ctx, &corev1.ConfigMapList{}, client.InNamespace("default"), &client.ListOptions{
				Raw: &metav1.ListOptions{
					SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true,
					ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
				},
			})
			c.must(err)
			defer w.Stop()
			for _, want := range []watch.EventType{watch.Added, watch.Bookmark} {
				if got := <-w.ResultChan(); got.Type != want {
					c.Errorf("the event is %s, want %s", got.Type, want)
				}
			}
		},
		"unknown fields are refused or dropped": func(c cluster) {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"unknown":1}`))
			obj := configMap("a")
			c.create(obj)
			c.must(c.Patch(c.ctx, obj, patch))
			c.refused(c.Patch(c.ctx, obj, patch, client.FieldValidation("Strict")), apierrors.IsInvalid)
		},
		"deletions have preconditions and policies": func(c cluster) {
			obj := configMap("a")
			c.create(obj)
			c.refused(c.Delete(c.ctx, obj, client.Preconditions{UID: ptr.To(types.UID("b"))}), apierrors.IsConflict)
			c.must(c.Delete(c.ctx, obj, client.PropagationPolicy(metav1.DeletePropagationForeground)))
			c.get(obj)
			if len(obj.Finalizers) != 1 || obj.Finalizers[0] != metav1.FinalizerDeleteDependents {
				c.Errorf("the object is %v", obj)
			}
		},
		"a pod is evicted": func(c cluster) {
			pod := &corev1.Pod{ObjectMeta: meta("a"), Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "main", Image: "image"}},
			}}
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
			c.create(pod)
			bind := func(meta metav1.ObjectMeta, target corev1.ObjectReference) error {
				return c.SubResource("binding").Create(c.ctx, pod, &corev1.Binding{ObjectMeta: meta, Target: target})
			}
			node := corev1.ObjectReference{Kind: "Node", Name: "node"}
			c.refused(bind(metav1.ObjectMeta{}, node), apierrors.IsConflict)
			pod.Spec.SchedulingGates = nil
			c.must(c.Update(c.ctx, pod))
			c.refused(bind(metav1.ObjectMeta{Name: "other"}, node), apierrors.IsBadRequest)
			c.refused(bind(metav1.ObjectMeta{UID: "other"}, node), apierrors.IsConflict)
			c.refused(bind(metav1.ObjectMeta{}, corev1.ObjectReference{}), apierrors.IsInternalError)
			c.refused(bind(metav1.ObjectMeta{}, corev1.ObjectReference{Kind: "Pod", Name: "a"}), apierrors.IsInternalError)
			c.must(bind(metav1.ObjectMeta{UID: pod.UID, Annotations: map[string]string{"a": "b"}}, node))
			c.get(pod)
			if pod.Annotations["a"] != "b" {
				c.Errorf("the pod has the annotations %v, want that of its binding", pod.Annotations)
			}
			if pod.Spec.NodeName != "node" {
				c.Errorf("the pod is %v", pod)
			}
			evict := func(eviction policyv1.Eviction) error {
				return c.SubResource("eviction").Create(c.ctx, pod, &eviction)
			}
			c.refused(evict(policyv1.Eviction{ObjectMeta: meta("other")}), apierrors.IsBadRequest)
			c.refused(evict(policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{
				Preconditions: metav1.NewUIDPreconditions("other"),
			}}), apierrors.IsConflict)
			c.must(evict(policyv1.Eviction{
				DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)},
			}))
			c.refused(c.Get(c.ctx, client.ObjectKeyFromObject(pod), pod), apierrors.IsNotFound)
		},
		"no two services have an address": func(c cluster) {
			service := func(name, address string) *corev1.Service {
				return &corev1.Service{ObjectMeta: meta(name), Spec: corev1.ServiceSpec{
					ClusterIP: address, Ports: []corev1.ServicePort{{Port: 80}},
				}}
			}
			first := service("a", "")
			c.create(first)
			c.refused(c.Create(c.ctx, service("b", first.Spec.ClusterIP)), apierrors.IsInvalid)
			c.refused(c.Create(c.ctx, service("b", "192.168.0.1")), apierrors.IsInvalid)
			c.must(c.Delete(c.ctx, first))
			taken := service("b", first.Spec.ClusterIP)
			c.create(taken)
			first = service("a", "")
			c.create(first)
			if first.Spec.ClusterIP == taken.Spec.ClusterIP {
				c.Errorf("both services have the address %s", first.Spec.ClusterIP)
			}
			first.Labels = map[string]string{"a": "b"}
			c.must(c.Update(c.ctx, first))
		},
		"a token is for an account": func(c cluster) {
			account := &corev1.ServiceAccount{ObjectMeta: meta("operator")}
			c.create(account)
			token := func(request authenticationv1.TokenRequest) error {
				return c.SubResource("token").Create(c.ctx, account, &request)
			}
			c.refused(token(authenticationv1.TokenRequest{ObjectMeta: meta("other")}), apierrors.IsInvalid)
			c.refused(token(authenticationv1.TokenRequest{
				Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](599)},
			}), apierrors.IsInvalid)
			c.must(token(authenticationv1.TokenRequest{
				Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](600)},
			}))
		},
	} {
		t.Run(name, func(t *testing.T) { run(t, server.Options{}, test) })
	}
}

// TestRoundTripper has handlers that misbehave.
func TestRoundTripper(t *testing.T) {
	body := func(handler http.HandlerFunc) (string, error) {
		response, err := server.RoundTripper(handler).RoundTrip(request(t))
		if err != nil {
			return "", err
		}
		defer func() { _ = response.Body.Close() }()
		read, err := io.ReadAll(response.Body)
		return string(read), err
	}
	if _, err := body(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }); err == nil {
		t.Error("a handler that panicked answered")
	}
	read, err := body(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		panic("broken")
	})
	if read != "half" || !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "broken") {
		t.Errorf("read %q, %v", read, err)
	}
	if read, err := body(func(http.ResponseWriter, *http.Request) {}); read != "" || err != nil {
		t.Errorf("read %q, %v", read, err)
	}
}

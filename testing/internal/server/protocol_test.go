package server_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

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
			c.create(pod)
			c.must(c.SubResource("binding").Create(c.ctx, pod, &corev1.Binding{
				Target: corev1.ObjectReference{Kind: "Node", Name: "node"},
			}))
			c.get(pod)
			if pod.Spec.NodeName != "node" {
				c.Errorf("the pod is %v", pod)
			}
			c.must(c.SubResource("eviction").Create(c.ctx, pod, &policyv1.Eviction{
				DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)},
			}))
			c.refused(c.Get(c.ctx, client.ObjectKeyFromObject(pod), pod), apierrors.IsNotFound)
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

package mapped_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/mapped"
)

func TestAWatchTellsOfWhatItCannotConvert(t *testing.T) {
	t.Parallel()
	lists := runtime.NewScheme()
	lists.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.ConfigMapList{})
	metav1.AddToGroupVersion(lists, corev1.SchemeGroupVersion)
	behind, err := client.NewWithWatch(plane.Config(t), client.Options{Scheme: lists})
	if err != nil {
		t.Fatal(err)
	}
	server := mapped.New(behind, mapped.Options{Revision: 999})
	ns, cm := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	ns.SetName("ns")
	identified(ns, "uid-of-ns", "1")
	cm.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	cm.SetNamespace("ns")
	cm.SetName("settings")
	if err := server.Give(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	c := server.Client(mapped.ClientOptions{})
	w, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("ns"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := c.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	select {
	case event := <-w.ResultChan():
		err := apierrors.FromObject(event.Object)
		if event.Type != watch.Error || !strings.Contains(err.Error(), `no kind "ConfigMap" is registered`) {
			t.Errorf("got %s: %v", event.Type, err)
		}
	case <-time.After(10 * time.Second):
		t.Error("there is no event")
	}
}

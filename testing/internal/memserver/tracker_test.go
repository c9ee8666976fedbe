package memserver_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/testing/internal/memserver"
)

func TestTrackerCallsWriteNothingInADryRun(t *testing.T) {
	server := memserver.New(clientgoscheme.Scheme)
	if err := server.Add(configMap(data{"k": "1"})); err != nil {
		t.Fatal(err)
	}
	all := []string{metav1.DryRunAll}
	other := configMap(nil)
	other.Name = "other"
	for name, err := range map[string]error{
		"create": server.Create(configMaps, other, "default", metav1.CreateOptions{DryRun: all}),
		"update": server.Update(configMaps, configMap(data{"k": "2"}), "default", metav1.UpdateOptions{DryRun: all}),
		"patch":  server.Patch(configMaps, configMap(data{"k": "2"}), "default", metav1.PatchOptions{DryRun: all}),
		"delete": server.Delete(configMaps, "default", "settings", metav1.DeleteOptions{DryRun: all}),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	stored, err := server.Get(configMaps, "default", "settings")
	if err != nil {
		t.Fatal(err)
	}
	if stored.(*corev1.ConfigMap).Data["k"] != "1" {
		t.Errorf("got %v", stored)
	}
	if _, err := server.Get(configMaps, "default", "other"); !apierrors.IsNotFound(err) {
		t.Errorf("want NotFound, got %v", err)
	}
}

func TestTrackerRefusesWhatCannotBe(t *testing.T) {
	server := memserver.New(clientgoscheme.Scheme)
	if err := server.Add(configMap(nil)); err != nil {
		t.Fatal(err)
	}
	other := configMap(nil)
	other.Name = "other"
	uid := types.UID("one")
	_, watchErr := server.Watch(configMaps, "", metav1.ListOptions{ResourceVersion: "x"})
	for name, tc := range map[string]struct {
		err    error
		reason func(error) bool
	}{
		"create again":             {server.Create(configMaps, configMap(nil), "default"), apierrors.IsAlreadyExists},
		"create in another":        {server.Create(configMaps, configMap(nil), "elsewhere"), apierrors.IsBadRequest},
		"update of nothing":        {server.Update(configMaps, other, "default"), apierrors.IsNotFound},
		"update without metadata":  {server.Update(configMaps, &metav1.Status{}, "default"), nil},
		"delete of nothing":        {server.Delete(configMaps, "default", "other"), apierrors.IsNotFound},
		"delete of another object": {server.Delete(configMaps, "default", "settings", *metav1.NewPreconditionDeleteOptions(string(uid))), apierrors.IsConflict},
		"apply without a kind":     {server.Apply(configMaps, &metav1.PartialObjectMetadata{}, "default"), nil},
		"add without metadata":     {server.Add(&metav1.Status{}), nil},
		"add of an unknown kind":   {server.Add(&unknown{}), runtime.IsNotRegisteredError},
		"watch since nonsense":     {watchErr, apierrors.IsBadRequest},
	} {
		if tc.err == nil || tc.reason != nil && !tc.reason(tc.err) {
			t.Errorf("%s: got %v", name, tc.err)
		}
	}
}

// unknown is an object of a type that no scheme has.
type unknown struct {
	corev1.ConfigMap
}

func TestTrackerTakesTheNamespaceOfTheRequest(t *testing.T) {
	server := memserver.New(clientgoscheme.Scheme)
	obj := configMap(nil)
	obj.Namespace = ""
	if err := server.Create(configMaps, obj, "default"); err != nil {
		t.Fatal(err)
	}
	list, err := server.List(configMaps, corev1.SchemeGroupVersion.WithKind("ConfigMap"), "default")
	if err != nil {
		t.Fatal(err)
	}
	items := list.(*metav1.List).Items
	if len(items) != 1 || items[0].Object.(client.Object).GetNamespace() != "default" {
		t.Errorf("got %v", items)
	}
	if list.(*metav1.List).ResourceVersion == "" {
		t.Error("a list has a resource version")
	}
}

func TestListsAreInOrder(t *testing.T) {
	ctx := context.Background()
	c, _ := memserver.New(clientgoscheme.Scheme).Build(fake.NewClientBuilder())
	for _, name := range []string{"b/a", "a/b", "a/a"} {
		obj := configMap(nil)
		obj.Namespace, obj.Name, _ = strings.Cut(name, "/")
		if err := c.Create(ctx, obj); err != nil {
			t.Fatal(err)
		}
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := c.List(ctx, list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range list.Items {
		got = append(got, item.Namespace+"/"+item.Name)
	}
	if strings.Join(got, " ") != "a/a a/b b/a" {
		t.Errorf("got %v", got)
	}
}

func TestPatchesTakeOwnership(t *testing.T) {
	ctx := context.Background()
	c, _ := memserver.New(clientgoscheme.Scheme, memserver.WithManagedFields()).Build(fake.NewClientBuilder())
	if err := (step{by: "a", create: data{"k": "1", "l": "1"}}).run(c); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"k":"2"}}`))
	if err := c.Patch(ctx, configMap(nil), patch, client.FieldOwner("b")); err != nil {
		t.Fatal(err)
	}
	if err := (step{by: "b", apply: data{"l": "2"}}).run(c); !apierrors.IsConflict(err) {
		t.Errorf("a still owns l: want a conflict, got %v", err)
	}
	if err := (step{by: "a", apply: data{"k": "1"}}).run(c); !apierrors.IsConflict(err) {
		t.Errorf("b took k: want a conflict, got %v", err)
	}
}

func TestStatusIsAppliedApart(t *testing.T) {
	ctx := context.Background()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	c, _ := memserver.New(clientgoscheme.Scheme).Build(fake.NewClientBuilder().WithObjects(pod))
	config := func(phase corev1.PodPhase) *corev1apply.PodApplyConfiguration {
		return corev1apply.Pod("web", "default").WithLabels(map[string]string{"by": string(phase)}).
			WithStatus(corev1apply.PodStatus().WithPhase(phase))
	}
	if err := c.Apply(ctx, config(corev1.PodPending), client.FieldOwner("a")); err != nil {
		t.Fatal(err)
	}
	if err := c.Status().Apply(ctx, config(corev1.PodRunning), client.FieldOwner("a")); err != nil {
		t.Fatal(err)
	}
	old := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Status:     corev1.PodStatus{Reason: "Because"},
	}
	//lint:ignore SA1019 The deprecated way is still used.
	if err := c.Status().Patch(ctx, old, client.Apply, client.FieldOwner("b")); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	if pod.Labels["by"] != "Pending" || pod.Status.Phase != corev1.PodRunning || pod.Status.Reason != "Because" {
		t.Errorf("got labels %v and status %+v", pod.Labels, pod.Status)
	}
	if err := c.Status().Apply(ctx, corev1apply.Pod("other", "default"), client.FieldOwner("a")); !apierrors.IsNotFound(err) {
		t.Errorf("a status without an object: want NotFound, got %v", err)
	}
	if err := c.Status().Apply(ctx, config(corev1.PodFailed), client.FieldOwner("a"), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("a dry run changed the status to %s, %v", pod.Status.Phase, err)
	}
}

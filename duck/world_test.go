package duck_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// workload is a duck: what kinds with a replica count and a pod template have in common.
type workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   workloadSpec   `json:"spec,omitempty"`
	Status workloadStatus `json:"status,omitempty"`
}

type workloadSpec struct {
	Replicas *int32       `json:"replicas,omitempty"`
	Template workloadTmpl `json:"template,omitempty"`
}

type workloadTmpl struct {
	Spec workloadPod `json:"spec,omitempty"`
}

type workloadPod struct {
	Containers []workloadContainer `json:"containers,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

type workloadContainer struct {
	Name  string `json:"name"`
	Image string `json:"image,omitempty"`
}

type workloadStatus struct {
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
}

func (w *workload) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if w.Spec.Replicas != nil {
		replicas := *w.Spec.Replicas
		out.Spec.Replicas = &replicas
	}
	out.Spec.Template.Spec.Containers = append([]workloadContainer(nil), w.Spec.Template.Spec.Containers...)
	return &out
}

type workloadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []workload `json:"items"`
}

func (l *workloadList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*workload))
	}
	return &out
}

// newWorkload returns a duck that stands for the Deployment ns/name.
func newWorkload(name string) *workload {
	return &workload{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
	}
}

func newWorkloadList() *workloadList {
	return &workloadList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}}
}

// deployment returns a Deployment with one container and a field that the duck does not know.
func deployment(name string) *appsv1.Deployment {
	replicas := int32(1)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": "web"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Paused:   true,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "main", Image: "old"}},
			}},
		},
	}
}

// recorder notes each call that reaches the client it makes.
type recorder struct {
	calls []string
}

func (r *recorder) note(format string, a ...any) {
	r.calls = append(r.calls, fmt.Sprintf(format, a...))
}

// take returns the calls noted since it was last asked.
func (r *recorder) take() []string {
	calls := r.calls
	r.calls = nil
	return calls
}

// want fails the test unless exactly these calls were noted since it was last asked.
func (r *recorder) want(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, r.take(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("calls that reached the inner client (-want, +got):\n%s", diff)
	}
}

// newClient returns an in-memory client that holds the given objects, and the recorder of what is asked of it.
func newClient(objs ...client.Object) (client.WithWatch, *recorder) {
	r := &recorder{}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	inner := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithRESTMapper(mapper).
		WithObjects(objs...).WithStatusSubresource(&appsv1.Deployment{}).Build()
	return interceptor.NewClient(inner, r.funcs()), r
}

func (r *recorder) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			r.note("get %T %s", obj, key)
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			r.note("list %T, %d options", list, len(opts))
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			r.note("create %T %s, %d options", obj, obj.GetName(), len(opts))
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			r.note("update %T %s, %d options", obj, obj.GetName(), len(opts))
			return c.Update(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			data, err := patch.Data(obj)
			r.note("patch %T %s, %s %s %v, %d options", obj, obj.GetName(), patch.Type(), data, err, len(opts))
			return c.Patch(ctx, obj, patch, opts...)
		},
		Apply: func(_ context.Context, _ client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			r.note("apply %T, %d options", obj, len(opts))
			return nil
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			r.note("delete %T %s, %d options", obj, obj.GetName(), len(opts))
			return c.Delete(ctx, obj, opts...)
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
			r.note("delete all of %T, %d options", obj, len(opts))
			return c.DeleteAllOf(ctx, obj, opts...)
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			r.note("watch %T, %d options", list, len(opts))
			return c.Watch(ctx, list, opts...)
		},
		SubResourceGet: func(ctx context.Context, c client.Client, sub string, obj, into client.Object, opts ...client.SubResourceGetOption) error {
			r.note("get %s of %T %s into %T, %d options", sub, obj, obj.GetName(), into, len(opts))
			return c.SubResource(sub).Get(ctx, obj, into, opts...)
		},
		SubResourceCreate: func(_ context.Context, _ client.Client, sub string, obj, body client.Object, opts ...client.SubResourceCreateOption) error {
			r.note("create %s of %T %s from %T, %d options", sub, obj, obj.GetName(), body, len(opts))
			return nil
		},
		SubResourceUpdate: func(_ context.Context, _ client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			r.note("update %s of %T %s, %d options", sub, obj, obj.GetName(), len(opts))
			return nil
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			data, err := patch.Data(obj)
			r.note("patch %s of %T %s, %s %s %v, %d options", sub, obj, obj.GetName(), patch.Type(), data, err, len(opts))
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
		SubResourceApply: func(_ context.Context, _ client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			r.note("apply %s of %T, %d options", sub, obj, len(opts))
			return nil
		},
	}
}

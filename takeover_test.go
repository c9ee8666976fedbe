package espalier_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// released is an operator that applies a Deployment, which an earlier release has created and updated.
type released struct {
	*testing.T
	world *world
	// image is what is desired.
	image string
}

func newReleased(t *testing.T) *released {
	r := &released{T: t, image: "gadget:2"}
	r.world = worldOf(t, nil)
	old := deployment.With(func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{"old": "yes"}
		d.Finalizers = []string{"test.espalier.dev/other"}
		pod := &d.Spec.Template.Spec
		pod.Containers[0].Env = []corev1.EnvVar{{Name: "OLD", Value: "yes"}}
		pod.Containers = append(pod.Containers, corev1.Container{Name: "sidecar", Image: "sidecar:1"})
	}).Object()
	r.must(r.world.Create(t.Context(), old, client.FieldOwner("manager")))
	r.write("other", func(d *appsv1.Deployment) { d.Annotations["theirs"] = "kept" })
	return r
}

func (r *released) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *released) live() *appsv1.Deployment {
	r.Helper()
	live := &appsv1.Deployment{}
	r.must(r.world.Get(r.Context(), types.NamespacedName{Namespace: "default", Name: "gadget"}, live))
	return live
}

// write updates the Deployment as that field manager.
func (r *released) write(manager string, change func(*appsv1.Deployment)) {
	r.Helper()
	live := r.live()
	change(live)
	r.must(r.world.Update(r.Context(), live, client.FieldOwner(manager)))
}

// one and each return a node that keeps the Deployment.
func (r *released) one() *espalier.Child[*resources.Widget, *appsv1.Deployment] {
	return espalier.Owns("Web", func(context.Context, *resources.Widget) (*appsv1.Deployment, error) {
		return r.desired(), nil
	})
}

func (r *released) each() *espalier.Children[*resources.Widget, *appsv1.Deployment] {
	return espalier.OwnsEach("Web", func(context.Context, *resources.Widget) ([]*appsv1.Deployment, error) {
		return []*appsv1.Deployment{r.desired()}, nil
	})
}

func (r *released) desired() *appsv1.Deployment {
	return deployment.With(func(d *appsv1.Deployment) {
		d.OwnerReferences = nil
		d.Spec.Template.Spec.Containers[0].Image = r.image
	}).Object()
}

// runs starts the operator with the node, and handles two requests. It returns the events FieldsStay.
func (r *released) runs(n node, changes ...func(*reconcilers.ResourceReconciler[*resources.Widget])) (events []string) {
	r.Helper()
	recorder := record.NewFakeRecorder(100)
	root := espalier.For(r.world.root.Config, n)
	root.Config.Recorder = recorder
	for _, change := range changes {
		change(root)
	}
	for range 2 {
		_, err := root.Reconcile(r.Context(), reconcilers.Request{
			NamespacedName: types.NamespacedName{Namespace: "default", Name: "gadget"},
		})
		r.must(err)
	}
	for len(recorder.Events) > 0 {
		if e := <-recorder.Events; strings.Contains(e, "FieldsStay") {
			events = append(events, e)
		}
	}
	return events
}

// has says what the Deployment has of what was written otherwise.
func (r *released) has() string {
	live := r.live()
	text := fmt.Sprint(live.Annotations, live.Finalizers)
	for _, c := range live.Spec.Template.Spec.Containers {
		text += " " + c.Name + fmt.Sprint(len(c.Env))
	}
	if live.Spec.Template.Spec.DNSPolicy == "" || live.Spec.Template.Spec.Containers[0].Image != r.image {
		text += fmt.Sprintf(" and the spec is %v", live.Spec)
	}
	return text
}

func (r *released) expect(want string) {
	r.Helper()
	if got := r.has(); got != want {
		r.Errorf("the Deployment has %s, want %s", got, want)
	}
}

const (
	allOld = "map[old:yes theirs:kept] [test.espalier.dev/other] gadget1 sidecar0"
	noOld  = "map[theirs:kept] [test.espalier.dev/other] gadget0"
	keeps1 = `keeps what "manager" wrote before and is not desired, until TakeOverFrom("manager") removes it: ` +
		`.metadata.annotations.old, .spec.template.spec.containers[name="gadget"].env, ` +
		`.spec.template.spec.containers[name="sidecar"]`
)

// rootFrom has the root take over.
func rootFrom(root *reconcilers.ResourceReconciler[*resources.Widget]) {
	root.TakeOverFrom = []string{"manager"}
}

// TestFieldsOfAnEarlierRelease: what an earlier release wrote by updates, and is not desired any more, goes if it is
// taken over. Otherwise an event says once what stays, and which switch there is. Defaults are not
// among that, nor are finalizers.
func TestFieldsOfAnEarlierRelease(t *testing.T) {
	one := func(managers ...string) func(r *released) node {
		return func(r *released) node { return r.one().TakeOverFrom(managers...) }
	}
	each := func(managers ...string) func(r *released) node {
		return func(r *released) node { return r.each().TakeOverFrom(managers...) }
	}
	for name, test := range map[string]struct {
		node  func(r *released) node
		root  func(*reconcilers.ResourceReconciler[*resources.Widget])
		stays bool
	}{
		"Owns":                       {node: func(r *released) node { return r.one() }, stays: true},
		"OwnsEach":                   {node: func(r *released) node { return r.each() }, stays: true},
		"Owns, another name":         {node: one("someone"), stays: true},
		"Owns takes over":            {node: one("someone", "manager")},
		"OwnsEach takes over":        {node: each("manager")},
		"the root takes over":        {node: func(r *released) node { return r.one() }, root: rootFrom},
		"the root and the node do":   {node: each("manager"), root: rootFrom},
		"the root and another do so": {node: one("someone"), root: rootFrom},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReleased(t)
			var changes []func(*reconcilers.ResourceReconciler[*resources.Widget])
			if test.root != nil {
				changes = append(changes, test.root)
			}
			events := r.runs(test.node(r), changes...)
			if !test.stays {
				r.expect(noOld)
				if len(events) > 0 {
					t.Errorf("the events are %q, want none of fields that stay", events)
				}
				return
			}
			r.expect(allOld)
			if want := []string{"Warning FieldsStay Deployment default/gadget " + keeps1}; !slices.Equal(events, want) {
				t.Errorf("the events are %q, want %q", events, want)
			}
			if events := r.runs(test.node(r)); len(events) > 0 {
				t.Errorf("after a restart the events are %q, want none", events)
			}
		})
	}
}

// TestTakeOverOnce: an object is taken over once, also if the switch comes after the first apply.
func TestTakeOverOnce(t *testing.T) {
	r := newReleased(t)
	r.runs(r.one())
	r.expect(allOld)
	r.runs(r.one().TakeOverFrom("manager"))
	r.expect(noOld)

	r.write("manager", func(d *appsv1.Deployment) { d.Annotations["late"] = "yes" })
	r.image = "gadget:3"
	r.runs(r.one().TakeOverFrom("manager"))
	r.expect(strings.Replace(noOld, "map[", "map[late:yes ", 1))
}

// TestTakeOverWithoutManagedFields: a cache that strips managed fields does not keep an object from being taken over,
// and from being taken over once.
func TestTakeOverWithoutManagedFields(t *testing.T) {
	r := newReleased(t)
	cache := interceptor.NewClient(r.world.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
		) error {
			defer func() { obj.SetManagedFields(nil) }()
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if deployments, is := list.(*appsv1.DeploymentList); is {
				for i := range deployments.Items {
					deployments.Items[i].ManagedFields = nil
				}
			}
			return err
		},
	})
	strip := func(root *reconcilers.ResourceReconciler[*resources.Widget]) { root.Config.Client = cache }
	if events := r.runs(r.one(), strip); len(events) != 1 || !strings.HasSuffix(events[0], keeps1) {
		t.Errorf("the events are %q, want that it %s", events, keeps1)
	}
	r.expect(allOld)
	r.runs(r.one().TakeOverFrom("manager"), strip)
	r.expect(noOld)
	r.write("manager", func(d *appsv1.Deployment) { d.Annotations["late"] = "yes" })
	r.runs(r.one().TakeOverFrom("manager"), strip)
	r.expect(strings.Replace(noOld, "map[", "map[late:yes ", 1))
}

// TestFieldsOfOthersAreNoRemnants: nobody is told of what others write to an object that the node made.
func TestFieldsOfOthersAreNoRemnants(t *testing.T) {
	r := newReleased(t)
	r.write("manager", func(d *appsv1.Deployment) { d.Finalizers = nil })
	r.must(r.world.Delete(t.Context(), r.live()))
	r.runs(r.one())
	r.write("manager", func(d *appsv1.Deployment) { d.Annotations = map[string]string{"late": "yes"} })
	r.image = "gadget:3"
	if events := r.runs(r.one()); len(events) > 0 {
		t.Errorf("the events are %q, want none", events)
	}
	r.expect("map[late:yes] [] gadget0")
}

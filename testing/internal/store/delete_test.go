package store_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

const hold = "example.com/hold"

func held(obj client.Object) client.Object {
	obj.SetFinalizers([]string{hold})
	return obj
}

func TestDelete(t *testing.T) {
	t.Parallel()
	uid, version := types.UID("other"), "1"
	for _, test := range []struct {
		name    string
		options []client.DeleteOption
		reason  metav1.StatusReason
		text    string
	}{
		{name: "plain"},
		{name: "other UID", options: []client.DeleteOption{client.Preconditions{UID: &uid}},
			reason: metav1.StatusReasonConflict, text: "does not match the UID in record"},
		{name: "other version", options: []client.DeleteOption{client.Preconditions{ResourceVersion: &version}},
			reason: metav1.StatusReasonConflict, text: "does not match the ResourceVersion in record"},
	} {
		for _, given := range []client.Object{configMap("one"), app("one"), widget("one")} {
			given.SetResourceVersion("900")
			c := newClient(t, widgets(), given)
			reason(t, c.Delete(t.Context(), given, test.options...), test.reason, test.text)
			if exists(t, c, given) != (test.reason != "") {
				t.Errorf("%s: the object is there: %t, want %t", test.name, exists(t, c, given), test.reason != "")
			}
		}
	}
	reason(t, newClient(t).Delete(t.Context(), configMap("one")), metav1.StatusReasonNotFound, `"one" not found`)
}

func TestDeleteDryRun(t *testing.T) {
	t.Parallel()
	s := newStore(t, configMap("one"), held(configMap("two")))
	c := s.Client(store.ClientOptions{})
	must(t, c.Delete(t.Context(), configMap("one"), client.DryRunAll))
	must(t, c.Delete(t.Context(), configMap("two"), client.DryRunAll))
	must(t, c.DeleteAllOf(t.Context(), configMap(""), client.InNamespace("ns"), client.DryRunAll))
	if s.Revision() != 999 || read(t, c, configMap("two")).DeletionTimestamp != nil {
		t.Errorf("the store is at revision %d, want 999 and nothing deleted", s.Revision())
	}
}

func TestFinalizers(t *testing.T) {
	t.Parallel()
	s := newStore(t, widgets(), held(configMap("one")), held(app("one")), held(widget("one")))
	c := s.Client(store.ClientOptions{})
	for _, obj := range []client.Object{configMap("one"), app("one"), widget("one")} {
		must(t, c.Delete(t.Context(), obj))
		deleted := read(t, c, obj)
		generation := int64(2) // A deletion raises it, if there is one.
		if _, ok := obj.(*corev1.ConfigMap); ok {
			generation = 0
		}
		if !deleted.GetDeletionTimestamp().Time.Equal(now) || *deleted.GetDeletionGracePeriodSeconds() != 0 ||
			deleted.GetGeneration() != generation {
			t.Errorf("the object is %v, want it deleted at %v, without delay and with generation %d", deleted, now,
				generation)
		}
		revision := s.Revision()
		must(t, c.Delete(t.Context(), obj))
		if s.Revision() != revision {
			t.Errorf("a second delete brought the store to revision %d, want %d", s.Revision(), revision)
		}

		changed := deleted.DeepCopyObject().(client.Object)
		changed.SetFinalizers([]string{hold, "example.com/more"})
		reason(t, c.Update(t.Context(), changed), metav1.StatusReasonInvalid,
			"no new finalizers can be added if the object is being deleted, "+
				"found new finalizers []string{\"example.com/more\"}")

		changed = deleted.DeepCopyObject().(client.Object)
		changed.SetDeletionTimestamp(nil)
		label(changed)
		must(t, c.Update(t.Context(), changed))
		if changed.GetDeletionTimestamp() == nil {
			t.Error("an update removed the time of the deletion, want it kept")
		}

		changed.SetFinalizers(nil)
		must(t, c.Update(t.Context(), changed))
		if exists(t, c, obj) {
			t.Errorf("%T is there without a finalizer, want it gone", obj)
		}
	}
}

func TestLastFinalizerIsRemovedByAPatch(t *testing.T) {
	t.Parallel()
	c := newClient(t, held(configMap("one")))
	cm := configMap("one")
	must(t, c.Delete(t.Context(), cm))
	remove := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	must(t, c.Patch(t.Context(), cm, remove, client.DryRunAll))
	must(t, c.Patch(t.Context(), cm, remove))
	reason(t, c.Patch(t.Context(), cm, remove), metav1.StatusReasonNotFound, "")
}

func TestPropagation(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		policy metav1.DeletionPropagation
		want   []string
	}{
		{metav1.DeletePropagationBackground, nil},
		{metav1.DeletePropagationForeground, []string{metav1.FinalizerDeleteDependents}},
		{metav1.DeletePropagationOrphan, []string{metav1.FinalizerOrphanDependents}},
	} {
		c := newClient(t, configMap("one"))
		must(t, c.Delete(t.Context(), configMap("one"), client.PropagationPolicy(test.policy)))
		if exists(t, c, configMap("one")) != (test.want != nil) {
			t.Errorf("%s: the object is there: %t, want %t", test.policy, exists(t, c, configMap("one")),
				test.want != nil)
		}
		if test.want == nil {
			continue
		}
		if got := read(t, c, configMap("one")); !slices.Equal(got.Finalizers, test.want) {
			t.Errorf("%s: the finalizers are %v, want %v", test.policy, got.Finalizers, test.want)
		}
		must(t, c.Delete(t.Context(), configMap("one"), client.PropagationPolicy(metav1.DeletePropagationBackground)))
		if exists(t, c, configMap("one")) {
			t.Errorf("%s: the object is there after a deletion in the background, want it gone", test.policy)
		}
	}
}

func TestGracePeriod(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, node string
		phase      corev1.PodPhase
		stays      bool
	}{
		{name: "no node"},
		{name: "node", node: "a", stays: true},
		{name: "done", node: "a", phase: corev1.PodSucceeded},
	} {
		c := newClient(t, &corev1.Pod{
			ObjectMeta: metadata("one"), Spec: corev1.PodSpec{NodeName: test.node},
			Status: corev1.PodStatus{Phase: test.phase},
		})
		pod := &corev1.Pod{ObjectMeta: metadata("one")}
		must(t, c.Delete(t.Context(), pod))
		if exists(t, c, pod) != test.stays {
			t.Errorf("%s: the pod is there: %t, want %t", test.name, exists(t, c, pod), test.stays)
		}
		if !test.stays {
			continue
		}
		got := read(t, c, pod)
		if *got.DeletionGracePeriodSeconds != 30 || got.DeletionTimestamp.Sub(now) != 30*time.Second {
			t.Errorf("%s: the metadata are %v, want a deletion in 30 s", test.name, got.ObjectMeta)
		}
		must(t, c.Delete(t.Context(), pod, client.GracePeriodSeconds(40)))
		must(t, c.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
		if exists(t, c, pod) {
			t.Errorf("%s: the pod is there without a grace period, want it gone", test.name)
		}
	}
}

func TestDeleteAllOf(t *testing.T) {
	t.Parallel()
	labelled := configMap("b")
	labelled.Labels = map[string]string{"a": "b"}
	elsewhere := configMap("c")
	elsewhere.Namespace = "other"
	for _, test := range []struct {
		name    string
		options []client.DeleteAllOfOption
		want    []string
		reason  metav1.StatusReason
	}{
		{name: "namespace", options: []client.DeleteAllOfOption{client.InNamespace("ns")}, want: []string{"c"}},
		{name: "label", options: []client.DeleteAllOfOption{client.InNamespace("ns"), client.MatchingLabels{"a": "b"}},
			want: []string{"a", "c"}},
		{name: "name", options: []client.DeleteAllOfOption{client.InNamespace("ns"),
			client.MatchingFields{"metadata.name": "a"}}, want: []string{"b", "c"}},
		{name: "all namespaces", want: []string{"a", "b", "c"}, reason: metav1.StatusReasonMethodNotAllowed},
	} {
		c := newClient(t, configMap("a"), labelled, elsewhere)
		reason(t, c.DeleteAllOf(t.Context(), configMap(""), test.options...), test.reason, "")
		if got := names(t, c); !slices.Equal(got, test.want) {
			t.Errorf("%s: left %v, want %v", test.name, got, test.want)
		}
	}
}

// names returns the names of the ConfigMaps that a list has.
func names(t testing.TB, c client.Reader, options ...client.ListOption) []string {
	t.Helper()
	list := &corev1.ConfigMapList{}
	must(t, c.List(t.Context(), list, options...))
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	return names
}

func TestEviction(t *testing.T) {
	t.Parallel()
	c := newClient(t, &corev1.Pod{ObjectMeta: metadata("one")}, configMap("one"))
	pod := &corev1.Pod{ObjectMeta: metadata("one")}
	must(t, c.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{}, client.DryRunAll))
	must(t, c.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{}))
	reason(t, c.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{}), metav1.StatusReasonNotFound, "")
	reason(t, c.SubResource("eviction").Create(t.Context(), configMap("one"), &policyv1.Eviction{}),
		metav1.StatusReasonNotFound, "could not find")
}

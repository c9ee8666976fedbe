package store_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

func TestPatch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		kind    types.PatchType
		patch   string
		reason  metav1.StatusReason
		text    string
		written bool
	}{
		{name: "merge", kind: types.MergePatchType, patch: `{"metadata":{"labels":{"a":"b"}}}`, written: true},
		{name: "merge of nothing", kind: types.MergePatchType, patch: `{}`},
		{name: "merge of a missing field", kind: types.MergePatchType, patch: `{"metadata":{"labels":null}}`},
		{name: "merge with an old version", kind: types.MergePatchType,
			patch: `{"metadata":{"resourceVersion":"1","labels":{"a":"b"}}}`, reason: metav1.StatusReasonConflict},
		{name: "merge with another UID", kind: types.MergePatchType, patch: `{"metadata":{"uid":"other"}}`,
			reason: metav1.StatusReasonInvalid, text: "metadata.uid"},
		{name: "merge with another name", kind: types.MergePatchType, patch: `{"metadata":{"name":"other"}}`,
			reason: metav1.StatusReasonBadRequest, text: "does not match the name on the URL"},
		{name: "merge of no JSON", kind: types.MergePatchType, patch: `{`, reason: metav1.StatusReasonBadRequest},
		{name: "JSON patch", kind: types.JSONPatchType,
			patch: `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`, written: true},
		{name: "JSON patch with a test that fails", kind: types.JSONPatchType,
			patch:  `[{"op":"test","path":"/metadata/name","value":"other"}]`,
			reason: metav1.StatusReasonInvalid, text: "the server rejected our request due to an error in our request"},
		{name: "no JSON patch", kind: types.JSONPatchType, patch: `{}`, reason: metav1.StatusReasonBadRequest},
		{name: "unknown", kind: "application/x", patch: `{}`, reason: metav1.StatusReasonUnsupportedMediaType},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, obj := range []client.Object{configMap("one"), app("one"), widget("one")} {
				s := newStore(t, widgets(), obj)
				c := s.Client(store.ClientOptions{})
				err := c.Patch(t.Context(), obj, client.RawPatch(test.kind, []byte(test.patch)))
				reason(t, err, test.reason, test.text)
				if written := s.Revision() > 999; written != test.written {
					t.Errorf("%T was written: %t, want %t", obj, written, test.written)
				}
				if test.written && (obj.GetLabels()["a"] != "b" || obj.GetResourceVersion() != "1000") {
					t.Errorf("the answer for %T is %v, want the label a=b and the version 1000", obj, obj)
				}
			}
		})
	}
}

func TestStrategicMergePatch(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metadata("one"), Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "a", Image: "one"}, {Name: "b", Image: "one"}},
	}}
	c := newClient(t, widgets(), app("one"), widget("one"))
	must(t, c.Create(t.Context(), pod))
	patch := client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"spec":{"containers":[{"name":"b","image":"two"}]}}`))
	must(t, c.Patch(t.Context(), pod, patch))
	if got := pod.Spec.Containers; len(got) != 2 || got[0].Image != "one" || got[1].Image != "two" {
		t.Errorf("the containers are %+v, want the images one and two", got)
	}
	for _, obj := range []client.Object{app("one"), widget("one")} {
		err := c.Patch(t.Context(), obj, client.RawPatch(types.StrategicMergePatchType, []byte(`{}`)))
		reason(t, err, metav1.StatusReasonUnsupportedMediaType, "unknown format")
	}
}

func TestPatchOfStatus(t *testing.T) {
	t.Parallel()
	c := newClient(t, app("one"), configMap("one"))
	a := app("one")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":7},"status":{"ready":true}}`))
	must(t, c.Status().Patch(t.Context(), a, patch))
	if !a.Status.Ready || a.Spec.Size != 1 || a.Generation != 1 {
		t.Errorf("a patch of the status gives %+v, want it ready, with the size and the generation 1", a)
	}
	must(t, c.Patch(t.Context(), a, client.RawPatch(types.MergePatchType, []byte(`{"status":{"ready":false}}`))))
	if !a.Status.Ready {
		t.Error("a patch of the object changed the status, want it ready")
	}
	reason(t, c.Status().Patch(t.Context(), configMap("one"), patch), metav1.StatusReasonNotFound, "could not find")
}

func TestPatchOfNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	err := c.Patch(t.Context(), configMap("one"), client.RawPatch(types.MergePatchType, []byte(`{}`)))
	reason(t, err, metav1.StatusReasonNotFound, `configmaps "one" not found`)
}

func TestPatchDryRun(t *testing.T) {
	t.Parallel()
	s := newStore(t, configMap("one"))
	c := s.Client(store.ClientOptions{})
	cm := configMap("one")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"k":"new"}}`))
	must(t, c.Patch(t.Context(), cm, patch, client.DryRunAll))
	if cm.Data["k"] != "new" || read(t, c, cm).Data["k"] != "v" || s.Revision() != 999 {
		t.Errorf("the answer is %+v, want k:new there and v in the store, at revision 999", cm)
	}
}

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// immutable is the answer to an update of that field.
func immutable(path ...string) error {
	return apierrs.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "gadget-child",
		field.ErrorList{field.Invalid(field.NewPath(path[0], path[1:]...), "x", "field is immutable")})
}

// A child is deleted only if that is what lets the change be made.
func TestChildIsRecreatedOnlyIfThatIsProven(t *testing.T) {
	existing := givenConfigMap.With(func(c *corev1.ConfigMap) {
		c.Name, c.ResourceVersion = "gadget-child", "7"
		c.Data = map[string]string{"color": "red", "size": "1"}
	})
	invalid := apierrs.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "gadget-child", nil)
	for name, test := range map[string]struct {
		off bool
		// update and dryRun are the answers to these requests.
		update, dryRun error
		// once has only the first dry run fail.
		once   bool
		change func(*corev1.ConfigMap)
		want   string
	}{
		"the field differs":              {update: immutable("data"), want: "update, create, delete, create"},
		"a member of the field differs":  {update: immutable("data", "color"), want: "update, create, delete, create"},
		"it is off":                      {off: true, update: immutable("data"), want: "update"},
		"the field does not differ":      {update: immutable("data", "size"), want: "update"},
		"the field is not desired":       {update: immutable("binaryData"), want: "update"},
		"no field is named":              {update: invalid, want: "update"},
		"another refusal":                {update: apierrs.NewForbidden(configMapResource, "gadget-child", errBoom), want: ""},
		"the desired one is invalid too": {update: immutable("data"), dryRun: invalid, want: "update, create"},
		"the desired one may not be tried": {
			update: immutable("data"), dryRun: apierrs.NewForbidden(configMapResource, "gadget-child", errBoom), want: "update, create",
		},
		"the desired one cannot be tried now": {
			update: immutable("data"), dryRun: errBoom, once: true, want: "update, create, create, delete, create",
		},
		"it has a finalizer": {update: immutable("data"), change: finalized, want: "update, create, delete"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls trace
			var last error
			answer := func(action rtesting.Action) (bool, runtime.Object, error) {
				if action.GetResource().Resource != "ConfigMap" || action.GetVerb() == "get" || action.GetVerb() == "list" {
					return false, nil, nil
				}
				calls.add("%s", action.GetVerb())
				switch action.GetVerb() {
				case "create":
					fails := test.dryRun != nil && !(test.once && slices.Contains(calls.calls[:len(calls.calls)-1], "create"))
					return fails, nil, test.dryRun
				case "update":
					return true, nil, test.update
				}
				return false, nil, nil
			}
			child := existing.Object()
			if test.change != nil {
				test.change(child)
			}
			node := statusChild()
			node.RecreateImmutable = !test.off
			node.DesiredChild = func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
				return &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "gadget-child"},
					Data:       map[string]string{"color": "blue", "size": "1"},
				}, nil
			}
			node.ReflectChildStatusOnParent = func(_ context.Context, _ *resources.Widget, _ *corev1.ConfigMap, err error) { last = err }
			q, _ := newVirtualQueue(node, []client.Object{steadyWidget, child}, answer)
			q.run(t, 5*time.Second)
			if test.want != "" {
				calls.compare(t, strings.Split(test.want, ", "))
			} else if slices.Contains(calls.calls, "delete") {
				t.Errorf("the calls are %v, want no delete", calls.calls)
			}
			recreated := strings.Contains(test.want, "delete")
			if recreated != (last == nil) || !recreated && !errors.Is(last, test.update) {
				t.Errorf("the last error is %v, want %v, or none once it is made anew", last, test.update)
			}
		})
	}
}

func finalized(c *corev1.ConfigMap) { c.Finalizers = []string{theirs} }

// A child that is refused again after it was created anew is not deleted again, but for another change.
func TestRecreationEnds(t *testing.T) {
	color, byOther := "blue", false
	var last error
	refuse := func(action rtesting.Action) (bool, runtime.Object, error) {
		if byOther || action.GetResource().Resource != "ConfigMap" || action.GetVerb() != "update" {
			return false, nil, nil
		}
		return true, nil, immutable("data")
	}
	var q *virtualQueue
	// Another client changes what nobody may change, and the child has to be corrected.
	change := func(i int) {
		byOther = true
		defer func() { byOther = false }()
		child := &corev1.ConfigMap{}
		if err := q.client.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "gadget-child"}, child); err != nil {
			t.Fatal(err)
		}
		child.Data["color"] = fmt.Sprint("grey-", i)
		if err := q.client.Update(t.Context(), child); err != nil {
			t.Fatal(err)
		}
		q.wake(0)
	}
	node := statusChild()
	node.RecreateImmutable = true
	node.DesiredChild = func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "gadget-child"}, Data: map[string]string{"color": color},
		}, nil
	}
	node.ReflectChildStatusOnParent = func(_ context.Context, _ *resources.Widget, _ *corev1.ConfigMap, err error) { last = err }
	q, _ = newVirtualQueue(node, []client.Object{steadyWidget}, refuse)
	for i, next := range []string{"green", "yellow"} {
		q.run(t, time.Minute)
		color = next
		q.wake(0)
		q.run(t, time.Minute)
		for i := range 5 {
			change(i)
			q.run(t, time.Hour)
		}
		if n := q.count("delete ConfigMap"); n != i+1 {
			t.Errorf("%s: the object was deleted %d times, want %d: %v", next, n, i+1, q.calls.calls)
		}
	}
	if !apierrs.IsInvalid(last) || !strings.HasSuffix(last.Error(), "(it was deleted and created again for this change before)") {
		t.Errorf("the last error is %v, want it invalid, and that it was made anew before", last)
	}
}

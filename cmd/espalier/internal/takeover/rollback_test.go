package takeover_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/takeover"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

// TestRollback gives back what was handed over: all is as it was, to the last managed field.
func TestRollback(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	o, d := deploy(t, c), newDoor(t, plane.Config(t))
	before := o.state(t, c)
	for _, args := range [][]string{{"--rollback"}, {}, {}, {"--rollback"}, {"--rollback"}} {
		if out, err := d.run(t, o.Namespace, args...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	if diff := cmp.Diff(before, o.state(t, c)); diff != "" {
		t.Errorf("what is given back differs from what was there (-before, +after):\n%s", diff)
	}
}

// TestRollbackOfWhatHasChanged gives a component back after the new operator has run for a while, and has written its
// objects by applies or by updates, which remove the old marks.
func TestRollbackOfWhatHasChanged(t *testing.T) {
	t.Parallel()
	for _, policy := range []apis.UpdatePolicy{apis.UpdateApply, apis.UpdateReplace} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			testRollbackOfWhatHasChanged(t, policy)
		})
	}
}

// testRollbackOfWhatHasChanged expects that the old operator gets what the new one has made since, and that nothing has
// marks of the new one. Then it hands the component over again.
func testRollbackOfWhatHasChanged(t *testing.T, policy apis.UpdatePolicy) {
	t.Helper()
	c := newClient(t)
	o, d := deploy(t, c, func(a *resources.Assembly) { a.Spec.UpdatePolicy = policy }), newDoor(t, plane.Config(t))
	run := func(args ...string) {
		t.Helper()
		if out, err := d.run(t, o.Namespace, args...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	run()
	_, stop := startOperator(t, o.Namespace)
	isReady(t, c, o, 1)
	extra := o.objects[0].DeepCopy()
	extra.SetName("extra")
	o.change(t, c, append(slices.Delete(slices.Clone(o.objects), 1, 2), extra))
	isReady(t, c, o, 2)
	stop()
	out, err := d.run(t, o.Namespace, "--rollback")
	if err == nil || !strings.Contains(err.Error(), "its field manager "+newPrefix+" has written it at") {
		t.Fatalf("right after the new operator stops, the error is %v, want one about its field manager\n%s", err, out)
	}
	o.objects = append(o.objects, extra)
	before := o.uids(t, c)
	for _, live := range o.live(t, c) {
		age(t, c, live)
	}
	run("--rollback")
	if diff := cmp.Diff(before, o.uids(t, c)); diff != "" {
		t.Errorf("the objects differ (-before, +after):\n%s", diff)
	}
	for _, live := range o.live(t, c) {
		o.isOld(t, live)
	}
	a := &resources.Assembly{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o.Assembly), a); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a.Finalizers, []string{oldName}) || a.Annotations[takeover.Annotation] != "" {
		t.Errorf("the component has the finalizers %v and the annotations %v, want the old one and none",
			a.Finalizers, a.Annotations)
	}
	var recorded []string
	for _, record := range a.Status.Inventory {
		recorded = append(recorded, record.Name)
		if record.UID != "" || record.Digest == "" {
			const why = "the record of %s has the UID %q and the digest %q, want none and one"
			t.Errorf(why, record.Name, record.UID, record.Digest)
		}
	}
	want := []string{"settings", "login", "seed", "fixed", "server", purged, "plots." + o.Namespace + ".test", "extra"}
	if diff := cmp.Diff(want, recorded); diff != "" {
		t.Errorf("the inventory differs (-want, +got):\n%s", diff)
	}
	if a.Status.Revision != 3 || a.Status.ProcessingDigest != strings.Repeat("a", 64) {
		t.Errorf("the status is %+v, want the revision and the digest that there were", a.Status)
	}
	run()
	if after := o.uids(t, c); !cmp.Equal(before, after) {
		t.Errorf("handed over again, the objects are %v, want %v", after, before)
	}
}

// isOld expects that an object has the marks of the old operator, and none of the new one.
func (o *oldComponent) isOld(t *testing.T, live *unstructured.Unstructured) {
	t.Helper()
	annotations, labels := live.GetAnnotations(), live.GetLabels()
	if labels[oldName+"/owner-id"] != o.hash || annotations[oldName+"/owner-id"] != o.text ||
		annotations[oldName+"/digest"] == "" {
		t.Errorf("%s has the labels %v and the annotations %v, want the old marks", live.GetName(), labels, annotations)
	}
	for _, marks := range []map[string]string{labels, annotations} {
		for name := range marks {
			if strings.HasPrefix(name, newPrefix+"/") {
				t.Errorf("%s has %s, want no mark of the new operator", live.GetName(), name)
			}
		}
	}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == newPrefix || entry.Manager == takeover.Manager {
			t.Errorf("%s has fields of the manager %s, want none: %v", live.GetName(), entry.Manager, entry)
		}
	}
	guarded, finalizers := live.GetKind() == "CustomResourceDefinition", live.GetFinalizers()
	if guarded != slices.Contains(finalizers, oldName) {
		t.Errorf("%s has the finalizers %v, want the old one on types alone", live.GetName(), finalizers)
	}
}

// TestFinalize removes all that is old, and the next release drops everything all the same.
func TestFinalize(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	o, d := deploy(t, c), newDoor(t, plane.Config(t))
	if out, err := d.run(t, o.Namespace); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, stop := startOperator(t, o.Namespace)
	defer stop()
	isReady(t, c, o, 1)
	before := o.uids(t, c)
	for range 2 {
		if out, err := d.run(t, o.Namespace, "--finalize"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if after := o.uids(t, c); !cmp.Equal(before, after) {
		t.Errorf("the objects are %v, want %v", after, before)
	}
	for _, live := range o.live(t, c) {
		for _, name := range []string{"owner-id", "digest"} {
			if live.GetLabels()[oldName+"/"+name] != "" || live.GetAnnotations()[oldName+"/"+name] != "" {
				t.Errorf("%s has the old %s still", live.GetName(), name)
			}
		}
		for _, entry := range live.GetManagedFields() {
			if entry.Manager == oldName || entry.Manager == takeover.Manager {
				t.Errorf("%s has fields of the manager %s, want none: %v", live.GetName(), entry.Manager, entry)
			}
		}
	}
	out, err := d.run(t, o.Namespace, "--rollback")
	if err != nil || !strings.Contains(out, "nothing to do") {
		t.Errorf("a rollback says %q, and the error is %v, want nothing to do", out, err)
	}
	if err := c.Delete(t.Context(), o.Assembly); err != nil {
		t.Fatal(err)
	}
	for _, object := range o.objects {
		isGone(t, c, object)
	}
	isGone(t, c, o.Assembly)
}

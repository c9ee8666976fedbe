package sharded_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// world are the objects that there are at one point of a history.
type world map[types.UID]client.Object

// worldAfter returns the objects that there are after the changes of a history.
func worldAfter(changes []change) world {
	w := world{}
	for _, c := range changes {
		w.apply(c)
	}
	return w
}

func (w world) apply(c change) {
	w[c.object.GetUID()] = c.object
	if c.deleted {
		delete(w, c.object.GetUID())
	}
}

// broken returns what the changes of a history break of the laws, each with its revision:
//
//   - No child is created while its Widget has another one of its role.
//   - A finalizer is there before what it guards, and until that is gone.
//   - A note is not deleted while its Widget is to stay.
func broken(changes []change) []string {
	var all []string
	now := world{}
	for _, c := range changes {
		before, known := now[c.object.GetUID()]
		var errs []string
		switch {
		case !known:
			errs = now.made(c.object)
		case c.deleted:
			errs = now.gone(before)
		}
		if known {
			errs = append(errs, now.finalized(before, c)...)
		}
		for _, err := range errs {
			all = append(all, fmt.Sprintf("revision %d: %T %s: %s", c.revision, c.object, c.object.GetName(), err))
		}
		now.apply(c)
	}
	return all
}

// made returns what the creation of an object breaks.
func (w world) made(object client.Object) (errs []string) {
	role, owner := object.GetLabels()[roleLabel], ownerOf(object)
	widget, ok := w[owner].(*resources.Widget)
	if role == "" || !ok {
		return nil
	}
	for _, other := range w.of(owner) {
		if other.GetLabels()[roleLabel] == role {
			errs = append(errs, fmt.Sprintf("the Widget has the %s %s already", role, other.GetName()))
		}
	}
	if finalizer := guards(role); finalizer != "" && !slices.Contains(widget.Finalizers, finalizer) {
		errs = append(errs, fmt.Sprintf("the Widget does not have the finalizer %s", finalizer))
	}
	return errs
}

// gone returns what the deletion of an object breaks.
func (w world) gone(object client.Object) []string {
	widget, ok := w[ownerOf(object)].(*resources.Widget)
	if object.GetLabels()[roleLabel] == noteRole && ok && widget.DeletionTimestamp == nil {
		return []string{"it is deleted, and its Widget is to stay"}
	}
	return nil
}

// finalized returns what the loss of finalizers breaks.
func (w world) finalized(before client.Object, c change) (errs []string) {
	for _, finalizer := range before.GetFinalizers() {
		if !c.deleted && slices.Contains(c.object.GetFinalizers(), finalizer) {
			continue
		}
		for _, other := range w.of(before.GetUID()) {
			if guards(other.GetLabels()[roleLabel]) == finalizer {
				errs = append(errs, fmt.Sprintf("%s is taken off, and %s is there", finalizer, other.GetName()))
			}
		}
	}
	return errs
}

// of returns what was made for a Widget, sorted.
func (w world) of(widget types.UID) []client.Object {
	var all []client.Object
	for _, object := range w {
		if ownerOf(object) == widget {
			all = append(all, object)
		}
	}
	slices.SortFunc(all, func(a, b client.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}

// ownerOf returns the UID of the Widget for which an object was made, "" if it is none.
func ownerOf(object client.Object) types.UID {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return owner.UID
	}
	uid, _ := strings.CutPrefix(object.GetName(), "entry-of-")
	if object.GetLabels()[roleLabel] != entryRole {
		return ""
	}
	return types.UID(uid)
}

// guards returns the finalizer that guards what has a role.
func guards(role string) string {
	switch {
	case role == entryRole:
		return registryFinalizer
	case strings.HasPrefix(role, "part-"):
		return partsFinalizer
	}
	return ""
}

// Each law is broken by some history, and by none that is as it should be.
func TestLaws(t *testing.T) {
	widget := func(change func(*resources.Widget)) *resources.Widget {
		w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{
			Name: "w", UID: "w", Finalizers: []string{registryFinalizer, partsFinalizer},
		}}
		if change != nil {
			change(w)
		}
		return w
	}
	guarded := widget(nil)
	terminating := widget(func(w *resources.Widget) { w.DeletionTimestamp = &metav1.Time{} })
	made := func(name, role string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), Labels: map[string]string{roleLabel: role},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(guarded, widgetKind)},
		}}
	}
	entry := entry(guarded)
	entry.UID = "entry"
	first, second, part := made("first", noteRole), made("second", noteRole), made("part", "part-0")
	for name, test := range map[string]struct {
		changes []change
		want    string
	}{
		"as it should be": {changes: []change{
			{object: guarded}, {object: entry}, {object: part}, {object: first}, {object: terminating},
			{object: first, deleted: true}, {object: second}, {object: part, deleted: true},
			{object: entry, deleted: true}, {object: terminating, deleted: true}, {object: second, deleted: true},
		}},
		"a note is made twice": {want: "has the note first already", changes: []change{
			{object: guarded}, {object: first}, {object: second},
		}},
		"an entry without a finalizer": {want: "does not have the finalizer " + registryFinalizer, changes: []change{
			{object: widget(func(w *resources.Widget) { w.Finalizers = nil })}, {object: entry},
		}},
		"a finalizer goes early": {want: registryFinalizer + " is taken off, and entry-of-w is there", changes: []change{
			{object: guarded}, {object: entry}, {object: terminating},
			{object: widget(func(w *resources.Widget) { w.Finalizers = []string{partsFinalizer} })},
		}},
		"a Widget goes early": {want: partsFinalizer + " is taken off, and part is there", changes: []change{
			{object: guarded}, {object: part}, {object: terminating}, {object: terminating, deleted: true},
		}},
		"a note goes": {want: "its Widget is to stay", changes: []change{
			{object: guarded}, {object: first}, {object: first, deleted: true},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(broken(test.changes), "\n")
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("the history breaks %q, want %q", got, test.want)
			}
		})
	}
}

var widgetKind = resources.GroupVersion.WithKind("Widget")

// described returns a line for each Widget that is there in the end of a history, and for each object of a role.
func described(changes []change) []string {
	now := worldAfter(changes)
	var lines []string
	for _, object := range now {
		if _, ok := object.(*resources.Widget); ok || object.GetLabels()[roleLabel] != "" {
			lines = append(lines, line(object, now[ownerOf(object)]))
		}
	}
	slices.Sort(lines)
	return lines
}

func line(object, owner client.Object) string {
	of := "nobody"
	if owner != nil {
		of = owner.GetName()
	}
	role := object.GetLabels()[roleLabel]
	switch object := object.(type) {
	case *resources.Widget:
		return fmt.Sprintf("Widget %s, reconciled as it is: %t", object.Name,
			object.Status.ObservedGeneration == object.Generation)
	case *corev1.ConfigMap:
		return fmt.Sprintf("%s of %s %s", role, of, object.Data["color"])
	case *corev1.Secret:
		return fmt.Sprintf("%s of %s %s", role, of, object.Data["color"])
	}
	return fmt.Sprintf("%T %s", object, object.GetName())
}

// wanted returns the lines for Widgets and for what they are to have.
func wanted(widgets map[string]map[string]string) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(widgets)) {
		w := &resources.Widget{Spec: resources.WidgetSpec{Fields: widgets[name]}}
		color := widgets[name]["color"]
		lines = append(lines, fmt.Sprintf("Widget %s, reconciled as it is: true", name),
			fmt.Sprintf("%s of %s ", entryRole, name), fmt.Sprintf("%s of %s %s", noteRole, name, color))
		for i := range number(w) {
			lines = append(lines, fmt.Sprintf("part-%d of %s %s", i, name, color))
		}
	}
	slices.Sort(lines)
	return lines
}

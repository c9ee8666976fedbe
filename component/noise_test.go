package component_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// logged makes one request, and returns what it logs, but for what others than the component log.
func (o *operated) logged(t *testing.T) []string {
	t.Helper()
	var lines []string
	sink := funcr.New(func(prefix, args string) {
		if strings.HasSuffix(prefix, "ComponentReconciler") && !strings.Contains(args, "finalizer") {
			lines = append(lines, args)
		}
	}, funcr.Options{})
	ctx := logr.NewContext(rtime.StashNow(t.Context(), o.now), sink)
	if _, err := o.root.Reconcile(ctx, reconcilers.Request{NamespacedName: o.key}); err != nil {
		t.Fatal(err)
	}
	return lines
}

func manyParts(order string, count int) []client.Object {
	var parts []client.Object
	for i := range count {
		parts = append(parts, partOf("default", fmt.Sprintf("part-%s-%d", order, i), order))
	}
	return parts
}

// However many objects there are, a wave has one event for each verb. It says how many there are, and names the first.
func TestComponentEventsArePerWave(t *testing.T) {
	house := resources.NewAssembly("default", "house", slices.Concat(manyParts("0", 40), manyParts("1", 2), manyParts("2", 1))...)
	house.UID = "house-uid"
	o := newOperated(t, assembling(), house, nil)
	o.untilIdle(t)
	want := []string{
		"Normal Created: Created 40 objects in wave 1 of 3: ConfigMap default/part-0-0, ConfigMap default/part-0-1, ConfigMap default/part-0-2, " +
			"ConfigMap default/part-0-3, ConfigMap default/part-0-4 and 35 more",
		"Normal Created: Created 2 objects in wave 2 of 3: ConfigMap default/part-1-0, ConfigMap default/part-1-1",
		"Normal Created: Created ConfigMap default/part-2-0",
	}
	created := func(reason string) []string {
		return slices.DeleteFunc(slices.Clone([]string(o.events)), func(event string) bool { return !strings.HasPrefix(event, "Normal "+reason+":") })
	}
	if got := created("Created"); !slices.Equal(got, want) {
		t.Errorf("the events are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	house = o.house(t)
	o.change(t, house, func() { house.SetObjects(manyParts("0", 1)...) })
	o.untilIdle(t)
	if got := created("Deleted"); len(got) != 1 || !strings.HasPrefix(got[0], "Normal Deleted: Deleted 42 objects: ConfigMap default/part-") {
		t.Errorf("the events are\n%s\nwant one that says that 42 objects were deleted", strings.Join(got, "\n"))
	}
	if len(o.events) > 10 {
		t.Errorf("there are %d events, want at most 10: %q", len(o.events), []string(o.events))
	}
}

// A component logs a line for each object that it changes, and nothing if it changes none. No line has a value of a
// Secret.
func TestComponentLogs(t *testing.T) {
	walls := partOf("default", "walls", "0")
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "key"}, Data: map[string][]byte{"a": []byte("hush")},
	}
	house := resources.NewAssembly("default", "house", walls, secret)
	house.UID = "house-uid"
	o := newOperated(t, assembling(), house, nil)
	var recorded []string
	for range 3 {
		recorded = append(recorded, o.logged(t)...)
	}
	want := []string{
		`"level"=0 "msg"="created" "object"="ConfigMap default/walls" "reason"="it does not exist"`,
		`"level"=0 "msg"="created" "object"="Secret default/key" "reason"="it does not exist"`,
	}
	if !slices.Equal(recorded, want) {
		t.Errorf("the roll-out logs\n%s\nwant\n%s", strings.Join(recorded, "\n"), strings.Join(want, "\n"))
	}
	if idle := o.logged(t); len(idle) > 0 {
		t.Errorf("the logs at rest are %q, want none", idle)
	}
	written := &corev1.ConfigMap{}
	written.Name = "walls"
	o.change(t, written, func() { written.Data = map[string]string{"name": "ruins"} })
	stolen := &corev1.Secret{}
	stolen.Name = "key"
	o.change(t, stolen, func() { stolen.Data = map[string][]byte{"a": []byte("stolen")} })
	changed := o.logged(t)
	if len(changed) != 2 || !strings.HasPrefix(changed[0], `"level"=0 "msg"="applied" "object"=`) {
		t.Errorf("the change logs\n%s\nwant two lines, the first of what was applied", strings.Join(changed, "\n"))
	}
	for _, line := range changed {
		for _, value := range []string{"hush", "stolen", "aHVzaA", "c3RvbGVu"} {
			if strings.Contains(line, value) {
				t.Errorf("a line has a value, want none: %s", line)
			}
		}
	}
	house = o.house(t)
	if err := o.client.Delete(t.Context(), house); err != nil {
		t.Fatal(err)
	}
	if gone := o.logged(t); len(gone) != 2 || !strings.HasPrefix(gone[0], `"level"=0 "msg"="deleted" "object"=`) {
		t.Errorf("the deletion logs\n%s\nwant two lines, the first of what was deleted", strings.Join(gone, "\n"))
	}
}

// The error of an auxiliary object is logged once, however often the object is tried again.
func TestTheErrorOfAnAuxiliaryObjectIsLoggedOnce(t *testing.T) {
	refused := annotated(partOf("default", "refused", "0"), generator.AnnotationParticipation, "auxiliary")
	house := resources.NewAssembly("default", "house", refused)
	house.UID = "house-uid"
	o := newOperated(t, assembling(), house, nil, rtesting.InduceFailure("create", "ConfigMap",
		rtesting.InduceFailureOpts{Name: "refused", Error: errors.New("no bricks")}))
	var lines []string
	for range 5 {
		lines = append(lines, o.logged(t)...)
		o.now = o.now.Add(time.Minute)
	}
	want := []string{`"level"=0 "msg"="unable to write an auxiliary object" "object"="ConfigMap default/refused" ` +
		`"reason"="unable to create ConfigMap default/refused: no bricks"`}
	if !slices.Equal(lines, want) {
		t.Errorf("five requests log\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

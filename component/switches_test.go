package component_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// annotated returns the object with annotations under the shared prefix.
func annotated[T client.Object](object T, namesAndValues ...string) T {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for i := 0; i < len(namesAndValues); i += 2 {
		annotations[generator.SharedPrefix+"/"+namesAndValues[i]] = namesAndValues[i+1]
	}
	object.SetAnnotations(annotations)
	return object
}

// TestAuxiliaryObjects: the component does without an object that is not ready, and without one that cannot be created.
func TestAuxiliaryObjects(t *testing.T) {
	unready := annotated(deployment("unready", "0", 1), generator.AnnotationParticipation, "auxiliary")
	refused := annotated(partOf("default", "refused", "0"), generator.AnnotationParticipation, "auxiliary")
	unchecked := annotated(deployment("unchecked", "0", 1), generator.AnnotationParticipation, "unchecked")
	last := partOf("default", "last", "1")
	for name, test := range map[string]struct {
		objects  []client.Object
		observed []string
		idle     bool
	}{
		"unready": {
			[]client.Object{unready, last},
			[]string{"Assembly house Healthy", "Deployment unready Creating: 0 of 1 replica available auxiliary"}, true,
		},
		"unchecked": {[]client.Object{unchecked, last}, []string{"Assembly house Healthy"}, true},
		"refused": {
			[]client.Object{refused, last},
			[]string{"Assembly house Healthy", "ConfigMap refused Failing: unable to create ConfigMap default/refused: no bricks" +
				" (unable to create ConfigMap default/refused: no bricks) auxiliary"}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			house := resources.NewAssembly("default", "house", test.objects...)
			house.UID = "house-uid"
			node := assembling()
			o := newOperated(t, node, house, nil, rtesting.InduceFailure("create", "ConfigMap",
				rtesting.InduceFailureOpts{Name: "refused", Error: errors.New("no bricks")}))
			s := &supervised{assemblyNode: node}
			o.root.Reconciler = s
			for range 4 {
				if _, err := o.reconcile(t, 0); err != nil {
					t.Fatal(err)
				}
			}
			o.reasonIs(t, metav1.ConditionTrue, "Ready")
			o.exists(t, last, true)
			s.saw(t, test.observed...)
			if test.idle {
				o.idles(t)
				s.saw(t, test.observed...)
				return
			}
			version := o.house(t).ResourceVersion
			result, err := o.reconcile(t, time.Minute)
			if err != nil || o.house(t).ResourceVersion != version || len(o.writes) != 1 || result.RequeueAfter > time.Minute {
				t.Errorf("the result is %+v, the error %v and the writes are %v, want within a minute, none and one",
					result, err, o.writes)
			}
			if record := o.house(t).Status.Inventory[0]; record.Name != "refused" || !strings.Contains(record.Message, "no bricks") {
				t.Errorf(`the record is %+v, want refused, with "no bricks"`, record)
			}
		})
	}
}

// TestPresence: an object that is to be absent is deleted, one that is orphaned stays, whatever their delete policies.
func TestPresence(t *testing.T) {
	absent := annotated(partOf("default", "absent", "0"), generator.AnnotationDeletePolicy, "orphan")
	orphaned := partOf("default", "orphaned", "0")
	house := resources.NewAssembly("default", "house", absent, orphaned)
	house.UID = "house-uid"
	o := newOperated(t, assembling(), house, nil)
	o.untilIdle(t)
	annotated(absent, generator.AnnotationPresence, "absent")
	annotated(orphaned, generator.AnnotationPresence, "orphaned")
	theirs := annotated(partOf("default", "theirs", "0"), generator.AnnotationPresence, "absent")
	if err := o.client.Create(t.Context(), theirs.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	o.change(t, house, func() { house.SetObjects(absent, orphaned, theirs) })
	o.untilIdle(t)
	o.reasonIs(t, metav1.ConditionTrue, "Ready")
	o.exists(t, absent, false)
	o.exists(t, orphaned, true)
	o.exists(t, theirs, true)
	if n := len(o.house(t).Status.Inventory); n != 0 {
		t.Errorf("%d objects are recorded, want none", n)
	}
	found := &corev1.ConfigMap{}
	o.get(t, "orphaned", found)
	if found.Labels[componentPrefix+"/owner-id"] != "" {
		t.Errorf("the labels are %v, want no owner", found.Labels)
	}
	o.idles(t)
	annotated(absent, generator.AnnotationPresence, "managed")
	o.change(t, house, func() { house.SetObjects(absent) })
	o.untilIdle(t)
	o.exists(t, absent, true)
}

// TestReadOnly: a wave waits for an object that is only read, which is never written.
func TestReadOnly(t *testing.T) {
	theirs := annotated(deployment("theirs", "0", 1), generator.AnnotationPresence, "read-only")
	last := partOf("default", "last", "1")
	house := resources.NewAssembly("default", "house", theirs, last)
	house.UID = "house-uid"
	o, s := newSupervised(t, house, assembling())
	waits := func(want, observed string) {
		t.Helper()
		o.untilIdle(t)
		c := meta.FindStatusCondition(o.house(t).Status.Conditions, "Ready")
		if c.Reason != "Processing" || !strings.Contains(c.Message, "waiting for Deployment default/theirs: "+want) {
			t.Errorf("the condition is %+v, want that it waits for theirs: %s", c, want)
		}
		if !slices.Contains(s.observed, observed) {
			t.Errorf("the observed objects are %q, want %q among them", s.observed, observed)
		}
		o.exists(t, last, false)
	}
	waits("it does not exist, and is only read", "Deployment theirs Blocked: it does not exist, and is only read")
	live := deployment("theirs", "0", 1)
	if err := o.client.Create(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	waits("0 of 1 replica available", "Deployment theirs Blocked: 0 of 1 replica available")
	o.runs(t, "theirs", 1)
	o.untilIdle(t)
	o.reasonIs(t, metav1.ConditionTrue, "Ready")
	o.exists(t, last, true)
	o.idles(t)
	if records := o.house(t).Status.Inventory; len(records) != 1 || records[0].Name != "last" {
		t.Errorf("the records are %+v, want last alone", records)
	}

	annotated(theirs, generator.AnnotationIfAbsent, "ignore")
	o.change(t, house, func() { house.SetObjects(theirs, last) })
	if err := o.client.Delete(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	o.untilIdle(t)
	o.reasonIs(t, metav1.ConditionTrue, "Ready")
	s.mode = reconcilers.Withdraw
	o.untilIdle(t)
	o.reasonIs(t, metav1.ConditionUnknown, "Disabled")

	// What was managed is let go first.
	s.mode = reconcilers.Maintain
	managed := deployment("theirs", "0", 1)
	o.change(t, house, func() { house.SetObjects(managed) })
	o.untilIdle(t)
	o.runs(t, "theirs", 1)
	o.untilIdle(t)
	o.change(t, house, func() { house.SetObjects(theirs) })
	o.untilIdle(t)
	// Its annotations have changed, which is a new generation of a Deployment.
	o.runs(t, "theirs", 1)
	o.untilIdle(t)
	o.reasonIs(t, metav1.ConditionTrue, "Ready")
	o.get(t, "theirs", live)
	if live.Labels[componentPrefix+"/owner-id"] != "" || len(o.house(t).Status.Inventory) > 0 {
		t.Errorf("the labels are %v, want no owner, and no record", live.Labels)
	}
}

// TestSuspendReadOnly: an object that is only read is not the component's to suspend, so nothing waits for it, neither
// for one that is missing nor for one that runs.
func TestSuspendReadOnly(t *testing.T) {
	theirs := annotated(deployment("theirs", "0", 1), generator.AnnotationPresence, "read-only")
	mine, last := deployment("mine", "0", 1), partOf("default", "last", "1")
	house := resources.NewAssembly("default", "house", theirs, mine, last)
	house.UID = "house-uid"
	o, s := newSupervised(t, house, assembling())
	o.untilIdle(t)
	s.mode = reconcilers.Suspend
	suspended := func() {
		t.Helper()
		o.untilIdle(t)
		o.reasonIs(t, metav1.ConditionUnknown, "Suspended")
		s.saw(t, "Assembly house Suspended")
		o.idles(t)
	}
	o.runs(t, "mine", 0)
	suspended()
	live := deployment("theirs", "0", 1)
	if err := o.client.Create(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	suspended()
	if n := o.replicas(t, "theirs"); n != 1 {
		t.Errorf("there are %d replicas, want 1", n)
	}

	s.mode = reconcilers.Maintain
	o.untilIdle(t)
	o.runs(t, "mine", 1)
	o.untilIdle(t)
	c := meta.FindStatusCondition(o.house(t).Status.Conditions, "Ready")
	if c.Reason != "Processing" || !strings.Contains(c.Message, "waiting for Deployment default/theirs: 0 of 1 replica") {
		t.Errorf("the condition is %+v, want that it waits for theirs with 0 of 1 replica", c)
	}
	o.runs(t, "theirs", 1)
	o.untilIdle(t)
	o.reasonIs(t, metav1.ConditionTrue, "Ready")
}

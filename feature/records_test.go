package feature_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// entry is an entry of a record that says the same since a time.
func entry(at time.Time, kind, name string, state apis.State, message string) apis.DependentStatus {
	d := bad(kind, name, state, message)
	d.Since = metav1.NewTime(at)
	return d
}

func TestRecordOfAllObjects(t *testing.T) {
	progressing := func(dependents ...apis.DependentStatus) edit {
		return was(apis.FeatureProgressing, true, dependents...)
	}
	cash := entry(began, "Deployment", "cash", apis.StateHealthy, "")
	web := entry(began, "Deployment", "web", apis.StateFailing, "no image")
	failing := ready(isFalse, apis.StateFailing, "Deployment default/web: no image")
	broken := reports("Deployment web Failing - no image", "Deployment cash Healthy")
	table := tests{
		"the worst is the first": withRow(after(began, given(broken), failing, progressing(web, cash))).back(grace),
		"an entry that says the same keeps its time": withRow(after(later,
			given(broken, failing, progressing(web, cash)))).back(grace - time.Minute),
		"an entry that says something else is of now": after(later,
			given(reports("Deployment web Healthy", "Deployment cash Healthy"), failing, progressing(web, cash)), healthy,
			since(apis.FeatureHealthy, later, true, cash, entry(later, "Deployment", "web", apis.StateHealthy, ""))),
		"an entry of an earlier release has no time": withRow(after(later, given(broken, failing,
			progressing(bad("Deployment", "web", apis.StateFailing, "no image"), cash)))).back(grace - time.Minute),
		"an object that is gone has none": after(later,
			given(reports("Deployment cash Healthy"), healthy, was(apis.FeatureHealthy, true, cash, web)),
			was(apis.FeatureHealthy, true, cash)),
		"an object that a request did not get to keeps its own": withRow(after(later,
			given(reports("Deployment web error no quota"), returns("fail"), healthy,
				was(apis.FeatureHealthy, true, entry(began, "Deployment", "api", apis.StateHealthy, ""), cash)),
			ready(isFalse, apis.StateError, "Deployment default/web: no quota"),
			since(apis.FeatureProgressing, later, true, entry(later, "Deployment", "web", apis.StateError, "no quota"),
				entry(began, "Deployment", "api", apis.StateHealthy, ""), cash))).fails("boom"),
		"what is withdrawn and gone has none": after(later,
			given(off, reports("Deployment cash absent"), healthy, was(apis.FeatureHealthy, true, cash)),
			ready(isTrue, apis.StateDisabled, ""), since(apis.FeatureDisabled, later, false)),
		"what is suspended has one": after(later, given(paused, reports("Deployment cash Suspended"), healthy,
			was(apis.FeatureHealthy, true, cash)), ready(isTrue, apis.StateSuspended, ""),
			since(apis.FeatureSuspended, later, true, entry(later, "Deployment", "cash", apis.StateSuspended, ""))),
	}
	table.RunNode(t, scheme, func() node {
		f := till(scripted{})
		f.Records = feature.RecordAll
		return f
	})
}

// There are bounds, and what they leave out is counted.
func TestRecordsAreBounded(t *testing.T) {
	for records, room := range map[feature.Records]int{"": 20, feature.RecordAll: 100} {
		t.Run(string(records), func(t *testing.T) {
			f := till(scripted{})
			f.Records = records
			s := shop.Object()
			known := resourcestate.NewContext(t.Context(), &resourcestate.State{})
			for i := range 130 {
				s.Spec.Reports = append(s.Spec.Reports, fmt.Sprintf("Deployment web-%03d Failing", i))
			}
			for request := range 6 {
				if _, err := f.Reconcile(rtime.StashNow(known, began), s); err != nil {
					t.Fatal(err)
				}
				record := &s.Status.Features[0]
				if len(record.Dependents) != room || record.Dependents[0].Name != "web-000" {
					t.Errorf("%d objects are recorded, want the first %d", len(record.Dependents), room)
				}
				want := 130 - room
				if request == 3 {
					continue // until now it was not known that the count is not kept
				} else if request > 3 {
					want = 0
				}
				if record.OmittedDependents != want {
					t.Errorf("request %d counts %d more, want %d", request, record.OmittedDependents, want)
				}
				// A CustomResourceDefinition of an earlier release drops the count.
				record.OmittedDependents = 0
			}
		})
	}
}

// What a rule makes known of a healthy object is in the record, and an idle request writes nothing.
func TestAttributesOfHealthyObjects(t *testing.T) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "till", Generation: 7}}
	attributes := map[string]string{"pod": "web-0"}
	var failure error
	f := &featureOf{
		Name: "Till",
		Reconciler: nodeFunc{run: func(ctx context.Context, _ *Shop) {
			reconcilers.SupervisorOf(ctx).Observe(reconcilers.ObservedObject{
				Node: "Node", Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: "default", Name: "till",
				Object: object, Err: failure,
			})
		}},
		Health: map[schema.GroupKind]func(client.Object) apis.Health{
			{Kind: "ConfigMap"}: func(client.Object) apis.Health {
				return apis.Health{State: apis.StateHealthy, Attributes: attributes}
			},
		},
	}
	s := shop.Object()
	expect := func(at time.Time, want apis.DependentStatus) {
		t.Helper()
		if _, err := f.Reconcile(rtime.StashNow(t.Context(), at), s); err != nil {
			t.Fatal(err)
		}
		want.Kind, want.Namespace, want.Name = "ConfigMap", "default", "till"
		if diff := cmp.Diff([]apis.DependentStatus{want}, s.Status.Features[0].Dependents); diff != "" {
			t.Errorf("at %s the record differs (-want +got):\n%s", at, diff)
		}
	}
	well := apis.DependentStatus{
		State: apis.StateHealthy, Since: metav1.NewTime(began), Generation: 7, Attributes: map[string]string{"pod": "web-0"},
	}
	expect(began.Add(time.Millisecond), well)
	before := s.DeepCopyObject()
	expect(later, well)
	if diff := cmp.Diff(before, s); diff != "" {
		t.Errorf("an idle request changed something (-before +after), want nothing:\n%s", diff)
	}
	object.Generation, well.Generation = 8, 8
	expect(later, well)
	failure = errors.New("no quota")
	expect(later, apis.DependentStatus{
		State: apis.StateError, Message: "no quota", Since: metav1.NewTime(later), Generation: 8,
	})
	failure = nil
	for i := range 12 {
		attributes[fmt.Sprintf("key-%02d", i)] = strings.Repeat("v", 300)
	}
	well.Since = metav1.NewTime(expired)
	for i := range 10 {
		well.Attributes[fmt.Sprintf("key-%02d", i)] = strings.Repeat("v", 253) + "…"
	}
	delete(well.Attributes, "pod")
	expect(expired, well)
}

func TestRecordsThatAreNotKnown(t *testing.T) {
	f := till(scripted{})
	f.Records = "some"
	want := `Feature "Till" must define Records as "all" or not at all, not "some"`
	if err := f.Validate(t.Context()); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

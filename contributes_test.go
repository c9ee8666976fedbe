package espalier_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// What identifies the contributions of the node ConfigMap for the widget is a format.
const (
	contributionMark = "a8728eab2463c6964b8650cad239c779"

	contributionLabel     = espalier.ContributionLabel + contributionMark
	contributionManager   = "espalier-ConfigMap-" + contributionMark
	contributionFinalizer = espalier.ContributionLabel + "configmap.ConfigMap"
)

// theirs is a config map of somebody else.
var theirs = configMap.With(func(c *corev1.ConfigMap) {
	c.OwnerReferences, c.Data = nil, map[string]string{"shape": "round"}
	exists(c)
	c.ManagedFields = []metav1.ManagedFieldsEntry{
		fieldsOf("somebody", metav1.ManagedFieldsOperationUpdate, `{"f:data":{".":{},"f:shape":{}}}`),
	}
})

// contributed is what the node makes of it.
func contributed(c *corev1.ConfigMap) {
	c.Data["color"] = "blue"
	c.Labels = map[string]string{contributionLabel: "ConfigMap"}
	c.ManagedFields = append(c.ManagedFields, fieldsOf(contributionManager, metav1.ManagedFieldsOperationApply,
		`{"f:data":{"f:color":{}},"f:metadata":{"f:labels":{"f:`+contributionLabel+`":{}}}}`))
}

func fieldsOf(manager string, by metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: by, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func managedFields(b *fake.ClientBuilder) *fake.ClientBuilder { return b.WithReturnManagedFields() }

// contributionTracks are the tracks of a request, of the label and of objects.
func contributionTracks(t *testing.T, objects ...object) []rtesting.TrackRequest {
	t.Helper()
	labeled, err := labels.NewRequirement(contributionLabel, selection.Exists, nil)
	if err != nil {
		t.Fatal(err)
	}
	byLabel := rtesting.CreateTrackRequest("", "ConfigMap", "", "").By("default", "gadget")
	byLabel.TrackedReference = tracker.Reference{Kind: "ConfigMap", Selector: labels.NewSelector().Add(*labeled)}
	tracks := []rtesting.TrackRequest{byLabel}
	for _, object := range objects {
		tracks = append(tracks, rtesting.NewTrackRequest(object, widget, scheme))
	}
	return tracks
}

// contributes expects that the fields of a config map with the name are applied.
func contributes(name string, force bool) rtesting.ApplyRef {
	return rtesting.ApplyRef{
		Kind: "ConfigMap", Namespace: "default", Name: name, FieldOwner: contributionManager, Force: &force,
		ApplyConfiguration: rtesting.Applied(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: name, UID: theirs.Object().UID,
				Labels: map[string]string{contributionLabel: "ConfigMap"},
			},
			Data: map[string]string{"color": "blue"},
		}),
	}
}

// givesBack expects that nothing is applied to the config map any more.
func givesBack() []rtesting.ApplyRef {
	return []rtesting.ApplyRef{{
		Kind: "ConfigMap", Namespace: "default", Name: "gadget", FieldOwner: contributionManager, Force: new(false),
		ApplyConfiguration: rtesting.Applied(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget", UID: theirs.Object().UID},
		}),
	}}
}

func TestContributes(t *testing.T) {
	held := widget.With(hasFinalizer(contributionFinalizer))
	ours := []object{theirs.With(contributed)}
	none, off := held.With(with("none")), held.With(with("off"))
	updated := event(corev1.EventTypeNormal, "Updated", `Updated ConfigMap "gadget"`)
	givenBack := append(updated[:1:1], patchedFinalizer(contributionFinalizer)...)
	missing := is("Ready", metav1.ConditionFalse, "NotFound", "waiting for ConfigMap default/gadget")
	red := theirs.With(func(c *corev1.ConfigMap) {
		c.Data["color"] = "red"
		c.ManagedFields[0] = fieldsOf("somebody", metav1.ManagedFieldsOperationUpdate,
			`{"f:data":{".":{},"f:shape":{},"f:color":{}}}`)
	})
	const conflict = `fields of ConfigMap default/gadget are managed by others: .data.color by "somebody"`
	rows := tests{
		"it is missing": {
			Resource: widget.Object(), ExpectTracks: contributionTracks(t, configMap),
			ExpectResource: widget.With(missing).Object(),
		},
		"the finalizer is on before the fields are applied": {
			Resource: widget.Object(), GivenObjects: []object{theirs}, ExpectTracks: contributionTracks(t, configMap),
			ExpectPatches:  patchesFinalizers(contributionFinalizer),
			ExpectApplies:  []rtesting.ApplyRef{contributes("gadget", false)},
			ExpectEvents:   append(patchedFinalizer(contributionFinalizer), updated...),
			ExpectResource: widget.With(hasFinalizer(contributionFinalizer), written, isReady).Object(),
		},
		"nothing to do": {
			Resource: held.Object(), GivenObjects: ours, ExpectTracks: contributionTracks(t, configMap),
			ExpectResource: held.With(isReady).Object(),
		},
		"somebody else has set the field to another value": {
			Resource: held.Object(), GivenObjects: []object{red}, ExpectTracks: contributionTracks(t, configMap),
			ExpectApplies:  []rtesting.ApplyRef{contributes("gadget", false)},
			ExpectEvents:   event(corev1.EventTypeWarning, "UpdateFailed", `Failed to update ConfigMap "gadget": `+conflict),
			ExpectResource: held.With(is("Ready", metav1.ConditionFalse, "Conflict", conflict)).Object(),
		},
		"it is not desired any more": {
			Resource: none.Object(), GivenObjects: ours, ExpectTracks: contributionTracks(t),
			ExpectApplies: givesBack(), ExpectPatches: patchesFinalizers(), ExpectEvents: givenBack,
			ExpectResource: widget.With(with("none"), written, isNone).Object(),
		},
		"the gate is off": {
			Resource: off.Object(), GivenObjects: ours, ExpectTracks: contributionTracks(t),
			ExpectApplies: givesBack(), ExpectPatches: patchesFinalizers(), ExpectEvents: givenBack,
			ExpectResource: widget.With(with("off"), written, isNone).Object(),
		},
		"the resource is terminating": {
			Resource: terminating.With(hasFinalizer(contributionFinalizer)).Object(), GivenObjects: ours,
			ExpectTracks: contributionTracks(t), ExpectApplies: givesBack(),
			ExpectPatches: patchesFinalizers("test.espalier.dev/other"), ExpectEvents: givenBack,
			ExpectResource: terminating.With(written).Object(),
		},
		"the cache does not show yet what was contributed": {
			Resource: none.Object(), APIGivenObjects: ours, GivenObjects: []object{theirs},
			ExpectTracks: contributionTracks(t), ExpectApplies: givesBack(), ExpectPatches: patchesFinalizers(),
			ExpectEvents: givenBack, ExpectResource: widget.With(with("none"), written, isNone).Object(),
		},
		"another name is desired, which is missing": {
			Resource: held.With(with("other")).Object(), GivenObjects: ours,
			ExpectTracks:  contributionTracks(t, configMap.With(func(c *corev1.ConfigMap) { c.Name = "other" })),
			ExpectApplies: givesBack(), ExpectEvents: updated,
			ExpectResource: held.With(with("other"),
				is("Ready", metav1.ConditionFalse, "NotFound", "waiting for ConfigMap default/other")).Object(),
		},
		"nothing was ever contributed": {
			Resource: widget.With(with("none")).Object(), GivenObjects: []object{theirs},
			ExpectTracks: contributionTracks(t), ExpectResource: widget.With(with("none"), isNone).Object(),
		},
		"the node waits": {
			Resource: held.With(with("closed")).Object(), GivenObjects: ours, ExpectTracks: contributionTracks(t),
			ExpectResource: held.With(with("closed"),
				is("Ready", metav1.ConditionFalse, "Blocked", "the shop is closed")).Object(),
		},
	}
	for name, row := range rows {
		row.WithClientBuilder = managedFields
		rows[name] = row
	}
	other := func(w *resources.Widget, c *corev1.ConfigMap) *corev1.ConfigMap {
		if c != nil && asks(w, "other") {
			c.Name = "other"
		}
		return c
	}
	t.Run("Owns", func(t *testing.T) {
		run(t, rows, func() node {
			return espalier.Owns("ConfigMap", func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
				one, err := desiredConfigMap(ctx, w)
				return other(w, one), err
			}).Contributes().Gate(gateOf).Guard(guard).Reports("Ready")
		})
	})
	t.Run("OwnsEach", func(t *testing.T) {
		run(t, rows, func() node {
			return espalier.OwnsEach("ConfigMap", func(ctx context.Context, w *resources.Widget) ([]*corev1.ConfigMap, error) {
				one, err := desiredConfigMap(ctx, w)
				if one == nil {
					return nil, err
				}
				return []*corev1.ConfigMap{other(w, one)}, err
			}).Contributes().Gate(gateOf).Guard(guard).Reports("Ready")
		})
	})
	run(t, tests{"it is taken from others": {
		Resource: held.Object(), GivenObjects: []object{red}, ExpectTracks: contributionTracks(t, configMap),
		WithClientBuilder: managedFields, ExpectApplies: []rtesting.ApplyRef{contributes("gadget", true)},
		ExpectEvents: updated, ExpectResource: held.With(isReady).Object(),
	}}, func() node { return owns().Contributes().ForceConflicts() })
	run(t, tests{"the fields of an earlier release are given back": {
		Resource: held.Object(), GivenObjects: ours, ExpectTracks: contributionTracks(t),
		WithClientBuilder: managedFields, ExpectApplies: givesBack(), ExpectPatches: patchesFinalizers(),
		ExpectEvents: givenBack, ExpectResource: widget.With(written, isNone).Object(),
	}}, func() node { return owns().Contributes().Absent() })
}

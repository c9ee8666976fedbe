package feature_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func dependsOn(p feature.Prerequisite[*Shop]) func() node {
	return func() node {
		return &featureOf{Name: "Till", Reconciler: scripted{}, Prerequisites: []feature.Prerequisite[*Shop]{p}}
	}
}

func waiting(message string) []edit {
	return given(ready(isFalse, apis.StatePrerequisiteNotMet, message), was(apis.FeatureWaiting, false))
}

func TestDependsOn(t *testing.T) {
	met := given(healthy, was(apis.FeatureHealthy, true))
	about := func(generation int64) edit {
		return func(s *Shop) {
			is("Paid", isTrue, "Because", "")(s)
			s.Status.Conditions[0].ObservedGeneration = generation
		}
	}
	tests{
		"no condition": after(began, nil, waiting("waiting for the condition Paid")...),
		"False": after(began, given(is("Paid", isFalse, "Poor", "no money")),
			waiting("waiting for the condition Paid, which is False: no money")...),
		"Unknown, without a message": after(began, given(is("Paid", isUnknown, "Counting", "")),
			waiting("waiting for the condition Paid, which is Unknown: Counting")...),
		"False, with a text about something that it waits for itself": after(began,
			given(is("Paid", isFalse, "PrerequisiteNotMet", "waiting for the condition TillReady, which is False: Poor")),
			waiting("waiting for the condition Paid, which is False: PrerequisiteNotMet")...),
		"True":               after(began, given(is("Paid", isTrue, "Because", "")), met...),
		"of this generation": after(began, given(about(3)), met...),
		"of an older generation": after(began, given(about(2)),
			waiting("waiting for the condition Paid, which is about generation 2")...),
	}.RunNode(t, scheme, dependsOn(feature.DependsOn[*Shop]("Paid")))
}

func TestDependsOnObject(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cellar"}}
	with := func(status corev1.ConditionStatus) client.Object {
		c := claim.DeepCopy()
		c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{
			{Type: "Dry", Status: status, Message: "it rains"},
		}
		return c
	}
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(claim, shop, scheme)}
	row := func(object client.Object, expected ...edit) row {
		r := after(began, nil, expected...)
		r.ExpectTracks = tracks
		if object != nil {
			r.GivenObjects = []client.Object{object}
		}
		return r
	}
	met := given(healthy, was(apis.FeatureHealthy, true))
	key := func(s *Shop) types.NamespacedName {
		if s.Spec.Unmet == "nothing" {
			return types.NamespacedName{}
		}
		return types.NamespacedName{Namespace: s.Namespace, Name: "cellar"}
	}
	unreadable := row(nil, waiting(
		"unable to read PersistentVolumeClaim default/cellar: inducing failure for get PersistentVolumeClaim")...)
	unreadable.WithReactors = []rtesting.ReactionFunc{rtesting.InduceFailure("get", "PersistentVolumeClaim")}
	unreadable.ShouldErr = true
	const cellar = "PersistentVolumeClaim default/cellar"
	tests{
		"absent":       row(nil, waiting("waiting for "+cellar+", which does not exist")...),
		"unreadable":   unreadable,
		"no condition": row(claim, waiting(cellar+": waiting for the condition Dry")...),
		"False": row(with("False"),
			waiting(cellar+": waiting for the condition Dry, which is False: it rains")...),
		"True":      row(with("True"), met...),
		"no object": after(began, given(spec(func(s *ShopSpec) { s.Unmet = "nothing" })), met...),
	}.RunNode(t, scheme, dependsOn(feature.DependsOnObject(&corev1.PersistentVolumeClaim{}, key, "Dry")))
	tests{
		"absent": row(nil, waiting("waiting for "+cellar+", which does not exist")...),
		"healthy": row(&corev1.PersistentVolumeClaim{ObjectMeta: claim.ObjectMeta,
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}, met...),
	}.RunNode(t, scheme, dependsOn(feature.DependsOnObject(&corev1.PersistentVolumeClaim{}, key, "")))
}

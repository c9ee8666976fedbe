package espalier_test

import (
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// widgetDigest identifies the widget.
const widgetDigest = "fc1d05f1b4e6934ce20a9bf62ea3faf4"

func TestUnowned(t *testing.T) {
	free := configMap.With(func(c *corev1.ConfigMap) {
		c.OwnerReferences = nil
		c.Labels = map[string]string{
			ownerLabel: widgetDigest, reconcilers.NodeLabel: "ConfigMap",
		}
	})
	given := []object{free.With(exists)}
	labeled := func(key string) []object {
		return []object{free.With(exists, func(c *corev1.ConfigMap) { c.Labels[key] = "other" })}
	}
	none := widget.With(with("none"))
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(configMap, widget, scheme)}
	rows := tests{
		"it is created": {
			Resource: widget.Object(), ExpectCreates: []object{free}, ExpectTracks: tracks, ExpectEvents: makes,
			ExpectResource: widget.With(isReady).Object(),
		},
		"nothing to do": {
			Resource: widget.Object(), GivenObjects: given, ExpectTracks: tracks,
			ExpectResource: widget.With(isReady).Object(),
		},
		"it is not desired any more": {
			Resource: none.Object(), GivenObjects: given, ExpectTracks: tracks,
			ExpectDeletes: deletes, ExpectEvents: deleted, ExpectResource: none.With(isNone).Object(),
		},
		"it is that of an earlier resource of this name": {
			Resource: none.Object(), GivenObjects: labeled(ownerLabel),
			ExpectResource: none.With(isNone).Object(),
		},
		"it is that of another node": {
			Resource: none.Object(), GivenObjects: labeled(reconcilers.NodeLabel),
			ExpectResource: none.With(isNone).Object(),
		},
		"it survives the resource": {Resource: terminating.Object(), GivenObjects: given},
	}
	runBoth(t, rows, (*child).Unowned, (*children).Unowned)
	red := []object{free.With(exists, func(c *corev1.ConfigMap) { c.Data["color"] = "red" })}
	runBoth(t, tests{"it is only created, and there since before a restart": {
		Resource: widget.Object(), GivenObjects: red, ExpectTracks: tracks, ExpectResource: widget.With(isReady).Object(),
	}}, func(c *child) *child { return c.Unowned().CreateOnly() },
		func(c *children) *children { return c.Unowned().CreateOnly() })
	closed := widget.With(with("closed"))
	runBoth(t, tests{"it waits, and is there since before a restart": {
		Resource: closed.Object(), GivenObjects: red, ExpectTracks: tracks,
		ExpectResource: closed.With(is("Ready", metav1.ConditionFalse, "Blocked", "the shop is closed")).Object(),
	}}, func(c *child) *child { return c.Unowned().Guard(guard) },
		func(c *children) *children { return c.Unowned().Guard(guard) })
	runBoth(t, tests{"it is to be absent": {
		Resource: widget.Object(), GivenObjects: given, ExpectTracks: append(tracks, tracks...),
		ExpectDeletes: deletes, ExpectEvents: deleted, ExpectResource: widget.With(isNone).Object(),
	}}, func(c *child) *child { return c.Unowned().Absent() },
		func(c *children) *children { return c.Unowned().Absent() })
}

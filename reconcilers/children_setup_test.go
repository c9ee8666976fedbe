package reconcilers_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An object that a node with owned children tracks enqueues the resource too. A node whose children are not owned does
// not enqueue the resource for an object that it happens to own.
func TestNodesWithChildrenWatchTheirType(t *testing.T) {
	tracked := givenConfigMap.With(ownerless, renamed("tracked"))
	enqueued := []reconcilers.Request{widgetRequest}
	setUps := &trace{}
	setUp := func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
		setUps.add("set up")
		return nil
	}
	owned := rtesting.SetupTestCase{
		ExpectWatches: []client.Object{&resources.Widget{}, &corev1.ConfigMap{}},
		GivenTracks:   []rtesting.TrackRequest{rtesting.NewTrackRequest(tracked, widget, widgetScheme)},
		Events: []rtesting.SetupEvent{
			{Updated: givenConfigMap, ExpectRequests: enqueued},
			{Deleted: tracked, ExpectRequests: enqueued},
		},
	}
	unowned := owned
	unowned.Events = []rtesting.SetupEvent{{Updated: givenConfigMap}, {Deleted: tracked, ExpectRequests: enqueued}}
	withSetup := func(node *configMapNode) { node.Setup = setUp }
	for name, test := range map[string]struct {
		node     func(*trace) widgetNode
		testCase rtesting.SetupTestCase
	}{
		"child":         {changedChild(withSetup), owned},
		"guarded child": {guardedShortForm(withSetup), unowned},
		"set":           {changedSet(nil, func(node *configMapSet) { node.Setup = setUp }), owned},
		"guarded set":   {changedSet(nil, guardedSet, func(node *configMapSet) { node.Setup = setUp }), unowned},
	} {
		setUps.calls = nil
		rtesting.SetupTests{name: test.testCase}.Run(t, widgetScheme,
			func(_ *testing.T, _ *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
				return rtesting.SubReconcilerSetup(c, test.node(&trace{}))
			})
		setUps.compare(t, []string{"set up"})
	}
}

func TestShortFormsSanitizeWhatTheyLog(t *testing.T) {
	sanitized := 0
	sanitize := func(*corev1.ConfigMap) interface{} {
		sanitized++
		return "(withheld)"
	}
	for name, node := range map[string]widgetNode{
		"child": shortForm(func(node *configMapNode) { node.Sanitize = sanitize })(&trace{}),
		"set": changedSet([]string{"a"}, shortFormSet, func(node *configMapSet) {
			node.Sanitize = sanitize
		})(&trace{}),
	} {
		sanitized = 0
		log := funcr.New(func(_, _ string) {}, funcr.Options{Verbosity: 2})
		ctx := logr.NewContext(testContext(t, expectWidget().Config()), log)
		if _, err := node.Reconcile(ctx, widget.Object()); err != nil || sanitized == 0 {
			t.Errorf("%s: it sanitized %d times and returned %v, want some and no error", name, sanitized, err)
		}
	}
}

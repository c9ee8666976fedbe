package reconcilers_test

import (
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shortForm is a child without an object manager of its own.
func shortForm(changes ...func(*configMapNode)) func(*trace) widgetNode {
	return changedChild(append([]func(*configMapNode){func(node *configMapNode) {
		node.ChildObjectManager = nil
		node.MergeBeforeUpdate = mergeConfigMap
	}}, changes...)...)
}

// guardedShortForm guards the child by a finalizer, which implies that there is no owner reference.
func guardedShortForm(changes ...func(*configMapNode)) func(*trace) widgetNode {
	return shortForm(append([]func(*configMapNode){withoutOwner, func(node *configMapNode) {
		node.SkipOwnerReference = false
		node.Finalizer = ours
	}}, changes...)...)
}

func TestChildReconcilerShortForm(t *testing.T) {
	created := normal("Created", `Created ConfigMap "gadget"`)
	updated := normal("Updated", `Updated ConfigMap "gadget"`)
	deleted := normal("Deleted", `Deleted ConfigMap "gadget"`)
	patched := normal("FinalizerPatched", `Patched finalizer "`+ours+`"`)
	red := func(c *corev1.ConfigMap) { c.Data = map[string]string{"color": "red"} }
	given := givenConfigMap.With(labelled)
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(given, widget, widgetScheme)}
	guarded := widget.With(func(w *resources.Widget) { w.Finalizers = []string{ours} })
	beingDeleted := widget.With(terminating(ours))
	exists := apierrs.NewAlreadyExists(configMapResource, "gadget")

	nodeTests{
		"created": {
			node:  shortForm(),
			calls: []string{"desired child", "create ConfigMap", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				ExpectResource: reflecting("gadget"),
				ExpectCreates:  []client.Object{configMap},
				ExpectEvents:   []rtesting.Event{created},
			},
		},
		"in sync": {
			node:       shortForm(),
			calls:      []string{"desired child", "reflect gadget, <nil>"},
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap}, ExpectResource: reflecting("gadget")},
		},
		"updated": {
			node:  shortForm(),
			calls: []string{"desired child", "update ConfigMap", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{givenConfigMap.With(red)},
				ExpectResource: reflecting("gadget"),
				ExpectUpdates:  []client.Object{givenConfigMap},
				ExpectEvents:   []rtesting.Event{updated},
			},
		},
		"deleted": {
			node:  shortForm(desires(desiresNothing)),
			calls: []string{"desired child", "delete ConfigMap", "reflect nothing, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{givenConfigMap},
				ExpectResource: reflecting("nothing"),
				ExpectDeletes:  []rtesting.DeleteRef{deleteOf(givenConfigMap)},
				ExpectEvents:   []rtesting.Event{deleted},
			},
		},
		"guarded, created": {
			node:  guardedShortForm(),
			calls: []string{"desired child", "patch Widget", "create ConfigMap", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				ExpectResource: widget.With(patchedBy(ours), statusField("child", "gadget")).Object(),
				ExpectPatches:  finalizersPatches(ours),
				ExpectCreates:  []client.Object{configMap.With(labelled)},
				ExpectEvents:   []rtesting.Event{patched, created},
				ExpectTracks:   tracks,
			},
		},
		"guarded, in sync": {
			node:  guardedShortForm(),
			calls: []string{"desired child", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				Resource:       guarded.Object(),
				GivenObjects:   []client.Object{given},
				ExpectResource: guarded.With(statusField("child", "gadget")).Object(),
				ExpectTracks:   tracks,
			},
		},
		"guarded, an object that is not ours has the name": {
			node:  guardedShortForm(),
			calls: []string{"desired child", "create ConfigMap", "reflect nothing, " + exists.Error()},
			widgetCase: widgetCase{
				Resource:        guarded.Object(),
				APIGivenObjects: []client.Object{givenConfigMap.With(ownerless)},
				WithReactors: []rtesting.ReactionFunc{
					rtesting.InduceFailure("create", "ConfigMap", rtesting.InduceFailureOpts{Error: exists}),
				},
				ExpectResource: guarded.With(statusField("child", "nothing")).Object(),
				ExpectCreates:  []client.Object{configMap.With(labelled)},
				ExpectTracks:   tracks,
				ExpectEvents:   failedTo("create", "gadget", exists),
			},
		},
		"guarded, terminating": {
			node:  guardedShortForm(),
			calls: []string{"delete ConfigMap"},
			widgetCase: widgetCase{
				Resource:      beingDeleted.Object(),
				GivenObjects:  []client.Object{given},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(given)},
				ExpectEvents:  []rtesting.Event{deleted},
				ExpectTracks:  tracks,
			},
		},
		// No event may follow: another request has to find out that the cache shows it no more.
		"guarded, terminating, the cache still shows a child that is gone": {
			node:  guardedShortForm(),
			calls: []string{"delete ConfigMap"},
			widgetCase: widgetCase{
				Resource:     beingDeleted.Object(),
				GivenObjects: []client.Object{given},
				WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("delete", "ConfigMap",
					rtesting.InduceFailureOpts{Error: apierrs.NewNotFound(configMapResource, "gadget")})},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(given)},
				ExpectTracks:  tracks,
				ShouldErr:     true,
				Verify:        returns(reconcilers.ErrQuiet),
			},
		},
		"guarded, terminating, the child too": {
			node:  guardedShortForm(),
			calls: []string{},
			widgetCase: widgetCase{
				Resource: beingDeleted.Object(),
				GivenObjects: []client.Object{given.With(func(c *corev1.ConfigMap) {
					c.DeletionTimestamp = new(metav1.NewTime(time.UnixMilli(2000)))
					c.Finalizers = []string{theirs}
				})},
				ExpectTracks: tracks,
			},
		},
		"guarded, terminating, the child is gone": {
			node:  guardedShortForm(),
			calls: []string{"patch Widget"},
			widgetCase: widgetCase{
				Resource:       beingDeleted.Object(),
				ExpectResource: beingDeleted.With(patchedBy()).Object(),
				ExpectPatches:  finalizersPatches(),
				ExpectEvents:   []rtesting.Event{patched},
			},
		},
		// Two children that are one too many must both be gone before the finalizer goes.
		"guarded, terminating, several": {
			node:  guardedShortForm(),
			calls: []string{"delete ConfigMap", "delete ConfigMap"},
			widgetCase: widgetCase{
				Resource: beingDeleted.Object(),
				GivenObjects: []client.Object{
					given,
					given.With(func(c *corev1.ConfigMap) { c.Name, c.UID = "extra", "extra-uid" }),
				},
				ExpectDeletes: []rtesting.DeleteRef{
					deleteOf(given.With(func(c *corev1.ConfigMap) { c.Name, c.UID = "extra", "extra-uid" })),
					deleteOf(given),
				},
				ExpectEvents: []rtesting.Event{normal("Deleted", `Deleted ConfigMap "extra"`), deleted},
				ExpectTracks: append([]rtesting.TrackRequest{
					rtesting.NewTrackRequest(
						given.With(func(c *corev1.ConfigMap) { c.Name = "extra" }), widget, widgetScheme,
					),
				}, tracks...),
			},
		},
	}.run(t)
}

func TestChildReconcilerShortFormValidate(t *testing.T) {
	node := func(make func(*trace) widgetNode) *configMapNode { return make(&trace{}).(*configMapNode) }
	validationTests{
		"valid":          {node: node(shortForm())},
		"valid, guarded": {node: node(guardedShortForm())},
		"no merge": {
			node:      node(shortForm(func(n *configMapNode) { n.MergeBeforeUpdate = nil })),
			shallow:   `ChildReconciler "ConfigMapChildReconciler" must implement MergeBeforeUpdate or ChildObjectManager`,
			recursive: `ChildReconciler "ConfigMapChildReconciler" must implement MergeBeforeUpdate or ChildObjectManager`,
		},
		"guarded, no OurChild": {
			node:    node(guardedShortForm(func(n *configMapNode) { n.OurChild = nil })),
			shallow: `ChildReconciler "ConfigMapChildReconciler" must implement OurChild since owner references are not used`,
		},
		"guarded, no ListOptions": {
			node:    node(guardedShortForm(func(n *configMapNode) { n.ListOptions = nil })),
			shallow: `ChildReconciler "ConfigMapChildReconciler" must implement ListOptions since owner references are not used`,
		},
		"a finalizer beside a manager": {
			node: node(guardedShortForm(func(n *configMapNode) {
				n.MergeBeforeUpdate, n.ChildObjectManager = nil, &configMaps{MergeBeforeUpdate: mergeConfigMap}
			})),
			shallow: `ChildReconciler "ConfigMapChildReconciler" may not implement both ChildObjectManager and Finalizer, ` +
				`MergeBeforeUpdate or Sanitize`,
		},
		"both forms": {
			node: node(shortForm(func(n *configMapNode) {
				n.ChildObjectManager = &configMaps{MergeBeforeUpdate: mergeConfigMap}
			})),
			shallow: `ChildReconciler "ConfigMapChildReconciler" may not implement both ChildObjectManager and Finalizer, MergeBeforeUpdate or Sanitize`,
		},
	}.run(t)
}

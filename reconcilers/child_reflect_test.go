package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wrappedError carries the status of an API error, as the errors of object managers may.
func wrappedError(err error) error { return fmt.Errorf("made on the way: %w", err) }

// withoutDetails is an AlreadyExists that does not tell what exists.
func withoutDetails() error {
	return &apierrs.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonAlreadyExists, Message: "exists",
	}}
}

func TestChildReconcilerErrors(t *testing.T) {
	exists := apierrs.NewAlreadyExists(configMapResource, "gadget")
	forbidden := apierrs.NewForbidden(configMapResource, "gadget", errBoom)
	invalid := apierrs.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "gadget", nil)
	conflict := apierrs.NewConflict(configMapResource, "gadget", errBoom)
	blocker := givenConfigMap.With(func(child *corev1.ConfigMap) { child.OwnerReferences = nil })
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(blocker, widget, widgetScheme)}
	reasons := func(reasons ...metav1.StatusReason) func(*configMapNode) {
		return func(node *configMapNode) {
			node.ReflectedChildErrorReasons = append([]metav1.StatusReason{}, reasons...)
		}
	}
	fails := func(verb string, err error) []rtesting.ReactionFunc {
		return []rtesting.ReactionFunc{
			rtesting.InduceFailure(verb, "ConfigMap", rtesting.InduceFailureOpts{Error: err}),
		}
	}
	outdated := givenConfigMap.With(func(child *corev1.ConfigMap) { child.Data = nil })
	// The child cannot be created, and that is reflected.
	reflects := func(err error, changes ...func(*configMapNode)) nodeTest {
		return nodeTest{
			node:  changedChild(changes...),
			calls: []string{"desired child", "create ConfigMap", "reflect nothing, " + err.Error()},
			widgetCase: widgetCase{
				WithReactors:   fails("create", err),
				ExpectResource: reflecting("nothing"),
				ExpectCreates:  []client.Object{configMap},
				ExpectEvents:   failedTo("create", "gadget", err),
			},
		}
	}
	// The child cannot be created, and that is returned.
	fallsThrough := func(err error, changes ...func(*configMapNode)) nodeTest {
		return nodeTest{
			node:  changedChild(changes...),
			calls: []string{"desired child", "create ConfigMap"},
			widgetCase: widgetCase{
				WithReactors:  fails("create", err),
				ExpectCreates: []client.Object{configMap},
				ExpectEvents:  failedTo("create", "gadget", err),
				ShouldErr:     true,
				Verify:        returns(err),
			},
		}
	}
	blockedBy := func(blocker client.Object, tracks []rtesting.TrackRequest, test nodeTest) nodeTest {
		test.APIGivenObjects = []client.Object{blocker}
		test.ExpectTracks = tracks
		return test
	}
	// failing is the case in which the create fails with one error and the node with another.
	failing := func(created, returned error) widgetCase {
		return widgetCase{
			WithReactors:  fails("create", created),
			ExpectCreates: []client.Object{configMap},
			ExpectEvents:  failedTo("create", "gadget", created),
			ShouldErr:     true,
			Verify:        returns(returned),
		}
	}
	cannotBeRead := failing(exists, errBoom)
	cannotBeRead.WithReactors = append(cannotBeRead.WithReactors, fails("get", errBoom)...)
	withTracks := func(tracks []rtesting.TrackRequest, test nodeTest) nodeTest {
		test.ExpectTracks = tracks
		return test
	}
	withNode := func(wrap func(func(*trace) widgetNode) func(*trace) widgetNode, test nodeTest) nodeTest {
		test.node = wrap(test.node)
		return test
	}
	generated := func(test nodeTest) nodeTest {
		test.ExpectCreates = []client.Object{
			configMap.With(func(c *corev1.ConfigMap) { c.Name, c.GenerateName = "", "gadget-" }),
		}
		message := test.ExpectEvents[0].Message
		test.ExpectEvents = []rtesting.Event{warning("CreationFailed", strings.Replace(message, `"gadget"`, `""`, 1))}
		return test
	}
	foreign := func(err error, changes ...func(*configMapNode)) nodeTest {
		return blockedBy(blocker, tracks, reflects(err, changes...))
	}
	owned := func(err error, changes ...func(*configMapNode)) nodeTest {
		return blockedBy(givenConfigMap, nil, fallsThrough(err, changes...))
	}

	skipsOwner := func(test nodeTest) nodeTest {
		test.ExpectCreates = []client.Object{configMap.With(labelled)}
		return test
	}
	// The child is in another namespace than the resource.
	elsewhere := func(child *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		child.Namespace = "elsewhere"
		return child, nil
	}
	inNoNamespace := func(test nodeTest) nodeTest {
		test.ExpectCreates = []client.Object{configMap.With(labelled, func(c *corev1.ConfigMap) { c.Namespace = "" })}
		return test
	}
	inElsewhere := func(test nodeTest) nodeTest {
		test.ExpectCreates = []client.Object{
			configMap.With(labelled, func(c *corev1.ConfigMap) { c.Namespace = "elsewhere" }),
		}
		return test
	}

	nodeTests{
		"exists, not ours, gone when it is read": withTracks(tracks, reflects(exists)),
		"exists, no tracker":                     withNode(withoutTracker, blockedBy(blocker, nil, reflects(exists))),
		"exists, cannot be tracked": withNode(withConfig(func(config *reconcilers.Config) {
			config.Tracker = failingTracker{config.Tracker}
		}), blockedBy(blocker, nil, nodeTest{
			node:       changedChild(),
			calls:      []string{"desired child", "create ConfigMap"},
			widgetCase: failing(exists, errBoom),
		})),
		"exists, and nothing reads past the cache": withNode(withConfig(func(config *reconcilers.Config) {
			config.APIReader = nil
		}), fallsThrough(exists)),
		"exists, cannot be read": {
			node:       changedChild(),
			calls:      []string{"desired child", "create ConfigMap"},
			widgetCase: cannotBeRead,
		},
		"exists, under a generated name": generated(blockedBy(
			blocker.With(func(c *corev1.ConfigMap) { c.Name = "gadget-x" }),
			[]rtesting.TrackRequest{rtesting.NewTrackRequest(
				blocker.With(func(c *corev1.ConfigMap) { c.Name = "gadget-x" }), widget, widgetScheme)},
			reflects(apierrs.NewAlreadyExists(configMapResource, "gadget-x"), desires(generatedName)),
		)),
		"exists, under a generated name, no details": generated(reflects(withoutDetails(), desires(generatedName))),
		"exists, ours, in the namespace of the resource": withNode(withConfig(func(config *reconcilers.Config) {
			config.Client = scoped{config.Client, false}
		}), inNoNamespace(blockedBy(
			givenConfigMap.With(labelled), nil,
			fallsThrough(exists, withoutOwner, desires(func(child *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				child.Namespace = ""
				return child, nil
			})),
		))),
		"forbidden":                reflects(forbidden),
		"invalid":                  reflects(invalid),
		"conflict":                 fallsThrough(conflict),
		"no API error":             fallsThrough(errBoom),
		"exists, not ours":         foreign(exists),
		"exists, not ours, hidden": foreign(wrappedError(exists)),
		"exists, ours":             owned(exists),
		// The status may be wrapped, or tell no details.
		"exists, ours, hidden":                 owned(wrappedError(exists)),
		"exists, not ours, no details":         foreign(withoutDetails()),
		"exists, ours, no details":             owned(withoutDetails()),
		"forbidden, wrapped":                   reflects(wrappedError(forbidden)),
		"listed reason":                        reflects(conflict, reasons(metav1.StatusReasonConflict)),
		"reason not listed":                    fallsThrough(forbidden, reasons(metav1.StatusReasonConflict)),
		"no reasons":                           fallsThrough(exists, reasons()),
		"exists, no owner reference, not ours": skipsOwner(blockedBy(blocker, nil, reflects(exists, withoutOwner))),
		"exists, no owner reference, ours": skipsOwner(
			blockedBy(givenConfigMap.With(labelled), nil, fallsThrough(exists, withoutOwner)),
		),
		// It is looked for where the child is, not where the resource is.
		"exists elsewhere, ours": inElsewhere(blockedBy(
			givenConfigMap.With(labelled, func(c *corev1.ConfigMap) { c.Namespace = "elsewhere" }), nil,
			fallsThrough(exists, withoutOwner, desires(elsewhere)),
		)),
		"exists elsewhere, one of our namespace does not matter": inElsewhere(blockedBy(
			givenConfigMap.With(labelled), nil, reflects(exists, withoutOwner, desires(elsewhere)),
		)),
		"the update is invalid": {
			node:  changedChild(),
			calls: []string{"desired child", "update ConfigMap", "reflect nothing, " + invalid.Error()},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{outdated},
				WithReactors:   fails("update", invalid),
				ExpectResource: reflecting("nothing"),
				ExpectUpdates:  []client.Object{givenConfigMap},
				ExpectEvents:   failedTo("update", "gadget", invalid),
			},
		},
		"the update conflicts": {
			node:  changedChild(),
			calls: []string{"desired child", "update ConfigMap"},
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{outdated},
				WithReactors:  fails("update", conflict),
				ExpectUpdates: []client.Object{givenConfigMap},
				ExpectEvents:  failedTo("update", "gadget", conflict),
				ShouldErr:     true,
				Verify:        returns(conflict),
			},
		},
		"the delete is forbidden": {
			node:  changedChild(desires(desiresNothing)),
			calls: []string{"desired child", "delete ConfigMap", "reflect nothing, " + forbidden.Error()},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{givenConfigMap},
				WithReactors:   fails("delete", forbidden),
				ExpectResource: reflecting("nothing"),
				ExpectDeletes:  []rtesting.DeleteRef{deleteOf(givenConfigMap)},
				ExpectEvents:   failedTo("delete", "gadget", forbidden),
			},
		},
		// Another client deleted it first, which is as good.
		"the delete finds nothing": {
			node:  changedChild(desires(desiresNothing)),
			calls: []string{"desired child", "delete ConfigMap", "reflect nothing, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{givenConfigMap},
				WithReactors:   fails("delete", apierrs.NewNotFound(configMapResource, "gadget")),
				ExpectResource: reflecting("nothing"),
				ExpectDeletes:  []rtesting.DeleteRef{deleteOf(givenConfigMap)},
			},
		},
		"the update finds nothing": {
			node:  changedChild(),
			calls: []string{"desired child", "update ConfigMap"},
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{outdated},
				WithReactors:  fails("update", apierrs.NewNotFound(configMapResource, "gadget")),
				ExpectUpdates: []client.Object{givenConfigMap},
				ExpectEvents: []rtesting.Event{
					warning("UpdateFailed", `Failed to update ConfigMap "gadget": configmaps "gadget" not found`),
				},
				ShouldErr: true,
			},
		},
		"quiet": {
			node:  changedChild(),
			calls: []string{"desired child", "create ConfigMap"},
			widgetCase: widgetCase{
				WithReactors:  fails("create", errors.Join(errBoom, reconcilers.ErrQuiet)),
				ExpectCreates: []client.Object{configMap},
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
		"the reflection with a result comes before the one with an error": {
			node: changedChild(func(node *configMapNode) {
				node.ReflectChildStatusOnParentWithResult = func(
					context.Context, *resources.Widget, *corev1.ConfigMap, error,
				) (reconcilers.Result, error) {
					return minute, nil
				}
				node.ReflectChildStatusOnParentWithError = func(
					context.Context, *resources.Widget, *corev1.ConfigMap, error,
				) error {
					return errBoom
				}
			}),
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap}, ExpectedResult: minute},
		},
		"the reflection of an error fails": {
			node: changedChild(func(node *configMapNode) {
				node.ReflectChildStatusOnParentWithError = func(
					_ context.Context, _ *resources.Widget, child *corev1.ConfigMap, err error,
				) error {
					if child != nil || !apierrs.IsForbidden(err) {
						t.Errorf("reflects %v, %v", child, err)
					}
					return errBoom
				}
			}),
			widgetCase: widgetCase{
				WithReactors:  fails("create", forbidden),
				ExpectCreates: []client.Object{configMap},
				ExpectEvents:  failedTo("create", "gadget", forbidden),
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
	}.run(t)
}

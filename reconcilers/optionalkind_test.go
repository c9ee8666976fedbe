package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var notServedConfigMap = &reconcilers.KindNotServedError{
	Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
}

// pathGone is the answer of an API server that does not have the path of the type.
func pathGone() error {
	return apierrs.NewGenericServerResponse(404, "create", schema.GroupResource{Resource: "configmaps"}, "", "", 0, true)
}

func unserved(verbs ...string) []rtesting.ReactionFunc {
	var fails []rtesting.ReactionFunc
	for _, verb := range verbs {
		err := error(&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ConfigMap"}})
		kind := "ConfigMapList"
		if verb == "create" {
			err, kind = pathGone(), "ConfigMap"
		}
		fails = append(fails, rtesting.InduceFailure(verb, kind, rtesting.InduceFailureOpts{Error: err}))
	}
	return fails
}

func optionalChild(changes ...func(*configMapNode)) func(*trace) widgetNode {
	return changedChild(append(changes, func(node *configMapNode) { node.OptionalKind = true })...)
}

func noChild(node *configMapNode) {
	node.DesiredChild = func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) { return nil, nil }
}

func TestAKindNotServedErrorSaysWhatToDo(t *testing.T) {
	err := error(notServedConfigMap)
	want := "the cluster does not serve ConfigMap of v1: install its CustomResourceDefinition, " +
		"or the API server that serves it"
	if err.Error() != want {
		t.Errorf("the text is %q, want %q", err, want)
	}
	if reason := apierrs.ReasonForError(err); reason != reconcilers.StatusReasonKindNotServed {
		t.Errorf("the reason is %q, want KindNotServed", reason)
	}
	if apierrs.IsNotFound(err) || !meta.IsNoMatchError(err) {
		t.Errorf("it is not found (%t), or no missing match (%t), want the other way round",
			apierrs.IsNotFound(err), meta.IsNoMatchError(err))
	}
	if class := reconcilers.Classify(err); class != reconcilers.ClassWait {
		t.Errorf("the class is %s, want Wait", class)
	}
}

// Without a manager the answers of the API server say that a kind is not served.
func TestAnOptionalChildOfAKindThatIsNotServed(t *testing.T) {
	nodeTests{
		"is reflected when it cannot be listed": {
			node:  optionalChild(),
			calls: []string{"desired child", "reflect nothing, " + notServedConfigMap.Error()},
			widgetCase: widgetCase{
				WithReactors:   unserved("list"),
				ExpectResource: reflecting("nothing"),
				ExpectedResult: reconcilers.Result{},
			},
		},
		"is reflected when it cannot be created": {
			node:  optionalChild(func(node *configMapNode) { node.ReflectedChildErrorReasons = []metav1.StatusReason{} }),
			calls: []string{"desired child", "create ConfigMap", "reflect nothing, " + notServedConfigMap.Error()},
			widgetCase: widgetCase{
				WithReactors:   unserved("create"),
				ExpectResource: reflecting("nothing"),
				ExpectCreates:  []client.Object{configMap},
				ExpectEvents:   failedTo("create", "gadget", pathGone()),
			},
		},
		"does not count if none is desired": {
			node:  optionalChild(noChild),
			calls: []string{"reflect nothing, <nil>"},
			widgetCase: widgetCase{
				WithReactors:   unserved("list"),
				ExpectResource: reflecting("nothing"),
			},
		},
		"is returned by a node that needs it": {
			node: changedChild(),
			widgetCase: widgetCase{
				WithReactors: unserved("list"),
				ShouldErr:    true,
				Verify: func(t *testing.T, _ reconcilers.Result, err error) {
					if !meta.IsNoMatchError(err) || errors.As(err, new(*reconcilers.KindNotServedError)) {
						t.Errorf("the error is %v, want the one of the client", err)
					}
				},
			},
		},
	}.run(t)
}

// The literal for many children shows each of them what it shows a single one.
func TestAnOptionalChildSetOfAKindThatIsNotServed(t *testing.T) {
	optional := func(node *configMapSet) { node.OptionalKind = true }
	ab := []string{"a", "b"}
	lacks := fmt.Sprintf("reflect [a: nothing (%[1]v), b: nothing (%[1]v)]", notServedConfigMap)
	nodeTests{
		"is reflected when it cannot be listed": {
			node:  changedSet(ab, optional),
			calls: []string{"desired children of 0 known", lacks},
			widgetCase: widgetCase{
				WithReactors:   unserved("list"),
				ExpectedResult: reconcilers.Result{},
			},
		},
		"is reflected when it cannot be created": {
			node: changedSet(ab, optional, func(node *configMapSet) {
				node.ReflectedChildErrorReasons = []metav1.StatusReason{}
			}),
			calls: []string{"desired children of 0 known", "create ConfigMap", "create ConfigMap", lacks},
			widgetCase: widgetCase{
				WithReactors:  unserved("create"),
				ExpectCreates: []client.Object{part("a"), part("b")},
				ExpectEvents: append(failedTo("create", "gadget-a", pathGone()),
					failedTo("create", "gadget-b", pathGone())...),
			},
		},
		"does not count if none is desired": {
			node:       changedSet(nil, optional),
			calls:      []string{"desired children of 0 known", "reflect []"},
			widgetCase: widgetCase{WithReactors: unserved("list")},
		},
		"is returned by a node that needs it": {
			node: changedSet(ab),
			widgetCase: widgetCase{
				WithReactors: unserved("list"),
				ShouldErr:    true,
				Verify: func(t *testing.T, _ reconcilers.Result, err error) {
					if !meta.IsNoMatchError(err) || errors.As(err, new(*reconcilers.KindNotServedError)) {
						t.Errorf("the error is %v, want the one of the client", err)
					}
				},
			},
		},
	}.run(t)
}

func TestPolicyRulesOfOptionalKinds(t *testing.T) {
	monitor := &unstructured.Unstructured{}
	monitor.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Monitor"})
	definitions := []rbacv1.PolicyRule{
		{
			APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
			Verbs: []string{"list", "watch"},
		},
		{
			APIGroups: []string{"apiregistration.k8s.io"}, Resources: []string{"apiservices"},
			Verbs: []string{"list", "watch"},
		},
	}
	for name, test := range map[string]struct {
		obj      client.Object
		optional bool
		want     []rbacv1.PolicyRule
	}{
		"optional":              {monitor, true, definitions},
		"needed":                {monitor, false, nil},
		"of Kubernetes itself":  {&corev1.ConfigMap{}, true, nil},
		"new in Kubernetes too": {newInKubernetes(), true, definitions},
	} {
		t.Run(name, func(t *testing.T) {
			tree := &widgetSync{
				Sync: func(context.Context, *resources.Widget) error { return nil },
				Uses: []reconcilers.Access{{Object: test.obj, Verbs: []string{"get"}, Optional: test.optional}},
			}
			rules, err := reconcilers.Describe(tree).PolicyRules(widgetScheme, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []rbacv1.PolicyRule
			for _, rule := range rules {
				if len(rule.Verbs) == 2 {
					got = append(got, rule)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the rules of definitions differ (-want, +got):\n%s", diff)
			}
		})
	}
}

// newInKubernetes is of a kind that older clusters do not serve.
func newInKubernetes() client.Object {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceClaim"})
	return obj
}

package foreign_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// inGroup puts a kind in a group of its own.
func inGroup(group string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Group = group
		crd.Name = crd.Spec.Names.Plural + "." + group
	}
}

func TestCheckPattern(t *testing.T) {
	t.Parallel()
	namespace := plane.Namespace(t)
	brook := install(t, crdOf("Brook", inGroup("water.pattern.example.com")))
	creek := install(t, crdOf("Creek", inGroup("water.pattern.example.com"), clusterScoped))
	river := install(t, crdOf("River", inGroup("pattern.example.com")))
	lakes := install(t, crdOf("Lake", inGroup("still.water.pattern.example.com")))
	create(t, instance(brook, namespace, "b1", ""))
	create(t, instance(brook, namespace, "b2", "them"))
	create(t, instance(creek, namespace, "c", "them"))
	create(t, instance(river, namespace, "r", ""))
	create(t, instance(lakes, namespace, "mine", ours))
	controlplanetest.Eventually(t, "the types are not discovered", func(ctx context.Context) error {
		use, err := newGuard(t, plane.Config(t)).CheckPattern(ctx,
			plan.Pattern{Group: "*.pattern.example.com", Kind: "*"})
		if err != nil || len(use.Instances) != 2 {
			return fmt.Errorf("%+v, %v", use, err)
		}
		_, err = newGuard(t, plane.Config(t)).Client.RESTMapper().RESTMapping(plan.Key{Group: lakes.Spec.Group,
			Kind: "Lake"}.GroupKind(), "v1")
		return err
	})

	b, c, r := "Brook "+namespace+"/b1", "Creek c", "River "+namespace+"/r"
	tests := []struct {
		group, kind string
		limit       int
		want        plan.Use
	}{
		{group: "*.pattern.example.com", kind: "*", want: blocking(-1, b, c)},
		{group: "*.pattern.example.com", kind: "Creek", want: blocking(0, c)},
		{group: "*.water.pattern.example.com", kind: "*", want: none},
		{group: "water.pattern.example.com", kind: "*", limit: 1, want: blocking(-1, b)},
		{group: "pattern.example.com", kind: "*", want: blocking(0, r)},
		{group: "pattern.example.com", kind: "river", want: none},
		{group: "*", kind: "River", want: blocking(0, r)},
		{group: "*pattern.example.com", kind: "*", want: none},
		{group: "*.*.example.com", kind: "*", want: none},
		{group: "water.*", kind: "*", want: none},
		{group: "", kind: "River", want: none},
		{group: "", kind: "Binding", want: none},
		{group: "authorization.k8s.io", kind: "*", want: none},
	}
	g, requests := guarded(t, interceptor.Funcs{})
	for _, test := range tests {
		t.Run(test.group+" "+test.kind, func(t *testing.T) {
			g.Limit = test.limit
			use, err := g.CheckPattern(t.Context(), plan.Pattern{Group: test.group, Kind: test.kind})
			assertUse(t, use, err, test.want)
		})
	}
	discoveries := 0
	for request, n := range requests.Counts() {
		if request.Path == "/apis" {
			discoveries += n
		}
	}
	// The client's mapper asks once as well.
	if discoveries > 2 {
		t.Errorf("the cluster was discovered %d times, want at most 2: %v", discoveries, requests.Counts())
	}
	if n := requests.Writes(); n != 0 {
		t.Errorf("there are %d writes, want none", n)
	}
}

// The result does not depend on which list is answered first.
func TestPatternInOrder(t *testing.T) {
	t.Parallel()
	names := []string{"Xylo", "Xylp", "Xylq"}
	namespace := plane.Namespace(t)
	for _, name := range names {
		create(t, instance(install(t, crdOf(name, inGroup("order.example.com"))), namespace, "theirs", ""))
	}
	pattern := plan.Pattern{Group: "order.example.com", Kind: "*"}
	controlplanetest.Eventually(t, "the types are not discovered", func(ctx context.Context) error {
		use, err := newGuard(t, plane.Config(t)).CheckPattern(ctx, pattern)
		if err == nil && len(use.Instances) != len(names) {
			err = fmt.Errorf("%+v", use)
		}
		return err
	})
	var others sync.WaitGroup
	others.Add(2)
	g, _ := guarded(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
		opts ...client.ListOption) error {
		if list.GetObjectKind().GroupVersionKind().Kind == names[0]+"List" {
			others.Wait()
		} else {
			defer others.Done()
		}
		return c.List(ctx, list, opts...)
	}})
	g.Limit = 1
	use, err := g.CheckPattern(t.Context(), pattern)
	assertUse(t, use, err, blocking(-1, "Xylo "+namespace+"/theirs"))
}

// An API that is broken matters only to patterns that may match its types. The test is alone with the API server: others
// find its API in every namespace.
func TestBrokenAPI(t *testing.T) {
	controlplanetest.Real(t, "an APIService has to name another API server")
	aggregate(t, "broken.aggregated.example.com", false)
	crd := install(t, crdOf("Quern"))
	const group = "API groups could not be discovered: broken.aggregated.example.com"
	controlplanetest.Eventually(t, "the API is not discovered as broken", func(ctx context.Context) error {
		use, err := newGuard(t, plane.Config(t)).CheckPattern(ctx,
			plan.Pattern{Group: "*.aggregated.example.com", Kind: "Ghost"})
		if err == nil && !strings.Contains(use.Reason, "broken.") {
			err = fmt.Errorf("%+v", use)
		}
		return err
	})
	g := newGuard(t, plane.Config(t))
	use, err := g.CheckPattern(t.Context(), plan.Pattern{Group: "broken.aggregated.example.com", Kind: "*"})
	assertUse(t, use, err, unknown(group))
	use, err = g.CheckPattern(t.Context(), plan.Pattern{Group: smithy, Kind: "Anchor"})
	assertUse(t, use, err, none)
	// An instance that is found blocks, even if another API is broken.
	create(t, instance(crd, plane.Namespace(t), "theirs", ""))
	use, err = g.CheckPattern(t.Context(), plan.Pattern{Group: "*", Kind: "Quern"})
	if err != nil || use.State != plan.ForeignBlocking {
		t.Errorf("the use is %+v and the error %v, want %v and none", use, err, plan.ForeignBlocking)
	}
}

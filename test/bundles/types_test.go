package bundles_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A component with 14 types is deleted with few requests for each, and waits once for all fences.
func TestDeletionOfManyTypes(t *testing.T) {
	t.Parallel()
	const types, margin = 14, 4 * time.Second
	home := plane.Namespace(t)
	c := crdClient(t)
	var objects []client.Object
	for i := range types {
		kind := fmt.Sprintf("Oak%d", i)
		objects = append(objects, definition(home+".example.com", strings.ToLower(kind)+"s", kind, "v1"))
	}
	assembly := resources.NewAssembly(home, "forest", objects...)
	requests := startOperator(t, home, resources.AssemblyGenerator(), options{FenceMargin: margin})
	must(t, c.Create(t.Context(), assembly))
	eventually(t, "it is not deployed", isReady(c, assembly))
	// An API server holds up the creation of instances of a new type, so the margin would be longer.
	for _, object := range objects {
		age(t, c, object.(*apiextensionsv1.CustomResourceDefinition))
	}
	requests.Reset()
	begin := time.Now()
	must(t, c.Delete(t.Context(), assembly))
	eventually(t, "it is not deleted", gone(c, append(objects, assembly)...))
	took := time.Since(begin)
	t.Logf("%d requests, %v", requests.Total(), took)
	if n := requests.Total(); n > 25*types {
		t.Errorf("%d requests for %d types:\n%s", n, types, requests)
	}
	// A busy machine takes its time.
	if took >= types*margin {
		t.Errorf("it took %v, want less than a margin for each of %d types", took, types)
	}
}

// While instances of others block the deletion, a poll makes at most two requests for each type: one reads the
// definition, and one looks for instances.
func TestBlockedDeletionIsCheap(t *testing.T) {
	t.Parallel()
	home := plane.Namespace(t)
	c := crdClient(t)
	group := home + ".example.com"
	var objects []client.Object
	for _, kind := range []string{"Fir", "Pine", "Yew"} {
		objects = append(objects, definition(group, strings.ToLower(kind)+"s", kind, "v1"))
	}
	assembly := resources.NewAssembly(home, "forest", objects...)
	requests := startOperator(t, home, resources.AssemblyGenerator(), options{})
	must(t, c.Create(t.Context(), assembly))
	eventually(t, "it is not deployed", isReady(c, assembly))
	theirs := instanceOf(objects[0].(*apiextensionsv1.CustomResourceDefinition), "theirs")
	eventually(t, "an instance cannot be created", func(ctx context.Context) error { return c.Create(ctx, theirs) })
	must(t, c.Delete(t.Context(), assembly))
	eventually(t, "it is not blocked", says(c, assembly, "DeletionBlocked", "in use by Fir theirs"))
	requests.Reset()
	time.Sleep(10 * time.Second)
	counts := requests.Counts()
	polls := counts[controlplane.Request{Verb: "list", Path: "/apis/" + group + "/v1/firs"}]
	t.Logf("%d requests in %d polls", requests.Total(), polls)
	// The sleep may begin or end within a poll.
	if n := requests.Total(); polls == 0 || n > 2*(polls+1)*len(objects) {
		t.Errorf("%d requests in %d polls:\n%s", n, polls, requests)
	}
	must(t, c.Delete(t.Context(), theirs))
	eventually(t, "it is not deleted", gone(c, append(objects, assembly)...))
}

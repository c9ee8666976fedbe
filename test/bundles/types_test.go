package bundles_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/component/foreign"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A component with 14 types is deleted with few requests for each, and waits once for all fences.
func TestDeletionOfManyTypes(t *testing.T) {
	t.Parallel()
	const types = 14
	home := plane.Namespace(t)
	c := crdClient(t)
	var objects []client.Object
	for i := range types {
		kind := fmt.Sprintf("Oak%d", i)
		objects = append(objects, definition(home+".example.com", strings.ToLower(kind)+"s", kind, "v1"))
	}
	assembly := resources.NewAssembly(home, "forest", objects...)
	requests := startOperator(t, home, resources.AssemblyGenerator(), options{FenceMargin: 4 * time.Second})
	must(t, c.Create(t.Context(), assembly))
	eventually(t, "it is not deployed", isReady(c, assembly))
	// An API server holds up the creation of instances of a new type, so the margin would be longer.
	for _, object := range objects {
		age(t, c, object.(*apiextensionsv1.CustomResourceDefinition))
	}
	definitions, err := c.Watch(t.Context(), &apiextensionsv1.CustomResourceDefinitionList{})
	must(t, err)
	defer definitions.Stop()
	requests.Reset()
	begin := time.Now()
	must(t, c.Delete(t.Context(), assembly))
	// The first deletion is after the margin of its own fence, so no other fence begins its margin later.
	if n := fencedAtFirstDeletion(t, definitions, home+".example.com"); n != types {
		t.Errorf("%d of %d types have a fence when the first is deleted", n, types)
	}
	eventually(t, "it is not deleted", gone(c, append(objects, assembly)...))
	t.Logf("%d requests, %v", requests.Total(), time.Since(begin))
	if n := requests.Total(); n > 25*types {
		t.Errorf("%d requests for %d types:\n%s", n, types, requests)
	}
}

// fencedAtFirstDeletion waits until a definition of a group is deleted, and returns how many of the group had a fence
// before.
func fencedAtFirstDeletion(t *testing.T, definitions watch.Interface, group string) int {
	t.Helper()
	fenced := map[string]bool{}
	next := func() (deleted bool, err error) {
		select {
		case event := <-definitions.ResultChan():
			d, ok := event.Object.(*apiextensionsv1.CustomResourceDefinition)
			if !ok {
				t.Fatalf("the watch of definitions ends with %v", event)
			}
			if d.Spec.Group == group && foreign.Fenced(d, prefix+"/"+foreign.AnnotationFence) {
				fenced[d.Name] = true
			}
			return d.Spec.Group == group && d.DeletionTimestamp != nil, nil
		default:
			return false, fmt.Errorf("%d have a fence", len(fenced))
		}
	}
	eventually(t, "no definition is deleted", func(context.Context) error {
		for {
			if deleted, err := next(); deleted || err != nil {
				return err
			}
		}
	})
	return len(fenced)
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
	firs := controlplane.Request{Verb: "list", Path: "/apis/" + group + "/v1/firs"}
	var polls, n int
	eventually(t, "it is not polled", func(context.Context) error {
		polls, n = 0, 0
		for request, count := range requests.Counts() {
			if request.Verb != "watch" {
				n += count
			}
			if request == firs {
				polls = count
			}
		}
		if polls < 5 {
			return fmt.Errorf("%d polls", polls)
		}
		return nil
	})
	// The count begins or ends within a poll.
	if n > 2*(polls+1)*len(objects) {
		t.Errorf("%d requests in %d polls:\n%s", n, polls, requests)
	}
	must(t, c.Delete(t.Context(), theirs))
	eventually(t, "it is not deleted", gone(c, append(objects, assembly)...))
}

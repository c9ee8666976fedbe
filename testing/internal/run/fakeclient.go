package run

import (
	"context"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/testing/internal/apiresources"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// onFakeClient returns two fake clients of controller-runtime: one for the Client, with the GivenObjects, and one for
// the APIReader, with the APIGivenObjects. What they know of identity, validation and deletion is what that client
// knows.
func (g Given) onFakeClient(journal *recording.Journal) Server {
	resources := slices.Concat(g.GivenAPIResources, apiresources.ServedTypes(g.GivenObjects, g.Scheme))
	mapper, problems := apiresources.NewMapper(resources)
	b := Server{Problems: problems, Close: func(context.Context) error { return nil }}
	b.Client, b.Fake = g.newFakeClient(g.GivenObjects, mapper, journal)
	b.Reader, _ = g.newFakeClient(g.APIGivenObjects, mapper, nil)
	b.Discovery = apiresources.NewDiscovery(resources)
	return b
}

// newFakeClient returns a recording client of a fake client that has the objects, and the latter.
func (g Given) newFakeClient(
	objs []client.Object, mapper meta.RESTMapper, journal *recording.Journal,
) (*recording.Client, client.Client) {
	tracker := newTracker(g.Scheme)
	builder := fake.NewClientBuilder().WithScheme(g.Scheme).WithRESTMapper(mapper).WithObjectTracker(tracker)
	for _, obj := range g.StatusSubResourceTypes {
		builder = builder.WithStatusSubresource(mustBeGiven(obj, g.Scheme))
	}
	for _, obj := range objs {
		stored := mustBeGiven(obj, g.Scheme)
		builder = builder.WithObjects(stored)
		if len(stored.GetManagedFields()) > 0 {
			builder = builder.WithReturnManagedFields()
		}
	}
	builder = g.Builder(builder)
	tracker = keptTracker(builder, tracker)
	built := builder.Build()
	inner := duck.NewDuckAwareClientWrapper(built)
	r := recording.NewClient(inner, recording.Options{Add: AddGiven(inner, tracker), Journal: journal})
	g.addReactors(r)
	return r, built
}

// newTracker returns a tracker as that which a fake client makes for itself. Objects that are given later go there.
func newTracker(scheme *runtime.Scheme) clientgotesting.ObjectTracker {
	decoder := serializer.NewCodecFactory(scheme).UniversalDecoder()
	return clientgotesting.NewFieldManagedObjectTracker(scheme, decoder, typeConverter())
}

// keptTracker returns the tracker that a builder was given at first, and nil if it was given something in the place of
// that: another tracker, or converters, beside which a fake client takes none. The builder has no methods to read these
// settings. One that does not exist in another version of controller-runtime counts as not set.
func keptTracker(builder *fake.ClientBuilder, first clientgotesting.ObjectTracker) clientgotesting.ObjectTracker {
	settings := reflect.ValueOf(builder).Elem()
	if converters := settings.FieldByName("typeConverters"); converters.IsValid() && converters.Len() > 0 {
		builder.WithObjectTracker(nil)
		return nil
	}
	set := settings.FieldByName("objectTracker")
	if set.IsValid() && set.Elem().Pointer() != reflect.ValueOf(first).Pointer() {
		return nil
	}
	return first
}

package testing

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
	"github.com/espalier-dev/espalier/testing/internal/fieldmanager"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// newCompat returns two fake clients of controller-runtime: one for the Client, with the GivenObjects, and one for the
// APIReader, with the APIGivenObjects. What they know of identity, validation and deletion is what that client knows.
func (c *ExpectConfig) newCompat(journal *recording.Journal) backend {
	resources := slices.Concat(c.GivenAPIResources, apiresources.ServedTypes(c.GivenObjects, c.Scheme))
	mapper, problems := apiresources.NewMapper(resources)
	b := backend{problems: problems, close: func(context.Context) error { return nil }}
	b.client, b.fake = c.newFakeClient(c.GivenObjects, mapper, journal)
	b.reader, _ = c.newFakeClient(c.APIGivenObjects, mapper, nil)
	b.discovery = apiresources.NewDiscovery(resources)
	return b
}

// newFakeClient returns a recording client of a fake client that has the objects, and the latter.
func (c *ExpectConfig) newFakeClient(
	objs []client.Object, mapper meta.RESTMapper, journal *recording.Journal,
) (*recording.Client, client.Client) {
	tracker := newTracker(c.Scheme)
	builder := fake.NewClientBuilder().WithScheme(c.Scheme).WithRESTMapper(mapper).WithObjectTracker(tracker)
	for _, obj := range c.StatusSubResourceTypes {
		builder = builder.WithStatusSubresource(mustBeGiven(obj, c.Scheme))
	}
	for _, obj := range objs {
		stored := mustBeGiven(obj, c.Scheme)
		builder = builder.WithObjects(stored)
		if len(stored.GetManagedFields()) > 0 {
			builder = builder.WithReturnManagedFields()
		}
	}
	builder = withIndexes(builder, c.GivenIndexes)
	if c.WithClientBuilder != nil {
		builder = c.WithClientBuilder(builder)
		tracker = keptTracker(builder, tracker)
	}
	built := builder.Build()
	inner := duck.NewDuckAwareClientWrapper(built)
	r := recording.NewClient(inner, recording.Options{Add: addGiven(inner, tracker), Journal: journal})
	c.addReactors(r)
	return r, built
}

// newTracker returns a tracker as that which a fake client makes for itself. Objects that are given later go there.
func newTracker(scheme *runtime.Scheme) clientgotesting.ObjectTracker {
	decoder := serializer.NewCodecFactory(scheme).UniversalDecoder()
	return clientgotesting.NewFieldManagedObjectTracker(scheme, decoder, fieldmanager.BuiltInOrDeduced())
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

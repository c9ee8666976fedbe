package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// Given is what a config is given. A field with the name of one of an ExpectConfig has its value.
type Given struct {
	Scheme                 *runtime.Scheme
	StatusSubResourceTypes []client.Object
	GivenObjects           []client.Object
	APIGivenObjects        []client.Object
	GivenAPIResources      []*metav1.APIResourceList
	WithReactors           []clientgotesting.ReactionFunc
	GivenTracks            []recording.Track
	Server                 client.WithWatch
	WithoutNamespaces      bool
	// Indexes are the GivenIndexes.
	Indexes map[schema.GroupKind]map[string]client.IndexerFunc
	// Builder completes the builder of a fake client.
	Builder func(*fake.ClientBuilder) *fake.ClientBuilder
	How
}

// How says how a config of a row is run. The zero value is that of a config without a row.
type How struct {
	// APIServer says that the API server of Kubernetes answers, see NodeTests, and not a fake client.
	APIServer bool
	// PastCache says that it has managed fields and that all read past the cache, see UseFake.
	PastCache bool
	// Reconciled is the index of the resource to reconcile among the GivenObjects, negative if it is not known.
	Reconciled int
	// Requested is the name of the resource to reconcile, if its kind is not known; nil if it is.
	Requested *types.NamespacedName
	// Now is the time of writes to that; nil is the real time.
	Now func() time.Time
}

// givenTime is the creation time of a given object that has none.
var givenTime = metav1.NewTime(time.UnixMilli(1000))

// OnlyExpected is the kind of an object that a row expects and no server stores. Why says so.
type OnlyExpected struct {
	schema.ObjectKind
	Why error
}

// Stored returns obj in the form in which it is stored.
func Stored(obj client.Object, scheme *runtime.Scheme) (client.Object, error) {
	obj = objects.Copy(obj)
	if kind, ok := obj.GetObjectKind().(OnlyExpected); ok {
		return nil, kind.Why
	}
	if duck.IsDuck(obj, scheme) {
		u := &unstructured.Unstructured{}
		if err := duck.Convert(obj, u); err != nil {
			return nil, fmt.Errorf("cannot store %T %q: %w", obj, obj.GetName(), err)
		}
		obj = u
	}
	if obj.GetCreationTimestamp().Time.IsZero() {
		obj.SetCreationTimestamp(givenTime)
	}
	return obj, nil
}

// AddGiven returns what stores given objects by a client, or in its tracker, if that is not nil.
func AddGiven(inner client.Client, tracker clientgotesting.ObjectTracker) func(client.Object) error {
	return func(obj client.Object) error {
		stored, err := Stored(obj, inner.Scheme())
		if err != nil {
			return err
		}
		if tracker != nil {
			return tracker.Add(stored)
		}
		stored.SetResourceVersion("")
		return inner.Create(context.Background(), stored)
	}
}

// Without returns what is given without objects. All calls to the clients fail with err.
func (g Given) Without(err error) Given {
	g.GivenObjects, g.APIGivenObjects, g.StatusSubResourceTypes, g.Indexes = nil, nil, nil, nil
	g.Builder = func(b *fake.ClientBuilder) *fake.ClientBuilder { return b }
	g.WithReactors = []clientgotesting.ReactionFunc{func(clientgotesting.Action) (bool, runtime.Object, error) {
		return true, nil, err
	}}
	return g
}

// mustBeGiven returns an object as it is stored. [Given.Check] has found that it can be.
func mustBeGiven(obj client.Object, scheme *runtime.Scheme) client.Object {
	stored, err := Stored(obj, scheme)
	if err != nil {
		panic(err)
	}
	return stored
}

func (g Given) addReactors(r *recording.Client) {
	for _, reaction := range slices.Backward(g.WithReactors) {
		r.PrependReactor("*", "*", reaction)
	}
}

package testing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/internal/testenv/memserver"
	"github.com/espalier-dev/espalier/reconcilers"
)

// ExpectConfig is a config for code under test, together with what the test gives and what it expects. The test cases
// make one of their fields; make one by hand for a config beside that, see AdditionalConfigs, or for a test without a test
// case:
//
//	c := rtesting.ExpectConfig{Scheme: scheme, ExpectCreates: ...}
//	... c.Config() ...
//	c.AssertExpectations(t)
//
// Expectations are compared in the order of the calls, each kind for itself: a create may come before or after a delete,
// unless ExpectOrder says more. Use it by pointer.
type ExpectConfig struct {
	// Name stands in failure messages; empty or "default" leaves it out.
	Name string
	// Scheme has the types of the test. Required.
	Scheme *runtime.Scheme
	// StatusSubResourceTypes are the types, besides the built-in ones, whose status is written on its own.
	StatusSubResourceTypes []client.Object
	// GivenObjects are those that the client has. The types of CustomResourceDefinitions among them that are established are
	// served: discovery and the REST mapper know them. If one of the objects has managed fields, the client returns those of
	// all objects, as an API server does; by default it returns none.
	GivenObjects []client.Object
	// APIGivenObjects are those that the APIReader has. They are not given to the client.
	APIGivenObjects []client.Object
	// GivenAPIResources are the resources that discovery and the REST mapper know. The Group and Version of a resource
	// override those of its list. The REST mapper is a *meta.DefaultRESTMapper, to which a test may add further kinds.
	GivenAPIResources []*metav1.APIResourceList
	// WithClientBuilder completes the builders of the fake clients behind Client and APIReader. What it sets wins.
	WithClientBuilder func(*fake.ClientBuilder) *fake.ClientBuilder
	// WithReactors react to the calls to Client and to the reads through APIReader; the first listed is asked first.
	WithReactors []ReactionFunc
	// GivenTracks are those that the tracker has.
	GivenTracks []TrackRequest
	// Differ compares; nil is DefaultDiffer.
	Differ Differ
	// Server is a client of a real API server to take the place of the one in memory, for Client and APIReader; nil for
	// the one in memory. The given objects are created there, see Release for how they go. What the server sets of the
	// metadata of an object that is expected is not compared. Patches and preconditions that have versions or UIDs in them
	// differ from run to run, and what the server defaults shows: tables with such need a Differ of their own.
	Server client.WithWatch

	// ExpectTracks are the requests to the tracker.
	ExpectTracks []TrackRequest
	// ExpectEvents are the events, of both recorders.
	ExpectEvents []Event
	// ExpectApplies are the server-side applies.
	ExpectApplies []ApplyRef
	// ExpectCreates are the objects created.
	ExpectCreates []client.Object
	// ExpectUpdates are the objects updated, as sent.
	ExpectUpdates []client.Object
	// ExpectPatches are the patches.
	ExpectPatches []PatchRef
	// ExpectDeletes are the deletes.
	ExpectDeletes []DeleteRef
	// ExpectDeleteCollections are the deletes of collections.
	ExpectDeleteCollections []DeleteCollectionRef
	// ExpectStatusUpdates are the objects whose status is updated, as sent.
	ExpectStatusUpdates []client.Object
	// ExpectStatusPatches are the patches of a status.
	ExpectStatusPatches []PatchRef
	// ExpectStatusApplies are the server-side applies of a status.
	ExpectStatusApplies []ApplyRef

	// ExpectOrder is the order of all writes, whatever their kind, one line for each:
	//
	//	create ConfigMap default/settings
	//	create ConfigMap default/settings-*      (a name to be generated)
	//	update Widget/status default/gadget
	//	patch Namespace acme (dry run)
	//	delete-collection ConfigMap default/*
	//
	// If it has lines about events or tracks, all of these have to be in it too:
	//
	//	event Created Widget default/gadget
	//	track Secret default/*                   (by a selector)
	//
	// Nil is any order; empty is no write at all.
	ExpectOrder []string

	// parts is what Config made, nil before. A copy of an ExpectConfig that was used shares them.
	parts *parts
}

// parts are what a config is made of, and what went wrong in making it.
type parts struct {
	config   reconcilers.Config
	servers  []*memserver.Server
	client   *recorder
	events   *eventList
	tracker  *recordingTracker
	journal  *journal
	problems []string
	// failures are the messages of failed assertions.
	failures []string
}

// making guards the parts of all ExpectConfigs. It is not a member, so that they can be values of a map.
var making sync.Mutex

// Config returns the config. It is made at the first call; later calls return the same. Its Client is a [TestClient]. It
// panics if the fake client cannot be built, which is what happens for an object that is given twice.
func (c *ExpectConfig) Config() reconcilers.Config {
	return c.made().config
}

func (c *ExpectConfig) made() *parts {
	making.Lock()
	defer making.Unlock()
	if c.parts == nil {
		c.parts = c.make()
	}
	return c.parts
}

func (c *ExpectConfig) make() *parts {
	p := &parts{journal: &journal{}}
	p.events = &eventList{scheme: c.Scheme, journal: p.journal}
	mapper, problems := restMapper(c.GivenAPIResources)
	p.problems = append(p.problems, problems...)
	reader := (*recorder)(nil)
	var err error
	if c.Server != nil {
		p.client, reader = c.newLiveClient(), c.newLiveClient()
		err = seed(context.Background(), p.client.client, append(realObjects(c.GivenObjects), realObjects(c.APIGivenObjects)...))
		if err != nil {
			p.problems = append(p.problems, err.Error())
		}
	} else {
		p.client = c.newClient(p, c.GivenObjects, mapper, memserver.OnStore(mapServedTypes(mapper)))
		reader = c.newClient(p, c.APIGivenObjects, mapper)
	}
	p.client.journal = p.journal
	if p.tracker, err = newRecordingTracker(c.Scheme, c.GivenTracks, p.journal); err != nil {
		p.problems = append(p.problems, fmt.Sprintf("GivenTracks cannot be tracked: %v", err))
	}
	p.config = reconcilers.Config{
		Client:        p.client,
		APIReader:     reader,
		Discovery:     newDiscovery(c.GivenAPIResources, p.server()),
		Recorder:      oldRecorder{p.events},
		EventRecorder: newRecorder{p.events},
		Tracker:       p.tracker,
	}
	return p
}

// server is the one behind the client; nil if that is one of a real API server.
func (p *parts) server() *memserver.Server {
	if len(p.servers) == 0 {
		return nil
	}
	return p.servers[0]
}

// newClient returns a recording client of a server that has the objects.
func (c *ExpectConfig) newClient(
	p *parts, objects []client.Object, mapper meta.RESTMapper, options ...memserver.Option,
) *recorder {
	server := memserver.New(c.Scheme, options...)
	p.servers = append(p.servers, server)
	builder := fake.NewClientBuilder().WithScheme(c.Scheme).WithRESTMapper(mapper)
	for _, obj := range c.StatusSubResourceTypes {
		builder = builder.WithStatusSubresource(mustBeGiven(obj, c.Scheme))
	}
	for _, obj := range objects {
		stored := mustBeGiven(obj, c.Scheme)
		builder = builder.WithObjects(stored)
		if len(stored.GetManagedFields()) > 0 {
			builder = builder.WithReturnManagedFields()
		}
	}
	if c.WithClientBuilder != nil {
		builder = c.WithClientBuilder(builder)
	}
	inner, behind := server.Build(builder)
	wrapped := duck.NewDuckAwareClientWrapper(inner)
	var r *recorder
	if behind {
		r = NewFakeClientWrapper(wrapped, server)
	} else {
		r = NewFakeClientWrapper(wrapped, nil)
	}
	c.addReactors(r)
	r.AddReactor("create", "*", refuseFenced(server))
	return r
}

// newLiveClient returns a recording client of the Server. Names are generated by the server.
func (c *ExpectConfig) newLiveClient() *recorder {
	r := &recorder{client: duck.NewDuckAwareClientWrapper(c.Server), live: true}
	c.addReactors(r)
	return r
}

func (c *ExpectConfig) addReactors(r *recorder) {
	for _, reaction := range slices.Backward(c.WithReactors) {
		r.PrependReactor("*", "*", reaction)
	}
}

// mustBeGiven is given for objects of a table: one that cannot be stored is a mistake in the test.
func mustBeGiven(obj client.Object, scheme *runtime.Scheme) client.Object {
	stored, err := given(obj, scheme)
	if err != nil {
		panic(err)
	}
	return stored
}

// restMapper returns a mapper that knows CustomResourceDefinitions and the resources of the lists, and what is wrong with
// the lists that it leaves out. A nil list counts as empty.
func restMapper(lists []*metav1.APIResourceList) (*meta.DefaultRESTMapper, []string) {
	var problems []string
	mapper := meta.NewDefaultRESTMapper(nil)
	_ = addToMapper(mapper, definitionResources) // it is valid
	for i, list := range lists {
		if list == nil {
			continue
		}
		if err := addToMapper(mapper, list); err != nil {
			problems = append(problems, fmt.Sprintf("GivenAPIResources[%d] has no valid group and version: %v", i, err))
		}
	}
	return mapper, problems
}

func addToMapper(mapper *meta.DefaultRESTMapper, list *metav1.APIResourceList) error {
	listed, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return err
	}
	for _, resource := range list.APIResources {
		gv, scope := groupVersionOf(listed, resource), meta.RESTScopeRoot
		if resource.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.AddSpecific(gv.WithKind(resource.Kind), gv.WithResource(resource.Name), gv.WithResource(resource.SingularName), scope)
	}
	return nil
}

// groupVersionOf returns the group and version of a resource, which override those of its list.
func groupVersionOf(list schema.GroupVersion, resource metav1.APIResource) schema.GroupVersion {
	return schema.GroupVersion{Group: cmp.Or(resource.Group, list.Group), Version: cmp.Or(resource.Version, list.Version)}
}

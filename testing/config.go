package testing

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/run"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// ExpectConfig is a config for code under test, with the given state and the expectations of the test. The test cases
// make one of their fields. Make one by hand for AdditionalConfigs of a case, or for a test without a test case:
//
//	c := rtesting.ExpectConfig{Scheme: scheme, ExpectCreates: ...}
//	... c.Config() ...
//	c.AssertExpectations(t)
//
// Expectations are compared in the order of the calls, each kind for itself: a create may come before or after a
// delete, unless ExpectOrder says more. Use it by pointer.
type ExpectConfig struct {
	// Name stands in failure messages; empty or "default" leaves it out.
	Name string
	// Scheme has the types of the test. Required.
	Scheme *runtime.Scheme
	// StatusSubResourceTypes are the types, besides the built-in ones, whose status is written on its own. For other
	// types a write of the status fails. ReconcilerTestCase has a default.
	StatusSubResourceTypes []client.Object
	// GivenObjects are the objects of the client. The types of CustomResourceDefinitions among them that are
	// established are served: discovery and the REST mapper know them. If one of the objects has managed fields, the
	// client returns those of all objects, as an API server does; by default it returns none.
	GivenObjects []client.Object
	// APIGivenObjects are the objects of the APIReader. The client does not have them.
	APIGivenObjects []client.Object
	// GivenAPIResources are the resources that discovery and the REST mapper know. The Group and Version of a resource
	// override those of its list. The REST mapper of the fake clients is a *meta.DefaultRESTMapper, to which a test may
	// add further kinds.
	GivenAPIResources []*metav1.APIResourceList
	// GivenIndexes are the fields that the cache behind the client has indexed.
	GivenIndexes []Index
	// WithClientBuilder changes the builders of the fake clients behind Client and APIReader. Its settings override
	// others.
	WithClientBuilder func(*fake.ClientBuilder) *fake.ClientBuilder
	// UseFake makes the API server that of [NodeTests] and of package testing/fake, which is that of Kubernetes.
	// Client and APIReader read from it, past any cache, and all objects have managed fields. StatusSubResourceTypes
	// have no effect, and what only a server sets is compared only where an expectation sets it. Without UseFake there
	// are two fake clients of controller-runtime. Rows of NodeTests need no UseFake, and it has no effect beside a
	// WithClientBuilder or a Server.
	UseFake bool
	// WithoutNamespaces leaves out the namespaces that each cluster has: default, kube-system, kube-public and
	// kube-node-lease. Those of given objects are made. It has an effect where the API server is that of NodeTests.
	WithoutNamespaces bool
	// WithReactors react to the calls to Client and to the reads through APIReader; the first listed is asked first.
	WithReactors []ReactionFunc
	// GivenTracks are the requests that the tracker has before.
	GivenTracks []TrackRequest
	// Differ compares; nil is DefaultDiffer.
	Differ Differ
	// Server is a client of a real API server, for Client and APIReader; nil for one in the test binary. The given
	// objects are created there, see Release for their deletion. The metadata of expected objects that the server sets
	// is not compared. Patches and preconditions with versions or UIDs differ from run to run, and the server adds
	// defaults: tables with them need a Differ of their own.
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

	// ExpectOrder is the order of all writes of all kinds, one line for each:
	//
	//	create ConfigMap default/settings
	//	create ConfigMap default/settings-*      (a name to be generated)
	//	update Widget/status default/gadget
	//	patch Namespace acme (dry run)
	//	delete-collection ConfigMap default/*
	//
	// If it has a line about an event or a track, it must have a line about each of them:
	//
	//	event Created Widget default/gadget
	//	track Secret default/*                   (by a selector)
	//
	// Nil is any order; empty is no write at all.
	ExpectOrder []string

	// how says how the config of a row is run.
	how run.How
	// ignore is what the expectations of the row do not compare; nil for nothing.
	ignore fault.Ignore
	// parts are made by Config, and nil before. A copy of a used ExpectConfig shares them.
	parts *parts
	// report is that of the row. It is nil in a test without a test case.
	report *words.Report
}

// parts are what Config makes.
type parts struct {
	run.Attempt
	// report has what fails.
	report *words.Report
}

// configMu guards the parts of all ExpectConfigs. It is not a field, so that an ExpectConfig can be a value of a map.
var configMu sync.Mutex

// Config returns the config. The first call makes it, later calls return the same. Its Client is a [TestClient]. If an
// object cannot be given, for example because it is given twice, each call to the clients returns the reason, and so
// does AssertExpectations.
func (c *ExpectConfig) Config() reconcilers.Config {
	return c.made().Config
}

func (c *ExpectConfig) made() *parts {
	configMu.Lock()
	defer configMu.Unlock()
	if c.parts == nil {
		c.parts = c.make()
	}
	return c.parts
}

// page has what fails in the config.
func (c *ExpectConfig) page() words.Page {
	return words.Page{Report: c.made().report, Config: c.Name, Colors: colors()}
}

// suffix names the config in a message.
func (c *ExpectConfig) suffix() string { return words.Page{Config: c.Name}.Suffix() }

func (c *ExpectConfig) make() *parts {
	c.useFake()
	if c.report != nil {
		return &parts{Attempt: c.given().Start(), report: c.report}
	}
	p := &parts{report: &words.Report{}}
	if err := c.check(nil); err != nil {
		p.Attempt = c.given().Without(err).Start()
		p.Problems = append(p.Problems, err.Error())
		return p
	}
	p.Attempt = c.given().Start()
	return p
}

// useFake carries UseFake out.
func (c *ExpectConfig) useFake() {
	if c.UseFake && !c.how.APIServer && c.WithClientBuilder == nil && c.Server == nil {
		c.how.APIServer, c.how.PastCache, c.how.Reconciled = true, true, -1
	}
}

// Release ends the use of the config. With a Server, it deletes the objects there that the config was given and that
// were created or applied through it, even if they have finalizers. Without one it does nothing. The test cases
// call it.
func (c *ExpectConfig) Release(ctx context.Context) error {
	configMu.Lock()
	p := c.parts
	configMu.Unlock()
	if p == nil {
		return nil
	}
	return p.Close(ctx)
}

// given returns what the config is given.
func (c *ExpectConfig) given() run.Given {
	return run.Given{
		Scheme: c.Scheme, StatusSubResourceTypes: c.StatusSubResourceTypes, GivenObjects: c.GivenObjects,
		APIGivenObjects: c.APIGivenObjects, GivenAPIResources: c.GivenAPIResources, WithReactors: c.WithReactors,
		GivenTracks: tracksGiven(c.GivenTracks), Indexes: indexesOf(c.GivenIndexes, c.Scheme), Builder: c.completed,
		Server: c.Server, WithoutNamespaces: c.WithoutNamespaces, How: c.how,
	}
}

// completed returns the builder of a fake client with the settings of the config.
func (c *ExpectConfig) completed(builder *fake.ClientBuilder) *fake.ClientBuilder {
	for _, index := range c.GivenIndexes {
		builder = builder.WithIndex(index.Object, index.Field, index.Extract)
	}
	if c.WithClientBuilder != nil {
		return c.WithClientBuilder(builder)
	}
	return builder
}

// check returns why what is given cannot be stored. It calls resource, if it is the last of the given objects, by the
// name of its field.
func (c *ExpectConfig) check(resource client.Object) error {
	if err := c.given().Check(resource); err != nil {
		return err
	}
	return c.checkIndexes()
}

package testing

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/recording"
	"github.com/espalier-dev/espalier/testing/internal/run"
)

// TestClient is a client that can be prepared while a test runs. The Client of a config made by the harness is one.
type TestClient interface {
	client.Client

	// AddGiven stores objects without the checks of a create: they need neither a name nor a resource version. It
	// panics if an object cannot be stored.
	AddGiven(objs ...client.Object)
	// AddReactor adds a reaction to calls with the verb on objects of the kind, after all others. * matches any.
	AddReactor(verb, kind string, reaction ReactionFunc)
	// PrependReactor is AddReactor, before all others.
	PrependReactor(verb, kind string, reaction ReactionFunc)
}

var _ TestClient = (*recording.Client)(nil)

// NewFakeClientWrapper returns a TestClient that records what is written to inner. Objects given later go to tracker;
// if it is nil they are created through inner. The recorded actions are in exported fields of the result, such as
// CreateActions and StatusPatchActions.
func NewFakeClientWrapper(inner client.Client, tracker clientgotesting.ObjectTracker) *recording.Client {
	return recording.NewClient(inner, recording.Options{Add: run.AddGiven(inner, tracker)})
}

// Calls to the client, as reactors see them. The resource of an action is the *kind* of the object, such as ConfigMap.
type (
	// Reactor is offered every call to the client.
	Reactor = clientgotesting.Reactor
	// ReactionFunc reacts to a call. If it handles the call and returns an error, the call fails with that error and
	// goes no further; otherwise the next one is asked, and in the end the call is made. It may change the object of
	// the call. Several goroutines may call it at once if the code under test calls the client from several.
	ReactionFunc = clientgotesting.ReactionFunc

	// Action is any call to the client.
	Action = clientgotesting.Action
	// GetAction is a call to get an object.
	GetAction = clientgotesting.GetAction
	// ListAction is a call to list objects.
	ListAction = clientgotesting.ListAction
	// CreateAction is a call to create an object.
	CreateAction = clientgotesting.CreateAction
	// UpdateAction is a call to update an object.
	UpdateAction = clientgotesting.UpdateAction
	// PatchAction is a call to patch an object.
	PatchAction = clientgotesting.PatchAction
	// DeleteAction is a call to delete an object.
	DeleteAction = clientgotesting.DeleteAction
	// DeleteCollectionAction is a call to delete the objects that a selector matches.
	DeleteCollectionAction = clientgotesting.DeleteCollectionAction
	// ApplyAction is a call to apply a configuration: an [Action] with GetName and GetApplyConfiguration.
	ApplyAction = recording.ApplyAction
	// ApplyActionImpl implements [ApplyAction]. It embeds a clientgotesting.ActionImpl and has the fields Name,
	// ApplyConfiguration, FieldManager, Force and DryRun. It can be compared with ==.
	ApplyActionImpl = recording.ApplyActionImpl
)

// NewApplyAction returns the action of applying ac. It panics if ac cannot be marshalled, which no generated apply
// configuration can cause.
func NewApplyAction(ac runtime.ApplyConfiguration) ApplyAction {
	return NewApplySubresourceAction(ac, "")
}

// NewApplySubresourceAction is [NewApplyAction] for a subresource.
func NewApplySubresourceAction(ac runtime.ApplyConfiguration, subresource string) ApplyAction {
	action, err := recording.NewApplyAction(ac, subresource, metav1.PatchOptions{})
	if err != nil {
		panic(err)
	}
	return action
}

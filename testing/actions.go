package testing

import (
	"encoding/json"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What a call to the client is to a reactor. The resource of an action is the *kind* of the object, such as ConfigMap.
type (
	// Reactor is offered every call to the client.
	Reactor = clientgotesting.Reactor
	// ReactionFunc reacts to a call. If it says it handled the call and returns an error, the call fails with that error and
	// goes no further; otherwise the next one is asked, and in the end the call is made. It may change the object of the
	// call. Several goroutines may call it at once if the code under test calls the client from several.
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
)

// ApplyAction is a call to apply a configuration.
type ApplyAction interface {
	Action
	GetName() string
	GetApplyConfiguration() runtime.ApplyConfiguration
}

// ApplyActionImpl implements [ApplyAction]. It can be compared with ==.
type ApplyActionImpl struct {
	clientgotesting.ActionImpl
	Name               string
	ApplyConfiguration runtime.ApplyConfiguration
	// FieldManager, Force and DryRun are the options of the call.
	FieldManager  string
	Force, DryRun bool
}

var _ ApplyAction = ApplyActionImpl{}

// GetName returns the name of the object that the configuration is for.
func (a ApplyActionImpl) GetName() string { return a.Name }

// GetApplyConfiguration returns the configuration.
func (a ApplyActionImpl) GetApplyConfiguration() runtime.ApplyConfiguration {
	return a.ApplyConfiguration
}

// GetPatchOptions returns the options of the call.
func (a ApplyActionImpl) GetPatchOptions() metav1.PatchOptions {
	opts := metav1.PatchOptions{FieldManager: a.FieldManager, Force: new(a.Force)}
	if a.DryRun {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	return opts
}

// DeepCopy implements [Action]. The configuration is shared with the copy.
func (a ApplyActionImpl) DeepCopy() Action { return a }

// NewApplyAction returns the action of applying ac. It panics if ac cannot be marshalled, which no generated apply
// configuration can cause.
func NewApplyAction(ac runtime.ApplyConfiguration) ApplyAction {
	return NewApplySubresourceAction(ac, "")
}

// NewApplySubresourceAction is [NewApplyAction] for a subresource.
func NewApplySubresourceAction(ac runtime.ApplyConfiguration, subresource string) ApplyAction {
	action, err := newApplyAction(ac, subresource, metav1.PatchOptions{})
	if err != nil {
		panic(err)
	}
	return action
}

func newApplyAction(ac runtime.ApplyConfiguration, subresource string, opts metav1.PatchOptions) (ApplyActionImpl, error) {
	raw, err := json.Marshal(ac)
	if err != nil {
		return ApplyActionImpl{}, fmt.Errorf("cannot marshal the apply configuration: %w", err)
	}
	var identity struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &identity); err != nil {
		return ApplyActionImpl{}, fmt.Errorf("the apply configuration is not an object: %w", err)
	}
	return ApplyActionImpl{
		ActionImpl: clientgotesting.ActionImpl{
			Verb:        "apply",
			Resource:    resourceFor(identity.GroupVersionKind()),
			Subresource: subresource,
			Namespace:   identity.Namespace,
		},
		Name:               identity.Name,
		ApplyConfiguration: ac,
		FieldManager:       opts.FieldManager,
		Force:              opts.Force != nil && *opts.Force,
		DryRun:             isDryRun(opts.DryRun),
	}, nil
}

// snapshot returns the action with a copy of the configuration, which stays as it is when the client fills the original
// with the server's answer.
func (a ApplyActionImpl) snapshot() ApplyActionImpl {
	a.ApplyConfiguration = copyOfApplyConfiguration(a.ApplyConfiguration)
	return a
}

// copyOfApplyConfiguration returns a copy by way of JSON, of the same type where the type allows it.
func copyOfApplyConfiguration(ac runtime.ApplyConfiguration) runtime.ApplyConfiguration {
	raw, err := json.Marshal(ac)
	if err != nil {
		return ac
	}
	_, isUnstructured := ac.(interface{ UnstructuredContent() map[string]any })
	if t := reflect.TypeOf(ac); !isUnstructured && t.Kind() == reflect.Pointer {
		c := reflect.New(t.Elem()).Interface()
		if err := json.Unmarshal(raw, c); err == nil {
			return c.(runtime.ApplyConfiguration)
		}
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(raw, &u.Object); err != nil {
		return ac
	}
	return client.ApplyConfigurationFromUnstructured(u)
}

// resourceFor returns what stands for a kind in an action.
func resourceFor(kind schema.GroupVersionKind) schema.GroupVersionResource {
	return kind.GroupVersion().WithResource(kind.Kind)
}

package recording

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/espalier-dev/espalier/internal/managedfields"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ApplyAction is a call to apply a configuration.
type ApplyAction interface {
	clientgotesting.Action
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

// DeepCopy implements [clientgotesting.Action]. The copy shares the configuration.
func (a ApplyActionImpl) DeepCopy() clientgotesting.Action { return a }

// NewApplyAction returns the action of applying ac to an object, or to a subresource of it.
func NewApplyAction(
	ac runtime.ApplyConfiguration, subresource string, opts metav1.PatchOptions,
) (ApplyActionImpl, error) {
	raw, err := json.Marshal(ac)
	if err != nil {
		return ApplyActionImpl{}, fmt.Errorf("cannot marshal the apply configuration: %w", err)
	}
	var identity metav1.PartialObjectMetadata
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

// snapshot returns the action with a copy of the configuration. A client fills the original with the server's answer.
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

// NameOf returns the name of the object that an action is about, empty if the action is about no single object.
func NameOf(action clientgotesting.Action) string {
	switch a := action.(type) {
	case interface{ GetName() string }:
		return a.GetName()
	case interface{ GetObject() runtime.Object }:
		if obj, err := meta.Accessor(a.GetObject()); err == nil {
			return obj.GetName()
		}
	}
	return ""
}

// CallOptions are the options of a call that an expectation can name. An option that the call lacks is unset.
type CallOptions struct {
	FieldManager  string
	Force, DryRun bool
}

// OptionsOf returns the options of a call. What an applying manager adds to its name for a create is left out.
func OptionsOf(action clientgotesting.Action) CallOptions {
	of := func(manager string, dryRun []string) CallOptions {
		return CallOptions{FieldManager: manager, DryRun: isDryRun(dryRun)}
	}
	switch a := action.(type) {
	case clientgotesting.CreateActionImpl:
		return of(managedfields.ManagerOfCreator(a.CreateOptions.FieldManager), a.CreateOptions.DryRun)
	case clientgotesting.UpdateActionImpl:
		return of(a.UpdateOptions.FieldManager, a.UpdateOptions.DryRun)
	case clientgotesting.PatchActionImpl:
		options := of(a.PatchOptions.FieldManager, a.PatchOptions.DryRun)
		options.Force = a.PatchOptions.Force != nil && *a.PatchOptions.Force
		return options
	case ApplyActionImpl:
		return CallOptions{FieldManager: a.FieldManager, Force: a.Force, DryRun: a.DryRun}
	case clientgotesting.DeleteActionImpl:
		return of("", a.DeleteOptions.DryRun)
	case clientgotesting.DeleteCollectionActionImpl:
		return of("", a.DeleteOptions.DryRun)
	default:
		return CallOptions{}
	}
}

func isDryRun(values []string) bool { return slices.Contains(values, metav1.DryRunAll) }

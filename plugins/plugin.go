package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/plugins/internal/answer"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Plugin is what a plugin provides: capabilities of one category.
type Plugin struct {
	// Category is what the types are, such as database. Required. Upper and lower case do not matter, also for types.
	Category string
	// Types are the capabilities, each with another name. At least one is required.
	Types []Type
	// Definitions are those of kinds that objects are of, and that the cluster may not have: without a conversion, and
	// for objects with a namespace. The host installs them if its operator allows their groups. Optional.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// Scheme knows the kinds of the objects that say none themselves. Default: that of client-go.
	Scheme *runtime.Scheme
}

// Type is one capability.
type Type struct {
	// Name is that of the type, such as postgres. Required.
	Name string
	// Versions are those that an owner may ask for. Default: an owner can only ask for any version.
	Versions []string
	// Dependents returns all that an owner needs, in their order. What it returned for the owner before, and does not
	// return now, is deleted; for all of it, see [DropsAll]. The same request has to give the same answer: it must
	// depend neither on the time, nor on chance, nor on the order of a map. It may be called concurrently. Required.
	//
	// With the error [Invalid], or that of [espalier.NotReady], whose delay counts from five seconds on, all stays as
	// it is, and the condition of the owner says why. Any other error, and a panic, counts as a fault of the plugin: it
	// is called again after a while.
	Dependents func(ctx context.Context, request Request) ([]*Dependent, error)
}

// Request asks for what an owner needs.
type Request struct {
	// Type and Version are what is asked for, as the plugin names it. An empty version stands for any.
	Type, Version string
	// Owner is the object that asks.
	Owner Owner
	// Values are what [Dependent.Yields] took from objects of earlier answers for the owner.
	Values map[string]string
}

// Owner is what a plugin knows of the object that asks for a capability.
type Owner struct {
	APIVersion, Kind, Namespace, Name string
	// Spec is that of the object, as JSON. It is empty if the object has none.
	Spec json.RawMessage
}

// Decode decodes the spec of the owner. A field that into does not have is ignored.
func (o Owner) Decode(into any) error {
	if len(o.Spec) == 0 {
		return nil
	}
	if err := json.Unmarshal(o.Spec, into); err != nil {
		return fmt.Errorf("the spec of %s %s is not as it should be: %w", o.Kind, o.Name, err)
	}
	return nil
}

// InvalidError says what is wrong with the spec of an owner, see [Invalid].
type InvalidError struct {
	Messages []string
}

func (e *InvalidError) Error() string { return strings.Join(e.Messages, ", ") }

// Invalid returns an error for [Type.Dependents]: the spec of the owner has to be changed. The condition of the owner
// is False with the reason Invalid and the messages.
func Invalid(messages ...string) *InvalidError { return &InvalidError{Messages: messages} }

// typeCalled returns the type of that name, or nil.
func (p Plugin) typeCalled(name string) *Type {
	for i := range p.Types {
		if strings.EqualFold(p.Types[i].Name, name) {
			return &p.Types[i]
		}
	}
	return nil
}

// scheme returns the scheme of the objects.
func (p Plugin) scheme() *runtime.Scheme {
	if p.Scheme != nil {
		return p.Scheme
	}
	return clientgoscheme.Scheme
}

// provided returns what the plugin provides.
func (p Plugin) provided() answer.Provided {
	provided := answer.Provided{Category: p.Category, Definitions: p.Definitions}
	for _, t := range p.Types {
		provided.Types = append(provided.Types, answer.Type{Name: t.Name, Versions: t.Versions})
	}
	return provided
}

// Validate returns an error if the plugin cannot be served.
func (p Plugin) Validate() error {
	for _, t := range p.Types {
		if t.Dependents == nil {
			return fmt.Errorf("the type %q of a plugin must have a function Dependents", t.Name)
		}
	}
	if err := p.provided().Check(); err != nil {
		return fmt.Errorf("a plugin must be valid: %w", err)
	}
	return nil
}

// errNoKind says that it is not known what an object is.
var errNoKind = errors.New("the object has no kind that the scheme of the plugin knows")

package plugins

import (
	"encoding/json"
	"fmt"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/plugins/internal/protocol"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Dependent is an object that an owner needs. [Owns] returns it. The words are those of the function Owns of package
// espalier.
type Dependent struct {
	message *protocol.Dependent
	object  client.Object
	pending bool
	// dropsAll is true for what [DropsAll] returns, which is no object.
	dropsAll bool
}

// Owns returns a dependent: the object is created, corrected, and deleted when no answer has it any more. The name
// identifies the dependent among those of the owner. The object has a name, and the fields that matter. Its namespace
// is that of the owner, and may be left out.
//
// The dependent waits while one before it has an error, unless it is [Dependent.Independent], or says what it is
// [Dependent.After].
func Owns(name string, object client.Object) *Dependent {
	return &Dependent{object: object, message: &protocol.Dependent{Name: name}}
}

// DropsAll returns what an answer has, beside its dependents, if what exists for the owner may go although the owner
// has not changed: because this release gives other dependents, or none, or took the place of another plugin. Without
// it, an answer that has nothing of what exists is refused, and so is one of a plugin that takes the place of another
// one.
func DropsAll() *Dependent { return &Dependent{dropsAll: true} }

// Pending says that it is not known yet what the object should be, because a value that the dependent needs is not in
// the request. The object stays as it is. Only the kind of it counts.
func (d *Dependent) Pending() *Dependent {
	d.pending = true
	return d
}

// ReadOnly says that the object belongs to somebody else: it is read by its name, waited for, and never written. The
// operator says which kinds a plugin may read.
func (d *Dependent) ReadOnly() *Dependent {
	d.message.ReadOnly = true
	return d
}

// Optional says that an object that is only read may be missing.
func (d *Dependent) Optional() *Dependent {
	d.message.IgnoreAbsent = true
	return d
}

// CreateOnly has the object never updated.
func (d *Dependent) CreateOnly() *Dependent {
	d.message.CreateOnly = true
	return d
}

// Unowned has the object made without an owner reference: it stays when the owner is deleted.
func (d *Dependent) Unowned() *Dependent {
	d.message.Unowned = true
	return d
}

// Auxiliary says that neither an error nor the health of the object counts.
func (d *Dependent) Auxiliary() *Dependent {
	d.message.Auxiliary = true
	return d
}

// Unchecked says that the health of the object does not count.
func (d *Dependent) Unchecked() *Dependent {
	d.message.Unchecked = true
	return d
}

// Recreates has the object deleted and created again if the API server refuses a change of an immutable field.
func (d *Dependent) Recreates() *Dependent {
	d.message.Recreates = true
	return d
}

// Independent says that the dependent waits for none of those before it.
func (d *Dependent) Independent() *Dependent {
	d.message.Independent = true
	return d
}

// After has the dependent wait until dependents before it are ready. Errors of others do not matter then.
func (d *Dependent) After(names ...string) *Dependent {
	d.message.After = append(d.message.After, names...)
	return d
}

// Needs has the dependent wait for values that dependents before it yield. They are in the request then.
func (d *Dependent) Needs(values ...string) *Dependent {
	d.message.Needs = append(d.message.Needs, values...)
	return d
}

// Yields takes a value from the object as it is in the cluster: a text, a number, or true or false. The plugin is asked
// again with it. Path are the fields that lead to it.
func (d *Dependent) Yields(value string, path ...string) *Dependent {
	d.message.Yields = append(d.message.Yields, &protocol.Yield{Name: value, Path: path})
	return d
}

// ReadyWhen says that the object is ready when a condition in its status is True. Default: the rules for its kind.
func (d *Dependent) ReadyWhen(condition string) *Dependent {
	d.health().Rule = &protocol.Health_Condition{Condition: condition}
	return d
}

// ReadyWhenField says that the object is ready when a field has a value.
func (d *Dependent) ReadyWhenField(value string, path ...string) *Dependent {
	d.health().Rule = &protocol.Health_Field{Field: &protocol.Field{Path: path, Value: value}}
	return d
}

// NotReadyReason gives the reason of the condition while the object is not ready by ReadyWhen or ReadyWhenField.
func (d *Dependent) NotReadyReason(reason string) *Dependent {
	d.health().Reason = reason
	return d
}

// Attribute adds something that is to be known of the object, with ReadyWhen or ReadyWhenField: the field that the path
// leads to.
func (d *Dependent) Attribute(name string, path ...string) *Dependent {
	health := d.health()
	if health.Attributes == nil {
		health.Attributes = map[string]*protocol.Path{}
	}
	health.Attributes[name] = &protocol.Path{Path: path}
	return d
}

func (d *Dependent) health() *protocol.Health {
	if d.message.Health == nil {
		d.message.Health = &protocol.Health{}
	}
	return d.message.Health
}

// encode returns the message for the dependent.
func (d *Dependent) encode(scheme *runtime.Scheme) (*protocol.Dependent, error) {
	if gotype.IsNil(d.object) {
		return nil, fmt.Errorf("the dependent %q has no object", d.message.GetName())
	}
	kind, err := apiutil.GVKForObject(d.object, scheme)
	if err != nil {
		return nil, fmt.Errorf("the dependent %q: %w: %w", d.message.GetName(), errNoKind, err)
	}
	// The author may return one dependent again, also in two calls at the same time.
	message := proto.CloneOf(d.message)
	message.ApiVersion, message.Kind = kind.ToAPIVersionAndKind()
	if d.pending {
		return message, nil
	}
	// The converter gives the fields of an unstructured object themselves.
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d.object.DeepCopyObject())
	if err != nil {
		return nil, fmt.Errorf("the dependent %q: unable to encode the object: %w", d.message.GetName(), err)
	}
	fields["apiVersion"], fields["kind"] = message.ApiVersion, message.Kind
	delete(fields, "status")
	// A Go type writes a time that is not set as null.
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	if message.Object, err = json.Marshal(fields); err != nil {
		return nil, fmt.Errorf("the dependent %q: unable to encode the object: %w", d.message.GetName(), err)
	}
	return message, nil
}

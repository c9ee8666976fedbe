// Package takeover changes what marks live components as those of one operator into what marks them as those of
// another: of an operator that is built with github.com/sap/component-operator-runtime, and of one that has a
// ComponentReconciler.
//
// What to write is decided by functions of what was read: records.go about the inventory, marks.go about labels,
// annotations and finalizers, fields.go about managed fields, and guard.go about whether an operator is still at work.
// [Run] reads and writes.
//
// # The order of writes
//
//  1. The component gets our finalizer, loses the old one, and keeps the old status in an annotation, by one patch.
//     From here on a second run finishes whatever happens, even if the component is deleted.
//  2. Each object gets our marks beside the old ones, and then our field manager the fields of the old one.
//  3. The status gets our inventory.
//
// Each patch names the resource version of what was read, and is left out if nothing differs. So a run that ended
// anywhere is finished by the next one. [Run.Rollback] writes the same in the opposite order.
package takeover

import (
	"cmp"
	"fmt"

	"github.com/espalier-dev/espalier/generator"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Operator is what an operator writes into a cluster.
type Operator struct {
	// Prefix is that of its labels and annotations.
	Prefix string `json:"prefix"`
	// Finalizer is on its components.
	Finalizer string `json:"finalizer"`
	// FieldManager is the name under which it writes objects.
	FieldManager string `json:"fieldManager"`
}

// Names are those of both operators.
type Names struct {
	From Operator `json:"from"`
	To   Operator `json:"to"`
}

// WithDefaults returns the names with the defaults of both engines where a name is empty.
func (n Names) WithDefaults() Names {
	n.From.Finalizer = cmp.Or(n.From.Finalizer, n.From.Prefix)
	n.From.FieldManager = cmp.Or(n.From.FieldManager, n.From.Prefix)
	n.To.Finalizer = cmp.Or(n.To.Finalizer, n.To.Prefix+"/component")
	n.To.FieldManager = cmp.Or(n.To.FieldManager, n.To.Prefix)
	return n
}

// Validate returns an error if the names cannot be told apart, or cannot be written.
func (n Names) Validate() error {
	for _, prefix := range []struct{ flag, value string }{
		{"from-name", n.From.Prefix}, {"prefix", n.To.Prefix},
	} {
		if problems := validation.IsDNS1123Subdomain(prefix.value); len(problems) > 0 {
			return fmt.Errorf("--%s is %q, and must be a DNS subdomain name such as shop.example.com",
				prefix.flag, prefix.value)
		}
	}
	for _, pair := range []struct{ flag, from, to string }{
		{"prefix", n.From.Prefix, n.To.Prefix},
		{"finalizer", n.From.Finalizer, n.To.Finalizer},
		{"field-manager", n.From.FieldManager, n.To.FieldManager},
	} {
		if pair.from == pair.to {
			return fmt.Errorf("--%s must not be %q, which is that of the old operator: its marks stay until --finalize",
				pair.flag, pair.to)
		}
	}
	if n.To.Prefix == generator.SharedPrefix {
		return fmt.Errorf("--prefix must be that of one operator, not %s, which all share", n.To.Prefix)
	}
	return nil
}

// label and the annotations are those that both engines write, with the same names below their prefixes.
func (o Operator) label() string      { return o.Prefix + "/" + generator.LabelOwnerID }
func (o Operator) annotation() string { return o.Prefix + "/" + generator.AnnotationOwnerID }
func (o Operator) digest() string     { return o.Prefix + "/" + generator.AnnotationDigest }

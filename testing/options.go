package testing

import (
	"github.com/google/go-cmp/cmp"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WriteOptions are options of a create or an update. Those that are not set may be anything.
type WriteOptions struct {
	// FieldOwner is the field manager of the call; empty for any.
	FieldOwner string
	// DryRun tells whether the call is a dry run; nil for any.
	DryRun *bool
}

// WithOptions returns obj as an expectation, for ExpectCreates, ExpectUpdates and ExpectStatusUpdates, that the call also
// has the options.
func WithOptions(obj client.Object, options WriteOptions) client.Object {
	return optioned{object: obj, options: options}
}

// optioned is an object of a table with the options it must be written with. It stands for the object.
type optioned struct {
	object
	options WriteOptions
}

// optionsOf returns what obj says about options.
func optionsOf(obj client.Object) WriteOptions {
	if o, ok := obj.(optioned); ok {
		return o.options
	}
	return WriteOptions{}
}

// diff tells how the options of a call differ from those that o sets.
func (o WriteOptions) diff(action Action) string {
	manager := ""
	switch a := action.(type) {
	case clientgotesting.CreateActionImpl:
		manager = a.CreateOptions.FieldManager
	case clientgotesting.UpdateActionImpl:
		manager = a.UpdateOptions.FieldManager
	}
	actual := WriteOptions{}
	if o.FieldOwner != "" {
		actual.FieldOwner = manager
	}
	if o.DryRun != nil {
		actual.DryRun = new(isDryRun(dryRunOf(action)))
	}
	return cmp.Diff(o, actual)
}

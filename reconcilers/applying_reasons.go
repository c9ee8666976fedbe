package reconcilers

import (
	"slices"

	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/resourcestate"
)

// reason says which fields the apply has changed, and why, after what stays. That may be empty.
func (a *applyCall[Type]) reason(wanted managedfields.Configuration, before, after Type, stays string) string {
	changes := a.changes(wanted, before, after)
	if stays == "" {
		return changes
	}
	return "it " + stays + "; " + changes
}

// changes says which fields the apply has changed, and why.
func (a *applyCall[Type]) changes(wanted managedfields.Configuration, before, after Type) string {
	was, err := contentOf(before)
	is, afterErr := contentOf(after)
	if err != nil || afterErr != nil {
		return "it differs"
	}
	changes := managedfields.Changes(wanted, was, is, before.GetManagedFields(), a.owner)
	if len(changes) == 0 {
		// An admission webhook changes other fields than those that are desired.
		return "it differs"
	}
	return message.List(changes, maxLogged)
}

// contest returns which of the fields that are wanted others have changed in actual.
func (a *applyCall[Type]) contest(wanted managedfields.Configuration, actual Type) (c resourcestate.Contest) {
	there, err := contentOf(actual)
	if err != nil {
		return c
	}
	for _, loss := range managedfields.Losses(wanted, there, actual.GetManagedFields(), a.owner) {
		c.Fields, c.Managers = append(c.Fields, loss.Path), append(c.Managers, loss.Managers...)
	}
	slices.Sort(c.Managers)
	c.Managers = slices.Compact(c.Managers)
	return c
}

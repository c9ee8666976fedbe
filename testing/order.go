package testing

import (
	"slices"
	"strings"
	"sync"

	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What entries of a journal start with that are not about writes.
const (
	eventEntry = "event "
	trackEntry = "track "
)

// journal has a line for each thing done through a config, in the order it was done.
type journal struct {
	mu    sync.Mutex
	lines []string
}

// add adds a line. A nil journal keeps none.
func (j *journal) add(line string) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

// comparable returns the lines that expected speaks about: all writes, and events and tracks if it has any.
func (j *journal) comparable(expected []string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := slices.Clone(j.lines)
	for _, optional := range []string{eventEntry, trackEntry} {
		has := func(line string) bool { return strings.HasPrefix(line, optional) }
		if !slices.ContainsFunc(expected, has) {
			lines = slices.DeleteFunc(lines, has)
		}
	}
	return lines
}

// writeEntry is the line about a write to the named object.
func writeEntry(action Action, name string) string {
	kind := action.GetResource().Resource
	if sub := action.GetSubresource(); sub != "" {
		kind += "/" + sub
	}
	line := action.GetVerb() + " " + kind + " " + targetOf(action.GetNamespace(), name)
	if isDryRun(dryRunOf(action)) {
		line += " (dry run)"
	}
	return line
}

func targetOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// nameOrPattern returns the name of an object to be created. Of one to be generated there is no more to say than how it
// starts.
func nameOrPattern(obj client.Object) string {
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		return obj.GetGenerateName() + "*"
	}
	return obj.GetName()
}

// dryRunOf returns the option of a call that makes it a dry run.
func dryRunOf(action Action) []string {
	switch a := action.(type) {
	case clientgotesting.CreateActionImpl:
		return a.CreateOptions.DryRun
	case clientgotesting.UpdateActionImpl:
		return a.UpdateOptions.DryRun
	case clientgotesting.PatchActionImpl:
		return a.PatchOptions.DryRun
	case ApplyActionImpl:
		return a.GetPatchOptions().DryRun
	case clientgotesting.DeleteActionImpl:
		return a.DeleteOptions.DryRun
	case clientgotesting.DeleteCollectionActionImpl:
		return a.DeleteOptions.DryRun
	default:
		return nil
	}
}

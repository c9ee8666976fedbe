package recording

import (
	"slices"
	"strings"
	"sync"

	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// Prefixes of lines of a journal that are not about writes.
const (
	eventPrefix = "event "
	trackPrefix = "track "
)

// Journal has a line for each thing done through a config, in the order it was done.
type Journal struct {
	mu    sync.Mutex
	lines []string
}

// add adds a line. A nil journal keeps none.
func (j *Journal) add(line string) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

// addEvent adds the line about an event.
func (j *Journal) addEvent(event Event) {
	about := event.Regarding
	j.add(eventPrefix + event.Reason + " " + about.Kind + " " + objects.Path(about.Namespace, about.Name))
}

// Comparable returns the lines that expected speaks about: all writes, and events and tracks if expected has any.
func (j *Journal) Comparable(expected []string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := slices.Clone(j.lines)
	for _, prefix := range []string{eventPrefix, trackPrefix} {
		has := func(line string) bool { return strings.HasPrefix(line, prefix) }
		if !slices.ContainsFunc(expected, has) {
			lines = slices.DeleteFunc(lines, has)
		}
	}
	return lines
}

// writeLine is the line about a write to the named object.
func writeLine(action clientgotesting.Action, name string) string {
	kind := action.GetResource().Resource
	if sub := action.GetSubresource(); sub != "" {
		kind += "/" + sub
	}
	line := action.GetVerb() + " " + kind + " " + objects.Path(action.GetNamespace(), name)
	if OptionsOf(action).DryRun {
		line += " (dry run)"
	}
	return line
}

// nameOrPattern returns the name of an object to be created, or the prefix of a name to be generated with a star.
func nameOrPattern(obj client.Object) string {
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		return obj.GetGenerateName() + "*"
	}
	return obj.GetName()
}

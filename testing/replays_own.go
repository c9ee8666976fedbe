package testing

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/recording"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// writes are lines of journals, by config.
type writes map[string][]string

// writesOf returns the writes in journals.
func writesOf(journals map[string]*recording.Journal) writes {
	w := writes{}
	for name, journal := range journals {
		w[name] = journal.Comparable(nil)
	}
	return w
}

// writes returns the writes of the row, or nil if other servers than that of the replays may have led to them.
func (r *caseRun) writes() writes {
	journals := map[string]*recording.Journal{"": r.expect.made().Journal}
	for name, c := range r.additional {
		journals[name] = c.made().Journal
	}
	for _, c := range r.all() {
		if c.made().Store == nil {
			return nil
		}
	}
	return writesOf(journals)
}

// noteFirst notes the writes of the first run.
func (r *replayed) noteFirst(a *begun) {
	if r.first == nil {
		r.first = writesOf(a.journals)
	}
}

// compareOwn fails the test if the row's own run made other writes than the first run without a fault, which has
// another instance of the code.
func (r *replayed) compareOwn(t *testing.T) {
	t.Helper()
	if r.own == nil || r.ofNode && hasDefaults(r.resource()) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.own)) {
		own, first := r.comparable(r.own[name]), r.comparable(r.first[name])
		if slices.Equal(own, first) {
			continue
		}
		r.row.origin.Fail(t, words.Failure{
			Headline: "without a fault, a new instance of the code makes other writes than that of the row",
			Details: fmt.Sprintf("  the row:      %s\n  new instance: %s", listOf(own), listOf(first)) + `
So something outlives the instance: a variable of a package or of the test, or a service that the code calls. Make it
in the factory or in Prepare, or list the service in Externals. To leave it as it is, set:
  Replays: rtesting.NoReplays("what outlives the instance"),`,
		})
		return
	}
}

// comparable returns writes in order, since those of parallel branches have none. The status of the resource of a node
// is left out: a root writes it, and there is one in replays alone.
func (r *replayed) comparable(lines []string) []string {
	lines = slices.Clone(lines)
	if r.ofNode {
		resource := r.resource()
		kind, err := objects.KindOf(resource, r.expect.Scheme)
		status := " " + kind.Kind + "/status " + objects.Path(resource.GetNamespace(), resource.GetName())
		lines = slices.DeleteFunc(lines, func(line string) bool {
			return err == nil && strings.HasSuffix(line, status)
		})
	}
	slices.Sort(lines)
	return lines
}

// resource is that of a node.
func (r *replayed) resource() client.Object { return r.expect.GivenObjects[r.expect.how.Reconciled] }

// hasDefaults reports whether a root completes a resource: the node of a row gets it as it is given.
func hasDefaults(resource client.Object) bool {
	_, has := reflect.TypeOf(resource).MethodByName("Default")
	return has
}

// listOf returns lines in one.
func listOf(lines []string) string {
	if len(lines) == 0 {
		return "no writes"
	}
	return strings.Join(lines, " · ")
}

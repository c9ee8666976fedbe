package fidelity

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/testing/internal/registry/registrytest"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

var update = flag.Bool("update", false, "write testdata/answers.txt")

var plane = controlplanetest.Shared{Real: "answers of kube-apiserver are compared", Options: controlplane.Options{
	CRDs: Definitions(), GarbageCollection: true, NamespaceDeletion: true,
}}

func TestMain(m *testing.M) {
	os.Exit(plane.Main(m))
}

const answersFile = "testdata/answers.txt"

// ask runs all checks, several at a time.
func ask(t *testing.T, workers int, newCluster func() (Cluster, error)) Answers {
	t.Helper()
	answers := Ask(t.Context(), workers, newCluster)
	if len(answers) != len(checks) {
		t.Errorf("%d checks have %d names", len(checks), len(answers))
	}
	return answers
}

// TestRealServer shows that the recorded answers are those of a real API server.
func TestRealServer(t *testing.T) {
	t.Parallel()
	server := realServer{plane.Config(t)}
	real := ask(t, 40, func() (Cluster, error) { return server, nil })
	if *update {
		if err := os.WriteFile(answersFile, []byte(real.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(Recorded(), real); diff != "" {
		t.Errorf("the recorded answers are not current, run again with -update (-recorded, +real):\n%s", diff)
	}
}

// TestStore shows that the store answers as a real API server does, but for the known differences.
func TestStore(t *testing.T) {
	t.Parallel()
	skipOnUpdate(t)
	recorded := Recorded()
	memory := ask(t, 2, memories(t, store.Options{ManagedFields: true}))
	Compare(t, recorded, memory, knownDifferences)
	if testing.Verbose() {
		fakes := ask(t, 2, func() (Cluster, error) { return newFakeClient(), nil })
		t.Log(table(recorded, memory, fakes))
	}
}

// TestStoreByDefault shows that a store does so, too, if it has managed fields for what was applied alone.
func TestStoreByDefault(t *testing.T) {
	t.Parallel()
	skipOnUpdate(t)
	known := maps.Clone(knownDifferences)
	for _, name := range []string{"of create, update and patch", "of status", "reset", "sent by an update"} {
		known["managed fields: "+name] = "there are none"
	}
	Compare(t, Recorded(), ask(t, 2, memories(t, store.Options{})), known)
}

// TestManagedFields shows that in a store the same managers own the fields of objects of all built-in kinds.
func TestManagedFields(t *testing.T) {
	t.Parallel()
	cluster, err := memories(t, store.Options{ManagedFields: true})()
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Connect()
	if err != nil {
		t.Fatal(err)
	}
	got := registrytest.CreateManaged(t, c, "default")
	Compare(t, registrytest.CreatedManaged(t), got, nil)
}

// skipOnUpdate skips a comparison with answers that are being written.
func skipOnUpdate(t *testing.T) {
	t.Helper()
	if *update {
		t.Skip("the answers are being written")
	}
}

// table shows the answers side by side, "=" for that of the real API server.
func table(recorded, memory, fakes Answers) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\ncheck\treal server\tstore\tfake client\n")
	var equal, equalFakes int
	for _, c := range checks {
		store, equals := compared(recorded[c.name], memory[c.name])
		equal += equals
		fake, equals := compared(recorded[c.name], fakes[c.name])
		equalFakes += equals
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.name, short(recorded[c.name]), store, fake)
	}
	fmt.Fprintf(w, "equal\t%d\t%d\t%d\n", len(checks), equal, equalFakes)
	w.Flush()
	return out.String()
}

func compared(real, other string) (shown string, equal int) {
	if real == other {
		return "=", 1
	}
	return short(other), 0
}

// short cuts an answer that is too long for a table.
func short(answer string) string {
	const width = 60
	if len(answer) <= width {
		return answer
	}
	return answer[:width-1] + "…"
}

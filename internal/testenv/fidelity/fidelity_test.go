package fidelity_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/store"
)

var update = flag.Bool("update", false, "write testdata/answers.txt")

var plane = controlplanetest.Shared{Options: controlplane.Options{
	CRDs: definitions(), GarbageCollection: true, NamespaceDeletion: true,
}}

func TestMain(m *testing.M) {
	os.Exit(plane.Main(m))
}

const answersFile = "testdata/answers.txt"

// checks begin with those for which a control plane takes its time.
var checks = slices.Concat(namespaceChecks, definitionChecks, identityChecks, deletionChecks, schemaChecks, builtInChecks,
	callChecks, applyChecks, watchChecks, operatorChecks, lifecycleChecks, strictChecks)

// answers are what checks answered, by their names.
type answers map[string]string

// runs counts what needs names of its own on the API server, which tests that run again share.
var runs atomic.Int64

// ask runs all checks, several at a time.
func ask(ctx context.Context, t *testing.T, workers int, newCluster func() (cluster, error)) answers {
	t.Helper()
	type numbered struct {
		check
		number int
	}
	queue := make(chan numbered)
	result, mu := answers{}, sync.Mutex{}
	run := runs.Add(1)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for c := range queue {
				answer := c.answer(ctx, newCluster, fmt.Sprintf("check%02d%03d", run, c.number))
				mu.Lock()
				result[c.name] = answer
				mu.Unlock()
			}
		})
	}
	for number, c := range checks {
		queue <- numbered{c, number}
	}
	close(queue)
	wg.Wait()
	if len(result) != len(checks) {
		t.Errorf("%d checks have %d names", len(checks), len(result))
	}
	return result
}

// readAnswers reads the recorded answers: a line each, which begins with the name of the check in brackets.
func readAnswers(t *testing.T) answers {
	t.Helper()
	raw, err := os.ReadFile(answersFile)
	if err != nil {
		t.Fatal(err)
	}
	recorded := answers{}
	for line := range strings.Lines(string(raw)) {
		name, answer, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "["), "] ")
		if !ok {
			t.Fatalf("%s: no answer in line %q", answersFile, line)
		}
		recorded[name] = answer
	}
	return recorded
}

func writeAnswers(t *testing.T, all answers) {
	t.Helper()
	var lines []string
	for name, answer := range all {
		lines = append(lines, fmt.Sprintf("[%s] %s\n", name, answer))
	}
	slices.Sort(lines)
	if err := os.WriteFile(answersFile, []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestRealServer shows that the recorded answers are those of a real API server.
func TestRealServer(t *testing.T) {
	t.Parallel()
	server := realServer{plane.Config(t)}
	real := ask(t.Context(), t, 40, func() (cluster, error) { return server, nil })
	if *update {
		writeAnswers(t, real)
		return
	}
	if diff := cmp.Diff(readAnswers(t), real); diff != "" {
		t.Errorf("the recorded answers are not current, run again with -update (-recorded, +real):\n%s", diff)
	}
}

// TestStore shows that the store answers as a real API server does, but for the known differences.
func TestStore(t *testing.T) {
	t.Parallel()
	skipOnUpdate(t)
	recorded := readAnswers(t)
	if len(recorded) != len(checks) {
		t.Errorf("%d answers are recorded for %d checks, run TestRealServer with -update", len(recorded), len(checks))
	}
	memory := ask(t.Context(), t, 2, memories(t, store.Options{ManagedFields: true}))
	compare(t, recorded, memory, knownDifferences)
	if testing.Verbose() {
		fakes := ask(t.Context(), t, 2, func() (cluster, error) { return newFakeClient(), nil })
		t.Log(table(recorded, memory, fakes))
	}
}

// TestStoreByDefault shows that a store does so, too, if it has managed fields for what was applied alone.
func TestStoreByDefault(t *testing.T) {
	t.Parallel()
	skipOnUpdate(t)
	recorded, known := readAnswers(t), maps.Clone(knownDifferences)
	for _, name := range []string{"of create, update and patch", "of status", "reset", "sent by an update"} {
		known["managed fields: "+name] = "there are none"
	}
	compare(t, recorded, ask(t.Context(), t, 2, memories(t, store.Options{})), known)
}

// skipOnUpdate skips a comparison with answers that are being written.
func skipOnUpdate(t *testing.T) {
	t.Helper()
	if *update {
		t.Skip("the answers are being written")
	}
}

// compare fails the test for each difference that is not known, and for each that is none.
func compare(t *testing.T, recorded, memory answers, differences map[string]string) {
	t.Helper()
	for _, c := range checks {
		reason, known := differences[c.name]
		switch same := memory[c.name] == recorded[c.name]; {
		case same && known:
			t.Errorf("%s: no longer a difference, it was: %s", c.name, reason)
		case !same && !known:
			t.Errorf("%s:\nreal  %s\nstore %s", c.name, recorded[c.name], memory[c.name])
		}
	}
	for name := range differences {
		if _, ok := recorded[name]; !ok {
			t.Errorf("%s: no such check", name)
		}
	}
}

// table shows the answers side by side, "=" for that of the real API server.
func table(recorded, memory, fakes answers) string {
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

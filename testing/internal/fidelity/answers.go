package fidelity

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checks begin with those for which a control plane takes its time.
var checks = slices.Concat(smokeChecks, definitionChecks, builtInChecks, operatorChecks, lifecycleChecks)

// Answers are what checks answered, by their names.
type Answers map[string]string

// runs counts what needs names of its own on an API server, which tests that run again share.
var runs atomic.Int64

// Ask runs all checks, as many at a time as there are workers, each on a new cluster. Checks do not disturb each other:
// the new cluster may be the same one for all.
func Ask(ctx context.Context, workers int, newCluster func() (Cluster, error)) Answers {
	type numbered struct {
		check
		number int
	}
	queue := make(chan numbered)
	answers, mu := Answers{}, sync.Mutex{}
	run := runs.Add(1)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for c := range queue {
				answer := c.answer(ctx, newCluster, fmt.Sprintf("check%02d%03d", run, c.number))
				mu.Lock()
				answers[c.name] = answer
				mu.Unlock()
			}
		})
	}
	for number, c := range checks {
		queue <- numbered{c, number}
	}
	close(queue)
	wg.Wait()
	return answers
}

//go:embed testdata/answers.txt
var recorded string

// Recorded returns what a real API server answered.
func Recorded() Answers {
	answers := Answers{}
	for line := range strings.Lines(recorded) {
		name, answer, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "["), "] ")
		answers[name] = answer
	}
	return answers
}

// String returns the answers as they are recorded: a line each, which begins with the name of the check in brackets.
func (a Answers) String() string {
	var lines []string
	for name, answer := range a {
		lines = append(lines, fmt.Sprintf("[%s] %s\n", name, answer))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// Compare fails the test for each answer that is not as recorded, that is missing or not recorded, and for each
// accepted difference that is none. These are reasons by the names of answers.
func Compare[T any](t testing.TB, recorded, answers map[string]T, accepted map[string]string) {
	t.Helper()
	names := slices.Collect(maps.Keys(recorded))
	names = slices.AppendSeq(names, maps.Keys(answers))
	names = slices.AppendSeq(names, maps.Keys(accepted))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		want, isRecorded := recorded[name]
		got, isAnswered := answers[name]
		reason, known := accepted[name]
		diff := cmp.Diff(want, got)
		same := isRecorded == isAnswered && diff == ""
		switch {
		case same && known:
			t.Errorf("%s: no longer a difference, it was: %s", name, reason)
		case !same && !known:
			t.Errorf("%s: recorded %t, answered %t (-recorded, +got):\n%s", name, isRecorded, isAnswered, diff)
		}
	}
}

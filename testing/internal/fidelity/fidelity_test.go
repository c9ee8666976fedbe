package fidelity

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
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

// TestServerOfRows shows that the server of rows answers as a real API server does.
func TestServerOfRows(t *testing.T) {
	t.Parallel()
	if *update {
		t.Skip("the answers are being written")
	}
	Compare(t, Recorded(), ask(t, 2, newRows(t)), nil)
}

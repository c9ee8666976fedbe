package vet_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/cmd/espalier/vet"
)

// The program of the tests is the -vettool of go vet, too.
func TestMain(m *testing.M) {
	vet.Main()
	os.Exit(m.Run())
}

// runGoVet returns what the analyzers say of packages that are seen from the folder.
func runGoVet(t *testing.T, folder string, arguments ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "go", append([]string{"vet", "-vettool=" + self}, arguments...)...)
	command.Dir = folder
	output := &bytes.Buffer{}
	command.Stdout, command.Stderr = output, output
	if err := command.Run(); err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	return output.String()
}

// A finding is a line of what go vet prints.
var findingLine = regexp.MustCompile(`^(\S+\.go):(\d+):\d+: (.*)$`)

// The comments "want" in the files of testdata have a regular expression in backquotes, as those of analysistest have.
// That package would type-check all of Kubernetes from its sources for each analyzer. Go vet takes it from the cache,
// and is how the analyzers are run.
var wantComment = regexp.MustCompile("// want `(.*)`$")

func TestPlantedBugsAreFound(t *testing.T) {
	for _, analyzer := range slices.Concat(vet.Analyzers, vet.Heuristics) {
		t.Run(analyzer.Name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join("testdata", analyzer.Name)
			wanted := readWanted(t, folder)
			if len(wanted) < 5 {
				t.Errorf("%s has %d planted bugs, want five or more", folder, len(wanted))
			}
			for line := range strings.Lines(runGoVet(t, ".", "-"+analyzer.Name, "./"+folder)) {
				line = strings.TrimSpace(line)
				if strings.HasPrefix(line, "#") {
					continue
				}
				found := findingLine.FindStringSubmatch(line)
				if found == nil {
					t.Errorf("go vet says: %s", line)
					continue
				}
				at := filepath.Base(found[1]) + ":" + found[2]
				if want, ok := wanted[at]; !ok || !want.MatchString(found[3]) {
					t.Errorf("unwanted: %s", line)
					continue
				}
				delete(wanted, at)
			}
			for at, want := range wanted {
				t.Errorf("%s: want a finding that matches %q, got none", at, want)
			}
		})
	}
}

// readWanted returns what the comments of the files want, by file and line.
func readWanted(t *testing.T, folder string) map[string]*regexp.Regexp {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]*regexp.Regexp{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(content), "\n") {
			if want := wantComment.FindStringSubmatch(line); want != nil {
				wanted[filepath.Base(file)+":"+strconv.Itoa(i+1)] = regexp.MustCompile(want[1])
			}
		}
	}
	return wanted
}

func TestNothingIsReportedOfRightCode(t *testing.T) {
	if testing.Short() {
		t.Skip("analyzes modules of this repository, and packages of controller-runtime")
	}
	for _, tc := range []struct{ folder, packages string }{
		{".", "./..."},
		{"examples/demo", "./..."},
		{"examples/platform/delivery", "./..."},
		{".", "sigs.k8s.io/controller-runtime/examples/..."},
		{".", "sigs.k8s.io/controller-runtime/pkg/builder/..."},
	} {
		t.Run(tc.folder+" "+tc.packages, func(t *testing.T) {
			if got := runGoVet(t, filepath.Join("../../..", tc.folder), tc.packages); got != "" {
				t.Errorf("want no finding, got:\n%s", got)
			}
		})
	}
}

// The page has a section for each analyzer: its name, what it says of itself, and an example.
func TestThePageSaysWhatTheAnalyzersSay(t *testing.T) {
	content, err := os.ReadFile("../../../docs/vet.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(content)), " ")
	for _, analyzer := range slices.Concat(vet.Analyzers, vet.Heuristics) {
		summary, why, _ := strings.Cut(analyzer.Doc, "\n\n")
		summary = strings.ToUpper(summary[:1]) + summary[1:] + "."
		want := strings.Join(strings.Fields("## "+analyzer.Name+" "+summary+" "+why+" ```go"), " ")
		if !strings.Contains(page, want) {
			t.Errorf("docs/vet.md must have, with any line breaks:\n%s", want)
		}
	}
}

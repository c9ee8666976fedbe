package vet_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/command"
	"github.com/espalier-dev/espalier/cmd/espalier/vet"
)

// runVet returns what the analyzers say of packages that are seen from the folder, by the name of the analyzer.
func runVet(t *testing.T, folder string, arguments ...string) map[string][]finding {
	t.Helper()
	t.Chdir(folder)
	out := &bytes.Buffer{}
	c := command.New(out, t.Output())
	c.SetArgs(append([]string{"vet", "-json"}, arguments...))
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var packages map[string]map[string][]finding
	if err := json.Unmarshal(out.Bytes(), &packages); err != nil {
		t.Fatalf("what is printed is no JSON: %v:\n%s", err, out)
	}
	all := map[string][]finding{}
	for _, byAnalyzer := range packages {
		for name, found := range byAnalyzer {
			all[name] = append(all[name], found...)
		}
	}
	return all
}

// The comments "want" in the files of testdata have a regular expression in backquotes, as those of analysistest have.
// That package would type-check all of Kubernetes from its sources for each analyzer.
var wantComment = regexp.MustCompile("// want `(.*)`$")

func TestPlantedBugsAreFound(t *testing.T) {
	all := slices.Concat(vet.Analyzers, vet.Heuristics)
	var arguments []string
	for _, analyzer := range all {
		arguments = append(arguments, "-"+analyzer.Name)
	}
	for _, analyzer := range all {
		arguments = append(arguments, "./testdata/"+analyzer.Name, "./testdata/"+analyzer.Name+"shapes")
	}
	found := runVet(t, ".", arguments...)
	check := func(analyzer *analysis.Analyzer, name string) {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join("testdata", name)
			wanted := readWanted(t, folder)
			if len(wanted) < 5 {
				t.Errorf("%s has %d planted bugs, want five or more", folder, len(wanted))
			}
			for _, f := range found[analyzer.Name] {
				file, line, _ := strings.Cut(f.At, ":")
				line, _, _ = strings.Cut(line, ":")
				if !strings.HasSuffix(filepath.Dir(file), folder) {
					continue
				}
				at := filepath.Base(file) + ":" + line
				if want, ok := wanted[at]; !ok || !want.MatchString(f.Message) {
					t.Errorf("unwanted: %s: %s", f.At, f.Message)
					continue
				}
				delete(wanted, at)
			}
			for at, want := range wanted {
				t.Errorf("%s: want a finding that matches %q, got none", at, want)
			}
		})
	}
	for _, analyzer := range all {
		check(analyzer, analyzer.Name)
		// These were written before anybody looked at how the analyzers find things.
		check(analyzer, analyzer.Name+"shapes")
	}
}

// finding is one that the command prints as JSON.
type finding struct {
	At      string `json:"posn"`
	Message string `json:"message"`
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
		{"examples/shop/plugins", "./..."},
		{".", "sigs.k8s.io/controller-runtime/examples/..."},
		{".", "sigs.k8s.io/controller-runtime/pkg/builder/..."},
	} {
		t.Run(tc.folder+" "+tc.packages, func(t *testing.T) {
			for analyzer, found := range runVet(t, filepath.Join("../../..", tc.folder), tc.packages) {
				for _, f := range found {
					t.Errorf("%s: %s finds %q, want no finding", f.At, analyzer, f.Message)
				}
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

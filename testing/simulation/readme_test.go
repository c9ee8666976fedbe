package simulation_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/testing/simulation"
)

// planted is set for a test binary in which the tests with planted bugs fail.
const planted = "SIMULATION_PLANTED"

func TestPlantedFault(t *testing.T) {
	if os.Getenv(planted) != "" {
		testBackup(t)
	}
}

func TestPlantedSeeds(t *testing.T) {
	if os.Getenv(planted) == "" {
		return
	}
	simulation.RunSeeds(t, simulation.Options{Operator: setUp}, func(w *simulation.World) {
		w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "db", Labels: map[string]string{"backup": "once"},
		}})
		w.Rest()
		jobs := &batchv1.JobList{}
		w.List(jobs)
		if len(jobs.Items) != 1 {
			w.Errorf("there are %d backups", len(jobs.Items))
		}
	})
}

// runPlanted runs a test of this binary that fails, given as the flag -test.run has it, and returns what it prints. How far
// a slow one is, which it says on the standard error output, is no part of that.
func runPlanted(t *testing.T, test string, args ...string) string {
	t.Helper()
	// A busy machine tries few faults in a minute, and few smaller stories.
	args = append([]string{"-test.run=" + test, "-simulation.budget=0", "-simulation.shrinking=0"}, args...)
	command := exec.CommandContext(t.Context(), os.Args[0], args...)
	command.Env = append(os.Environ(), planted+"=true")
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err == nil {
		t.Errorf("%s does not fail:\n%s", test, out)
	}
	return string(out)
}

// smallPlan is a plan with one fault and nothing else.
var smallPlan = regexp.MustCompile(`(?m)^ *simulation\.Plan{\n\s*Faults: \[\]simulation\.Fault{\n.*\n\s*},\n\s*}$`)

// TestPlantedBugIsFound has faults and seeds find the bug of the page README.md.
func TestPlantedBugIsFound(t *testing.T) {
	for _, test := range []string{"TestPlantedFault", "TestPlantedSeeds"} {
		t.Run(test, func(t *testing.T) {
			t.Parallel()
			out := runPlanted(t, "^"+test+"$")
			if !strings.Contains(out, "there are 2 backups") || !smallPlan.MatchString(out) {
				t.Errorf("it prints:\n%s", out)
			}
		})
	}
}

// TestReadme sees that the page shows the operator and the test of this package, and lines that the test prints.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("backup_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, functions, _ := strings.Cut(string(code), "// setUp adds")
	for _, function := range strings.SplitAfter("// setUp adds"+functions, "\n}\n") {
		if !strings.Contains(string(page), strings.TrimSpace(strings.ReplaceAll(function, "testBackup", "TestBackup"))) {
			t.Errorf("README.md does not show\n%s", function)
		}
	}
	// The page shows one fault. Of all, only the first three that fail would be told, in no fixed order.
	out := lines(runPlanted(t, "^TestPlantedFault$/^DiesBefore_update"))
	shown := regexp.MustCompile("(?s)```text\n(.*?)```").FindStringSubmatch(string(page))
	if shown == nil {
		t.Fatal("README.md has no block of text")
	}
	for line := range lines(shown[1]) {
		if line != "..." && !out[line] {
			t.Errorf("the test does not print the line %q of README.md", line)
		}
	}
}

// place is where a test failed, or when something happened.
var place = regexp.MustCompile(`^\s*((\w+\.go:\d+:|\d\d:\d\d:\d\d\.\d{3}) )+`)

// lines returns the lines of a text without the space around them, durations of tests, places in
// the code and times.
func lines(text string) map[string]bool {
	set := map[string]bool{}
	for line := range strings.Lines(regexp.MustCompile(`\(\d+\.\d+s\)`).ReplaceAllString(text, "")) {
		line = strings.ReplaceAll(line, "TestPlantedFault", "TestBackup")
		set[strings.TrimSpace(place.ReplaceAllString(line, ""))] = true
	}
	return set
}

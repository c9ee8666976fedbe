package main

import (
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	got, err := parse("# a comment\n\nrace ...\nfaults engine TestA|TestB\n",
		"engine: TestC: it needs: etcd\nfidelity: all tests on the control plane: answers are compared\n")
	want := table{real: []string{"fidelity"}, lines: []line{
		{step: "real", packages: "engine", tests: []string{"TestC"}},
		{step: "race", packages: "..."},
		{step: "faults", packages: "engine", tests: []string{"TestA", "TestB"}},
	}}
	if !reflect.DeepEqual(got, want) || err != nil {
		t.Errorf("parsed as %v, %v, want %v", got, err, want)
	}
	for text, want := range map[string]string{
		"race":                "the line \"race\" is not STEP",
		"race a b c":          "is not STEP",
		"faults engine/... T": "it has to be one package",
	} {
		if _, err := parse(text, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one with %q", text, err, want)
		}
	}
}

func TestParseWhatNeedsAServer(t *testing.T) {
	if _, err := parse("", "engine: TestC\n"); err == nil || !strings.Contains(err.Error(), "is not PACKAGE: TEST: REASON") {
		t.Errorf("the error is %v, want one about the form of the line", err)
	}
}

var packages = []testedPackage{
	{module: ".", folder: ".", tests: []string{"TestRoot"}},
	{module: ".", folder: "engine", tests: []string{"TestA", "TestB", "TestCost"}, allocates: []string{"TestCost"}},
	{module: "tool", folder: "tool", tests: []string{"TestTool"}},
	{module: "tool", folder: "tool/vet", tests: []string{"TestSlow"}, allocates: []string{"TestSlow"}},
}

func TestCalls(t *testing.T) {
	table := table{lines: []line{
		{"race", "...", nil}, {"plain", "tool/...", nil}, {"faults", "engine", []string{"TestB"}},
	}}
	if wrong := table.check(packages); len(wrong) > 0 {
		t.Errorf("the table is wrong: %q", wrong)
	}
	for steps, want := range map[string][]string{
		"race":             {". -skip=^(TestB|TestCost)$ ./ ./engine"},
		"race,allocations": {". -skip=^(TestB)$ ./ ./engine"},
		"faults":           {". -run=^(TestB)$ ./engine"},
		"plain,allocations": {
			". -run=^(TestCost)$ ./engine",
			"tool . ./vet",
		},
		"race,plain,faults,allocations": {". ./ ./engine", "tool . ./vet"},
	} {
		if got := table.calls(packages, strings.Split(steps, ",")); !slices.Equal(got, want) {
			t.Errorf("the calls of %s are %q, want %q", steps, got, want)
		}
	}
	if !table.has("faults") || !table.has("allocations") || table.has("stories") {
		t.Error("the steps of the table are not race, plain, faults and allocations")
	}
}

func TestWhatIsWrong(t *testing.T) {
	twice := append(slices.Clone(packages), testedPackage{module: ".", folder: "other", tests: []string{"TestB"}})
	for _, tc := range []struct {
		name     string
		lines    []line
		packages []testedPackage
		real     []string
		want     []string
	}{
		{"no step", []line{{"race", "engine", nil}, {"plain", "tool/...", nil}}, packages, nil, []string{
			".: the package has tests, and no step",
		}},
		{"no package", []line{{"race", "...", nil}, {"plain", "gone/...", nil}}, packages, nil, []string{
			"gone/...: no package with tests is there",
		}},
		{"no test", []line{{"race", "...", nil}, {"faults", "engine", []string{"TestGone"}}}, packages, nil, []string{
			"engine: there is no test TestGone",
		}},
		{"no server", []line{{"race", "...", nil}}, packages, []string{"engine"}, []string{
			`engine: its tests need kube-apiserver, and its step "race" does not have one`,
		}},
		{"one name", []line{{"race", "...", nil}, {"faults", "engine", []string{"TestB"}}}, twice, nil, []string{
			"engine: TestB is of step faults, and other has a test of that name of step race: rename one",
		}},
	} {
		table := table{lines: tc.lines, real: tc.real}
		if got := table.check(tc.packages); !slices.Equal(got, tc.want) {
			t.Errorf("%s: wrong is %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestTestsOfAFile(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "a_test.go", `package a
		func TestMain(m *testing.M) {}
		func TestA(t *testing.T) { testing.AllocsPerRun(1, nil) }
		func TestB(t *testing.T) { if raceDetector { f(raceDetector) } }
		func ExampleC() {}
		func FuzzD(f *testing.F) {}
		func (x) TestE(t *testing.T) {}
		func helper() {}`, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := testedPackage{}
	got.add(file)
	want := testedPackage{tests: []string{"TestA", "TestB", "ExampleC", "FuzzD"}, allocates: []string{"TestA", "TestB"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the tests of the file are %v, want %v", got, want)
	}
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "usage:"},
		{[]string{".", "run"}, "usage:"},
		{[]string{t.TempDir(), "check"}, "steps.txt: no such file"},
	} {
		if err := run(tc.args); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: the error is %v, want one with %q", tc.args, err, tc.want)
		}
	}
}

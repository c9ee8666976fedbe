// Command steps says which tests a step of .ci/run or of "make nightly" runs, by the table test/steps.txt. Each test
// has one step:
//
//	steps FOLDER check             compares the table with the packages and tests of all modules below the folder
//	steps FOLDER run STEP[,STEP…]  prints a line for each call of go test: the module, and the arguments
//
// A line of the table is "STEP PACKAGES [TESTS]". PACKAGES is the folder of a package, seen from FOLDER, or with /...
// all packages below it. The step of a package is that of the line with the longest PACKAGES. A line with TESTS, names
// with | between them, gives these tests of one package another step. Lines that begin with # are comments. In a
// package of the step "race", the step of a test that calls testing.AllocsPerRun or looks at the constant raceDetector
// is "allocations": such a test shows less with the race detector. The step of a test in test/real.txt is "real"; a
// package all of whose tests on a control plane are there has to be of a step that gives it one, "real" or "nightly".
//
// It exits with 1 if the table is wrong: a package without a step, a line that matches nothing, a test that does not
// exist, a test of another step whose name another package of the same module has, which go test would run or skip
// too.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "steps:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	wellFormed := len(args) == 2 && args[1] == "check" || len(args) == 3 && args[1] == "run"
	if !wellFormed {
		return fmt.Errorf("usage: steps FOLDER check, or steps FOLDER run STEP[,STEP…]")
	}
	source, err := os.ReadFile(filepath.Join(args[0], tableFile))
	if err != nil {
		return err
	}
	realTests, err := os.ReadFile(filepath.Join(args[0], realFile))
	if err != nil {
		return err
	}
	table, err := parse(string(source), string(realTests))
	if err != nil {
		return err
	}
	packages, err := list(args[0])
	if err != nil {
		return err
	}
	if wrong := table.check(packages); len(wrong) > 0 {
		return fmt.Errorf("%s is wrong:\n%s", tableFile, strings.Join(wrong, "\n"))
	}
	if args[1] == "check" {
		return nil
	}
	steps := strings.Split(args[2], ",")
	for _, step := range steps {
		if !table.has(step) {
			return fmt.Errorf("%s has no step %q", tableFile, step)
		}
	}
	for _, call := range table.calls(packages, steps) {
		fmt.Println(call)
	}
	return nil
}

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The table, and the tests that need kube-apiserver, seen from the folder of the repository.
const (
	tableFile = "test/steps.txt"
	realFile  = "test/real.txt"
)

const (
	race = "race"
	// allocations is the step of tests that show less with the race detector.
	allocations = "allocations"
	// real is the step of tests that need kube-apiserver, and nightly has them, too.
	real, nightly = "real", "nightly"
	// allReal stands in test/real.txt for all tests of a package that are on a control plane.
	allReal = "all tests on the control plane"
)

// line is a line of the table.
type line struct {
	step, packages string
	// tests are empty in a line that gives whole packages a step.
	tests []string
}

type table struct {
	lines []line
	// real are the packages all of whose tests on a control plane need kube-apiserver.
	real []string
}

// parse reads the table, and the list of tests that need kube-apiserver.
func parse(source, realTests string) (table, error) {
	var read table
	for text := range strings.Lines(realTests) {
		parts := strings.SplitN(text, ": ", 3)
		if len(parts) != 3 {
			return table{}, fmt.Errorf("%s: the line %q is not PACKAGE: TEST: REASON", realFile, text)
		}
		if parts[1] == allReal {
			read.real = append(read.real, parts[0])
			continue
		}
		read.lines = append(read.lines, line{step: real, packages: parts[0], tests: []string{parts[1]}})
	}
	for text := range strings.Lines(source) {
		words := strings.Fields(text)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != 2 && len(words) != 3 {
			return table{}, fmt.Errorf("%s: the line %q is not STEP PACKAGES [TESTS]", tableFile, text)
		}
		l := line{step: words[0], packages: words[1]}
		if len(words) == 3 {
			l.tests = strings.Split(words[2], "|")
			if strings.HasSuffix(l.packages, "...") {
				return table{}, fmt.Errorf("%s: %s has tests, so it has to be one package", tableFile, l.packages)
			}
		}
		read.lines = append(read.lines, l)
	}
	return read, nil
}

// has reports whether a step has tests.
func (t table) has(step string) bool {
	return step == allocations || slices.ContainsFunc(t.lines, func(l line) bool { return l.step == step })
}

// matches reports whether a folder is among the packages of a line.
func (l line) matches(folder string) bool {
	prefix, below := strings.CutSuffix(l.packages, "...")
	if !below {
		return folder == l.packages
	}
	return prefix == "" || strings.HasPrefix(folder+"/", prefix)
}

// step returns the step of a package, empty if it has none.
func (t table) step(folder string) string {
	best := line{}
	for _, l := range t.lines {
		if l.tests == nil && l.matches(folder) && len(l.packages) > len(best.packages) {
			best = l
		}
	}
	return best.step
}

// apart returns the tests of a package that have another step than it, with their steps.
func (t table) apart(p testedPackage) map[string]string {
	apart := map[string]string{}
	if t.step(p.folder) == race {
		for _, test := range p.allocates {
			apart[test] = allocations
		}
	}
	for _, l := range t.lines {
		for _, test := range l.tests {
			if l.packages == p.folder {
				apart[test] = l.step
			}
		}
	}
	return apart
}

// check returns what is wrong with the table.
func (t table) check(packages []testedPackage) (wrong []string) {
	for _, l := range t.lines {
		if !slices.ContainsFunc(packages, func(p testedPackage) bool { return l.matches(p.folder) }) {
			wrong = append(wrong, fmt.Sprintf("%s: no package with tests is there", l.packages))
		}
	}
	for _, folder := range t.real {
		if step := t.step(folder); step != real && step != nightly {
			wrong = append(wrong,
				fmt.Sprintf("%s: its tests need kube-apiserver, and its step %q does not have one", folder, step))
		}
	}
	for _, p := range packages {
		if t.step(p.folder) == "" {
			wrong = append(wrong, p.folder+": the package has tests, and no step")
		}
		apart := t.apart(p)
		for _, test := range slices.Sorted(maps.Keys(apart)) {
			if !slices.Contains(p.tests, test) {
				wrong = append(wrong, fmt.Sprintf("%s: there is no test %s", p.folder, test))
			}
			wrong = append(wrong, t.confused(p, test, packages)...)
		}
	}
	return wrong
}

// confused returns what is wrong if a test has a step of its own: a test of the same name in another package of the
// module has another step.
func (t table) confused(p testedPackage, test string, packages []testedPackage) (wrong []string) {
	step := t.stepOf(p, test)
	for _, other := range packages {
		if other.module != p.module || !slices.Contains(other.tests, test) || t.stepOf(other, test) == step {
			continue
		}
		wrong = append(wrong, fmt.Sprintf("%s: %s is of step %s, and %s has a test of that name of step %s: rename one",
			p.folder, test, step, other.folder, t.stepOf(other, test)))
	}
	return wrong
}

// stepOf returns the step of a test.
func (t table) stepOf(p testedPackage, test string) string {
	if step, ok := t.apart(p)[test]; ok {
		return step
	}
	return t.step(p.folder)
}

// calls returns the calls of go test that run the tests of some steps, module by module: first the packages of these
// steps without the tests of other steps, then the tests of these steps in packages of others.
func (t table) calls(packages []testedPackage, steps []string) (calls []string) {
	for _, module := range modulesOf(packages) {
		var whole, some, skipped, picked []string
		for _, p := range packages {
			if p.module != module {
				continue
			}
			own := slices.Contains(steps, t.step(p.folder))
			before := len(picked)
			for test, step := range t.apart(p) {
				switch chosen := slices.Contains(steps, step); {
				case own && !chosen:
					skipped = append(skipped, test)
				case !own && chosen:
					picked = append(picked, test)
				}
			}
			if own {
				whole = append(whole, p.inModule())
			} else if len(picked) > before {
				some = append(some, p.inModule())
			}
		}
		if len(whole) > 0 {
			calls = append(calls, call(module, "-skip", skipped, whole))
		}
		if len(some) > 0 {
			calls = append(calls, call(module, "-run", picked, some))
		}
	}
	return calls
}

func call(module, flag string, tests, packages []string) string {
	words := []string{module}
	if len(tests) > 0 {
		slices.Sort(tests)
		words = append(words, fmt.Sprintf("%s=^(%s)$", flag, strings.Join(slices.Compact(tests), "|")))
	}
	return strings.Join(append(words, packages...), " ")
}

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

// stepOf returns the step of a test of a package or, without a test, of the package, empty if it has none.
func (t table) stepOf(p testedPackage, test string) string {
	best := line{}
	for _, l := range t.lines {
		if l.tests == nil && l.matches(p.folder) && len(l.packages) > len(best.packages) {
			best = l
		}
	}
	for _, l := range slices.Backward(t.lines) {
		if l.packages == p.folder && slices.Contains(l.tests, test) {
			return l.step
		}
	}
	if best.step == race && slices.Contains(p.allocates, test) {
		return allocations
	}
	return best.step
}

// check returns what is wrong with the table.
func (t table) check(packages []testedPackage) (wrong []string) {
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, l := range t.lines {
		i := slices.IndexFunc(packages, func(p testedPackage) bool { return l.matches(p.folder) })
		if i < 0 {
			report("%s: no package with tests is there", l.packages)
			continue
		}
		for _, test := range l.tests {
			if !slices.Contains(packages[i].tests, test) {
				report("%s: there is no test %s", l.packages, test)
			}
		}
	}
	for _, folder := range t.real {
		if step := t.stepOf(testedPackage{folder: folder}, ""); step != real && step != nightly {
			report("%s: its tests need kube-apiserver, and its step %q does not have one", folder, step)
		}
	}
	for _, p := range packages {
		own := t.stepOf(p, "")
		if own == "" {
			report("%s: the package has tests, and no step", p.folder)
		}
		for _, test := range p.tests {
			if step := t.stepOf(p, test); step != own {
				t.checkName(p, test, step, packages, report)
			}
		}
	}
	return wrong
}

// checkName reports what is wrong if a test has another step than its package: a test of the same name in another
// package of the module has another step.
func (t table) checkName(p testedPackage, test, step string, all []testedPackage, report func(string, ...any)) {
	for _, other := range all {
		if other.module != p.module || !slices.Contains(other.tests, test) || t.stepOf(other, test) == step {
			continue
		}
		report("%s: %s is of step %s, and %s has a test of that name of step %s: rename one",
			p.folder, test, step, other.folder, t.stepOf(other, test))
	}
}

// calls returns the calls of go test that run the tests of some steps, module by module: first the packages of these
// steps without the tests of other steps, then the tests of these steps in packages of others.
func (t table) calls(packages []testedPackage, steps []string) (calls []string) {
	byModule := map[string][]testedPackage{}
	for _, p := range packages {
		byModule[p.module] = append(byModule[p.module], p)
	}
	for _, module := range slices.Sorted(maps.Keys(byModule)) {
		var whole, some, skipped, picked []string
		for _, p := range byModule[module] {
			own := slices.Contains(steps, t.stepOf(p, ""))
			before := len(picked)
			for _, test := range p.tests {
				switch chosen := slices.Contains(steps, t.stepOf(p, test)); {
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

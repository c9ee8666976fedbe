// Command waits checks that no test waits for a time: a test waits for a fact, or it runs in a bubble of
// testing/synctest, where time is virtual and passes at once. It takes a folder, prints each wait that is wrong on a
// line, and exits with 1 if there is any.
//
// It reads the test files below the folder, except in testdata and in folders that begin with a dot. A wait is each use
// of Sleep, After, AfterFunc, NewTimer, NewTicker or Tick of the package time. It is in virtual time, and right, if
//
//  1. a function is around it that is passed to synctest.Test, or to a function of the package testing/simulation
//     whose name begins with Run;
//  2. a function is around it that is passed as a parameter which a function or method of the same package uses in
//     virtual time only, by these rules;
//  3. it is in a function or a method of the package, or in a function in the value of a variable, and all uses of
//     that are in virtual time, by these rules. There has to be one. Methods are told apart by their names alone.
//
// A function is passed, or in a value, if it is alone there, in a composite literal, or an argument of a call that
// makes the argument or the value. Uses in other packages are not seen: rule 3 is not for a function or a variable that
// a package exports to its external tests, and does not notice that another package calls a method in real time.
//
// Any other wait is in real time, also one that is only the limit of a wait for a fact. It is wrong unless it is in
// hack/tools/waits/allowed.txt, which has lines of the form
//
//	FILE: NAME: reason
//
// where FILE is the path of a test file, seen from the folder, and NAME is that of the function around the wait,
// Type.Name of a method, or the name of a variable of the package. Lines that begin with # are comments. A line of
// another form, a second one for the same function, and one that allows nothing are wrong too. Time limits of contexts
// are not checked.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const allowedFile = "hack/tools/waits/allowed.txt"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: waits FOLDER")
		os.Exit(2)
	}
	violations, err := checkFolder(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "waits:", err)
		os.Exit(2)
	}
	for _, violation := range violations {
		fmt.Println(violation)
	}
	if len(violations) > 0 {
		os.Exit(1)
	}
}

// checkFolder returns what is wrong below a folder, in the order of its folders. What is wrong with the list of what is
// allowed comes last.
func checkFolder(root string) (violations []string, err error) {
	allowed, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(allowedFile)))
	if err != nil {
		return nil, err
	}
	packages, err := load(root)
	if err != nil {
		return nil, err
	}
	waits := map[string]bool{}
	lines := strings.Split(string(allowed), "\n")
	for _, p := range packages {
		for _, w := range p.realWaits() {
			entry := w.path + ": " + w.function + ": "
			waits[entry] = true
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, entry) }) {
				violations = append(violations, w.String())
			}
		}
	}
	return append(violations, problems(lines, waits)...), nil
}

// problems returns what is wrong with the lines of what is allowed. Entries are the beginnings of lines for the waits.
func problems(lines []string, waits map[string]bool) (problems []string) {
	seen := map[string]bool{}
	for i, line := range lines {
		parts := strings.SplitN(line, ": ", 3)
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		wrong := ""
		switch entry := strings.Join(parts[:min(2, len(parts))], ": ") + ": "; {
		case len(parts) != 3 || strings.TrimSpace(parts[2]) == "":
			wrong = fmt.Sprintf("%q is not of the form FILE: NAME: reason", line)
		case seen[entry]:
			wrong = fmt.Sprintf("%s in %s is there twice", parts[1], parts[0])
		case !waits[entry]:
			wrong = fmt.Sprintf("%s in %s does not wait in real time: remove the line", parts[1], parts[0])
		default:
			seen[entry] = true
			continue
		}
		problems = append(problems, fmt.Sprintf("%s:%d: %s", allowedFile, i+1, wrong))
	}
	return problems
}

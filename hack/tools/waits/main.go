// Command waits checks that no test waits for a time: a test waits for a fact, or it runs in a bubble of
// testing/synctest, where time is virtual and passes at once.
//
//	waits FOLDER        prints each wait that is wrong on a line, and exits with 1 if there is any
//	waits -list FOLDER  prints the folders of packages whose tests wait for real time, or for a server
//
// It reads the test files below the folder, except in testdata and in folders that begin with a dot. A wait is each use
// of Sleep, After, AfterFunc, NewTimer, NewTicker or Tick of the package time. It is in virtual time, and right, if
//
//  1. a function is around it that is passed to synctest.Test, or to a function of the package testing/simulation
//     whose name begins with Run;
//  2. a function is around it that is passed as a parameter which a function or method of the same package uses in
//     virtual time only, by these rules;
//  3. it is in a function or a method of the package, or in a function in the value of a variable or of a field, and
//     all uses of that are in virtual time, by these rules. There has to be one. Methods are told apart by their
//     names alone.
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
// Type.Name of a method, or the name of a variable of the package. Lines that begin with # are comments. An entry
// without a reason, a second one for the same function, and one that allows nothing are wrong too.
//
// With -list, the tests of a package wait for real time if there is any wait in real time, allowed or not, and for a
// server if a test file imports net/http/httptest or controlplanetest. Time limits of contexts are not checked.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
)

func main() {
	list := flag.Bool("list", false, "print the folders of packages whose tests wait for real time, or for a server")
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: waits [-list] FOLDER") }
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	check := checkFolder
	if *list {
		check = listFolders
	}
	lines, err := check(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "waits:", err)
		os.Exit(2)
	}
	for _, line := range lines {
		fmt.Println(line)
	}
	if len(lines) > 0 && !*list {
		os.Exit(1)
	}
}

// checkFolder returns what is wrong below a folder, in the order of its folders. What is wrong with the list of what is
// allowed comes last.
func checkFolder(root string) (violations []string, err error) {
	allowed, err := readAllowed(root)
	if err != nil {
		return nil, err
	}
	packages, err := load(root)
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		for _, w := range p.realWaits() {
			if !allowed.allows(w) {
				violations = append(violations, w.String())
			}
		}
	}
	return append(violations, allowed.problems()...), nil
}

// listFolders returns the folders of the packages whose tests wait for real time, or for a server.
func listFolders(root string) (folders []string, err error) {
	packages, err := load(root)
	for _, p := range packages {
		if p.usesServer() || len(p.realWaits()) > 0 {
			folders = append(folders, p.folder)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders), err
}

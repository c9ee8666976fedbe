package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const allowedFile = "hack/tools/waits/allowed.txt"

// allowances is the list of the functions that may wait in real time.
type allowances struct {
	entries []*allowance
	// malformed are lines that are no entries, each with what is wrong.
	malformed []string
}

// allowance is a line of the list.
type allowance struct {
	line           int
	path, function string
	// used says that there is a wait that it allows.
	used bool
}

func readAllowed(root string) (*allowances, error) {
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(allowedFile)))
	if err != nil {
		return nil, err
	}
	return parseAllowed(string(source)), nil
}

func parseAllowed(source string) *allowances {
	list := &allowances{}
	number := 0
	for line := range strings.Lines(source) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		path, rest, _ := strings.Cut(line, ":")
		function, reason, _ := strings.Cut(rest, ":")
		entry := &allowance{line: number, path: path, function: strings.TrimSpace(function)}
		switch {
		case entry.function == "":
			list.reject(number, "%q is not of the form path: function: reason", line)
			continue
		case strings.TrimSpace(reason) == "":
			list.reject(number, "%s in %s has no reason", entry.function, path)
		}
		if list.find(entry.path, entry.function) != nil {
			list.reject(number, "%s in %s is there twice", entry.function, path)
			continue
		}
		list.entries = append(list.entries, entry)
	}
	return list
}

func (a *allowances) reject(line int, format string, args ...any) {
	a.malformed = append(a.malformed, fmt.Sprintf("%s:%d: ", allowedFile, line)+fmt.Sprintf(format, args...))
}

func (a *allowances) find(path, function string) *allowance {
	for _, entry := range a.entries {
		if entry.path == path && entry.function == function {
			return entry
		}
	}
	return nil
}

// allows says whether a wait is in the list, and keeps in mind that its entry is used.
func (a *allowances) allows(w wait) bool {
	entry := a.find(w.path, w.function)
	if entry == nil {
		return false
	}
	entry.used = true
	return true
}

// problems returns what is wrong with the list, after all waits were looked up.
func (a *allowances) problems() []string {
	problems := a.malformed
	for _, entry := range a.entries {
		if !entry.used {
			problems = append(problems, fmt.Sprintf("%s:%d: %s in %s does not wait in real time: remove the line",
				allowedFile, entry.line, entry.function, entry.path))
		}
	}
	return problems
}

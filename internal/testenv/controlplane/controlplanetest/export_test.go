package controlplanetest

import "io"

// NamespacePrefix is tested apart, for what no name of a test in this package shows.
var NamespacePrefix = namespacePrefix

// LeakAtOnce has a goroutine be a leak if it does not end at once, and returns what sets that back.
func LeakAtOnce() (setBack func()) {
	before := leakTime
	leakTime = 0
	return func() { leakTime = before }
}

// Report reports what became of the tests, and forgets them.
func Report(out io.Writer) {
	report(out)
	seen.short, seen.inProcess, seen.real = nil, nil, nil
}

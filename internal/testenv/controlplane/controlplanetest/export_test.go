package controlplanetest

import "io"

// NamespacePrefix is tested apart, for what no name of a test in this package shows.
var NamespacePrefix = namespacePrefix

// Report reports what became of the tests, and forgets them.
func Report(out io.Writer) {
	report(out)
	seen.short, seen.inProcess, seen.real = nil, nil, nil
}

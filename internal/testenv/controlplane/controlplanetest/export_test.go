package controlplanetest

import "io"

// NamespacePrefix is tested apart, for what no name of a test in this package shows.
var NamespacePrefix = namespacePrefix

// ReportSkipped reports the tests that were skipped, and forgets them.
func ReportSkipped(out io.Writer) {
	reportSkipped(out)
	skipped.tests = nil
}

package fidelity_test

import "regexp"

// knownDifference is accepted. The pattern is for lines "step: -line" that only the real cluster has, and "step: +line"
// that only the stand-ins have. It has to match in each of its scenarios.
type knownDifference struct {
	scenarios []string
	pattern   *regexp.Regexp
	why       string
}

var known = []knownDifference{
	{
		[]string{"job", "failure", "indexed", "suspension", "cronjob"},
		regexp.MustCompile(`: -Pod [^ ]+( #[0-9])? metadata\.finalizers\.0 = "batch\.kubernetes\.io/job-tracking"$`),
		"Pods of Jobs are counted without a finalizer: the view of the stand-ins misses none that has ended",
	},
	{
		[]string{"statefulset"},
		regexp.MustCompile(`: \+PersistentVolumeClaim data-db-[0-9] metadata\.annotations\.pv\.kubernetes\.io/`),
		"the real cluster has nothing here that binds claims",
	},
}

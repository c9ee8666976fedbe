package fidelity_test

// knownDifferences are the checks in which the store answers otherwise, with the reasons.
var knownDifferences = map[string]string{}

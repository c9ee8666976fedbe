package execute

// WithIgnored is for tests of its rules.
var WithIgnored = withIgnored

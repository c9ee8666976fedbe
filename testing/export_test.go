package testing

import "time"

// Failures returns the messages of the assertions that failed.
func (c *ExpectConfig) Failures() []string { return c.made().report.Texts() }

// SetSetupTimeout sets for how long set-up cases wait. It is for processes in which one test runs.
func SetSetupTimeout(d time.Duration) { setupTimeout = d }

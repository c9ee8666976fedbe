package testing

import "time"

// Failures returns the messages of the assertions that failed.
func (c *ExpectConfig) Failures() []string { return c.made().report.Texts() }

// SetSetupTimeout sets for how long set-up cases wait. It is for processes in which one test runs.
func SetSetupTimeout(d time.Duration) { setupTimeout = d }

// SetPatience sets how long a request of a replay may take. It is for processes in which one test runs.
func SetPatience(d time.Duration) { patience = d }

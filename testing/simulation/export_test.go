package simulation

import "time"

// SetShrinking sets how long a failing story is made smaller. It is for processes in which one test runs.
func SetShrinking(d time.Duration) { shrinking = d }

package testing

// Failures returns the messages of the assertions that failed.
func (c *ExpectConfig) Failures() []string { return c.made().failures }

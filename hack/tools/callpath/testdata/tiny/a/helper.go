package a

import "example.test/tiny/skipped"

func helper() { func() { skipped.Skipped(); generated() }() }

package reconcilers

// What is decided about errors, for the tests of the decisions.
var (
	IsDurable    = isDurable
	IsOnlyHalt   = isOnlyHalt
	HidesFailure = hidesFailure
)

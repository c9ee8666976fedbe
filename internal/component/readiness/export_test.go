package readiness

// MaxPrograms is tested apart, since no result shows how many expressions are kept.
const MaxPrograms = maxPrograms

// StaticKinds are the kinds that Static knows.
var StaticKinds = staticKinds

// Kept is how many expressions are kept.
func Kept() int { return programs.Len() }

package readiness

// MaxPrograms is tested apart, since no result shows how many expressions are kept.
const MaxPrograms = maxPrograms

// Kept is how many expressions are kept.
func Kept() int { return programs.Len() }

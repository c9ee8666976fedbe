package readiness

// MaxPrograms is tested apart, since it does not show how many expressions are kept.
const MaxPrograms = maxPrograms

// StaticKinds are the kinds that Static knows.
var StaticKinds = static

// Kept is how many expressions are kept.
func Kept() int {
	programs.mu.Lock()
	defer programs.mu.Unlock()
	return len(programs.recent) + len(programs.older)
}

package reconcilers

// What is decided about errors, for the tests of the decisions.
var (
	IsDurable    = isDurable
	IsOnlyHalt   = isOnlyHalt
	HidesFailure = hidesFailure
)

// Lessons counts what any root has learned, of all children of all resources.
func (r *root) Lessons() int {
	r.memories.mu.Lock()
	defer r.memories.mu.Unlock()
	count := 0
	for _, m := range r.memories.by {
		for _, value := range m.values {
			if lessons, ok := value.(*resourceLessons); ok {
				count += len(lessons.byUID)
			}
		}
	}
	return count
}

package preview

// SetUpdate sets the flag -preview.update, and returns a function that sets it back.
func SetUpdate(to bool) func() {
	was := *updateFiles
	*updateFiles = to
	return func() { *updateFiles = was }
}

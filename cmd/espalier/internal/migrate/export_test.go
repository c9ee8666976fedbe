package migrate

// Findable are the rows of a module that have a finder.
func Findable(module string) []string {
	var found []string
	of, _ := originOf(module)
	for _, d := range of.differences {
		if d.find != nil {
			found = append(found, d.what)
		}
	}
	return found
}

// Updates reports whether the tests write their golden files.
func Updates() bool { return *update }

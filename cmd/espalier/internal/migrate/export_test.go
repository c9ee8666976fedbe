package migrate

// Findable are the rows that have a finder.
func Findable() []string {
	var found []string
	for _, of := range origins {
		for _, d := range of.differences {
			if d.find != nil {
				found = append(found, d.what)
			}
		}
	}
	return found
}

// Updates reports whether the tests write their golden files.
func Updates() bool { return *update }

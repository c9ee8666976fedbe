package tutorial

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeShowsTheTutorial compares the controller at the top of the README with that of the tutorial, which is
// compiled and run by TestPage.
func TestReadmeShowsTheTutorial(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocksOf(t) {
		if block.language == "go" && block.argument == "controller.go" {
			if !strings.Contains(string(readme), "```go\n"+block.content+"```") {
				t.Errorf("the README does not have the controller.go of %s:%d", page, block.line)
			}
			return
		}
	}
	t.Errorf("%s has no controller.go", page)
}

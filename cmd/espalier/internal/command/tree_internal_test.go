package command

import (
	"testing"
	"time"
)

// Point 14: what keeps a resource that is being deleted is in the printed tree.
func TestTreeOfADeletion(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	got := treeText(&dumpedRoot{Kind: "Stream"}, &dumpedResource{
		Name: "default/two", State: "Unchanged", Requests: 3, Deleted: new(now.Add(-time.Minute)),
		Finalizers: []string{"media.example.com/registration", "a.example.com/a"},
	}, now, false)
	const want = "Stream default/two: Unchanged after 3 requests\nbeing deleted since 60s\n" +
		"finalizers: media.example.com/registration, a.example.com/a\n"
	if got != want {
		t.Errorf("the tree is\n%s\nwant\n%s", got, want)
	}
}

package testing_test

import (
	"testing"

	rtesting "github.com/espalier-dev/espalier/testing"
)

func TestColorizeDiff(t *testing.T) {
	const diff = "  a\n- b\n+ c\n"
	if got, want := rtesting.ColorizeDiff(diff), "  a\n- b\n+ c\n\n"; got != want {
		t.Errorf("without colour: want %q, got %q", want, got)
	}
	rtesting.DiffAddedColor.EnableColor()
	rtesting.DiffRemovedColor.EnableColor()
	defer rtesting.DiffAddedColor.DisableColor()
	defer rtesting.DiffRemovedColor.DisableColor()
	if got, want := rtesting.ColorizeDiff(diff), "  a\n\x1b[31m- b\x1b[0m\n\x1b[32m+ c\x1b[0m\n\n"; got != want {
		t.Errorf("with colour: want %q, got %q", want, got)
	}
}

package count

import "testing"

func TestLinesIn(t *testing.T) {
	const source = `// Package p is not counted.
package p

import (
	"fmt"
	"fmt"
)

// A comment is not counted.
func f() { // This line is.

	/* Nor is
	this. */
	fmt.Println(` + "`two\n\tlines`" + `)
}

var x = 1; var y = 2
`
	if got := linesIn(t, "p.go", []byte(source)); got != 5 {
		t.Errorf("%d lines are counted, want 5", got)
	}
}

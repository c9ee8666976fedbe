package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// textWidth is where durations begin.
const textWidth = 74

// printer prints a scenario: a line for each check, with the time since the step began.
type printer struct {
	out    io.Writer
	start  time.Time
	checks int
	// err is the first error of out.
	err error
}

func (p *printer) title(number int, title string) { p.print("\n%2d  %s\n", number, title) }

func (p *printer) show(text func() string) {
	if text == nil {
		return
	}
	for line := range strings.Lines(text()) {
		p.print("      %s\n", strings.TrimRight(line, "\n"))
	}
}

func (p *printer) check(holds bool, text string, took time.Duration) {
	mark := "✓"
	if !holds {
		mark = "✗"
	}
	p.checks++
	padding := max(0, textWidth-utf8.RuneCountInString(text))
	p.print("    %s %s%s %6d ms\n", mark, text, strings.Repeat(" ", padding), took.Milliseconds())
}

func (p *printer) summary(steps int) {
	p.print("\n%d checks in %d steps hold. That took %.1f s.\n", p.checks, steps, time.Since(p.start).Seconds())
}

func (p *printer) print(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

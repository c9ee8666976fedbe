package storytelling

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// factWidth is where durations begin.
const factWidth = 74

// printer prints a story: a line for each fact, with the time that has gone by since the step began.
type printer struct {
	out io.Writer
	// start is that of the first step.
	start time.Time
	facts int
	// err is the first error of out.
	err error
}

func (p *printer) title(number int, title string) {
	if p.start.IsZero() {
		p.start = time.Now()
	}
	p.print("\n%2d  %s\n", number, title)
}

func (p *printer) show(text string) {
	for line := range strings.Lines(text) {
		p.print("      %s\n", strings.TrimRight(line, "\n"))
	}
}

func (p *printer) fact(holds bool, text string, took time.Duration) {
	mark := "✓"
	if !holds {
		mark = "✗"
	}
	p.facts++
	padding := max(0, factWidth-utf8.RuneCountInString(text))
	p.print("    %s %s%s %6d ms\n", mark, text, strings.Repeat(" ", padding), took.Milliseconds())
}

func (p *printer) summary(steps int) {
	p.print("\n%d facts in %d steps hold. That took %.1f s.\n", p.facts, steps, time.Since(p.start).Seconds())
}

func (p *printer) print(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

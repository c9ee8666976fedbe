package migrate

import (
	"fmt"
	"strings"
)

// Report returns what people read: what has changed, or would change, and what to do.
func (p *Plan) Report(dry bool) string {
	r := &report{}
	if len(p.Files) == 0 && len(p.Remaining) == 0 {
		r.line("Nothing to do: no package here uses what moves.")
	} else if len(p.Files) > 0 {
		verb := "changed"
		if dry {
			verb = "to change"
		}
		r.section("%s %s", count(len(p.Files), "file"), verb)
		for _, file := range p.Files {
			r.line("  %s", file.Path)
		}
	}
	p.reportRemaining(r)
	p.reportFindings(r)
	if len(p.Left) > 0 {
		r.section("Left alone")
		for _, left := range p.Left {
			r.line("  %s", left)
		}
	}
	if len(p.Broken) > 0 {
		r.section("Does not compile")
		for _, problem := range firstOf(p.Broken, 30) {
			r.line("  %s", problem)
		}
	}
	return r.String()
}

func (p *Plan) reportRemaining(r *report) {
	if len(p.Remaining) == 0 {
		return
	}
	r.section("%s to change by hand", count(len(p.Remaining), "name"))
	for _, remaining := range p.Remaining {
		r.line("  %s: %s", remaining.Position, remaining.Name)
		if remaining.Instead != "" {
			r.line("      %s", remaining.Instead)
		}
	}
}

// reportFindings lists the places by difference, in the order of the documentation.
func (p *Plan) reportFindings(r *report) {
	if len(p.Findings) > 0 {
		r.section("%s where the behavior may differ", count(len(p.Findings), "place"))
	}
	last := ""
	for _, f := range p.Findings {
		if f.What != last {
			last = f.What
			r.line("\n  %s", f.What)
			r.line("      there: %s", f.There)
			r.line("      here:  %s", f.Here)
			r.line("      check: %s", f.Check)
			r.line("      %s", f.Link)
		}
		r.line("    %s", f.Position)
	}
	if len(p.Unseen) > 0 {
		r.section("Differences that code does not show")
		for _, unseen := range p.Unseen {
			r.line("  %s", unseen.What)
		}
	}
}

// report is a text with sections.
type report struct{ strings.Builder }

func (r *report) line(format string, args ...any) { fmt.Fprintf(r, format+"\n", args...) }

func (r *report) section(format string, args ...any) {
	if r.Len() > 0 {
		r.line("")
	}
	r.line(format+":", args...)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

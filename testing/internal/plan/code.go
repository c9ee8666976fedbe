package plan

import (
	"fmt"
	"go/format"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
)

// Code returns the plan as Go source, with the names of package simulation.
func (p Plan) Code() string {
	c := &code{}
	c.open("simulation.Plan{")
	c.field("Seed", p.Seed, p.Seed != 0)
	c.duration("Latency", p.Latency)
	c.list("Chances", "Chance", len(p.Chances), func(i int) { c.chance(p.Chances[i]) })
	c.duration("Calm", p.Calm)
	c.field("Actors", fmt.Sprintf("%#v", p.Actors), len(p.Actors) > 0)
	c.list("Faults", "Fault", len(p.Faults), func(i int) { c.fault(p.Faults[i]) })
	c.list("Clocks", "Clock", len(p.Clocks), func(i int) { c.clock(p.Clocks[i]) })
	c.WriteString("}")
	formatted, err := format.Source([]byte(c.String()))
	if err != nil {
		return c.String()
	}
	return string(formatted)
}

// code is Go source that is being written.
type code struct {
	strings.Builder
	// inline has fields follow each other on a line.
	inline bool
}

func (c *code) open(text string, args ...any) { fmt.Fprintf(c, text+"\n", args...) }

// field writes a field if there is one to write.
func (c *code) field(name string, value any, there bool) {
	if !there {
		return
	}
	fmt.Fprintf(c, "%s: %v,", name, value)
	if c.inline {
		c.WriteString(" ")
	} else {
		c.WriteString("\n")
	}
}

func (c *code) text(name, value string)               { c.field(name, fmt.Sprintf("%q", value), value != "") }
func (c *code) duration(name string, d time.Duration) { c.field(name, durationCode(d), d != 0) }

// list writes a field that is a list with an item on each line.
func (c *code) list(name, of string, n int, item func(i int)) {
	if n == 0 {
		return
	}
	c.open("%s: []simulation.%s{", name, of)
	c.inline = true
	for i := range n {
		c.WriteString("{")
		item(i)
		c.WriteString("},\n")
	}
	c.inline = false
	c.WriteString("},\n")
}

func (c *code) kind(k fault.Kind) { c.field("Kind", "simulation."+string(k), true) }

func (c *code) chance(chance Chance) {
	c.kind(chance.Kind)
	c.field("OneIn", chance.OneIn, true)
	c.duration("Delay", chance.Delay)
}

func (c *code) fault(f fault.Fault) {
	c.kind(f.Kind)
	c.text("Actor", f.Actor)
	c.text("Verb", f.Verb)
	c.text("Path", f.Path)
	c.field("Nth", f.Nth, f.Nth > 1)
	c.field("Times", f.Times, f.Times > 1)
	c.duration("Delay", f.Delay)
}

func (c *code) clock(clock Clock) {
	c.text("Actor", clock.Actor)
	c.duration("Ahead", clock.Ahead)
}

// durationCode returns a duration in the largest unit of which it is a multiple.
func durationCode(d time.Duration) string {
	for _, unit := range []struct {
		time.Duration
		name string
	}{
		{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"}, {time.Millisecond, "Millisecond"},
		{time.Microsecond, "Microsecond"},
	} {
		switch n := d / unit.Duration; {
		case d%unit.Duration != 0:
		case n == 1:
			return "time." + unit.name
		default:
			return fmt.Sprintf("%d * time.%s", n, unit.name)
		}
	}
	return fmt.Sprintf("%d * time.Nanosecond", d)
}

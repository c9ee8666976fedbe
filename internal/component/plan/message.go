package plan

import (
	"fmt"
	"strings"
)

// named is how many objects a message names at most.
const named = 3

// Message says in one line how far a component is and what is in its way, in at most limit bytes. Equal plans have equal messages.
func Message(p Plan, limit int) string {
	for count := named; count > 0; count-- {
		if message := p.message(count); len(message) <= limit {
			return message
		}
	}
	return shorten(p.message(1), limit)
}

// message names up to count objects.
func (p Plan) message(count int) string {
	var parts []string
	switch progress := p.Progress; {
	case p.Done && p.Deleting:
		return "all objects are gone"
	case p.Done:
		return fmt.Sprintf("all %d objects are ready", len(p.Inventory))
	case p.Deleting && progress.Wave == 0:
		parts = append(parts, "deletion has not begun")
	case p.Deleting:
		parts = append(parts, fmt.Sprintf("%d objects left to delete", len(p.Inventory)))
	case progress.Wave > 0:
		parts = append(parts, fmt.Sprintf("wave %d of %d: %d of %d ready", progress.Wave, progress.Waves, progress.Ready, progress.Total))
	}
	var groups []string
	for _, kind := range []ObstacleKind{ObstacleFailed, ObstacleNotOurs, ObstacleBlocked, ObstacleWaiting} {
		group, names := p.group(kind, count)
		if group != "" {
			groups = append(groups, group)
		}
		count -= names
	}
	if len(groups) > 0 {
		parts = append(parts, strings.Join(groups, "; "))
	}
	if len(parts) == 0 {
		return "under way"
	}
	return strings.Join(parts, ", ")
}

// group names up to count of the objects with that kind of obstacle. One that nothing more is known of than that there are others does
// not take the place of one of these.
func (p Plan) group(kind ObstacleKind, count int) (group string, names int) {
	var words []string
	total := 0
	for _, o := range p.Obstacles {
		if o.Kind != kind {
			continue
		}
		total++
		if len(words) < count {
			words = append(words, o.words())
		}
	}
	if total == 0 {
		return "", 0
	}
	heading := string(kind) + ": "
	if kind == ObstacleWaiting {
		heading = "waiting for "
	}
	if len(words) == 0 {
		return fmt.Sprintf("%s%d more", heading, total), 0
	}
	group = heading + strings.Join(words, ", ")
	if more := total - len(words); more > 0 {
		group += fmt.Sprintf(" and %d more", more)
	}
	return group, len(words)
}

func (o Obstacle) words() string {
	if o.Message == "" {
		return o.Key.String()
	}
	return o.Key.String() + ": " + o.Message
}

// String says what an operation does, and why.
func (o Operation) String() string {
	text := string(o.Action) + " " + o.Key.String()
	if o.Reason != "" {
		text += ": " + o.Reason
	}
	return text
}

// String lists what is to be done next, and what is in the way, line by line.
func (p Plan) String() string {
	var b strings.Builder
	p.Next.write(&b)
	p.writeObstacles(&b)
	if b.Len() == 0 {
		return p.message(named) + "\n"
	}
	return b.String()
}

func (s Stage) write(b *strings.Builder) {
	if len(s.Operations) == 0 {
		return
	}
	fmt.Fprintf(b, "%s\n", s.Title)
	for _, o := range s.Operations {
		fmt.Fprintf(b, "  %s\n", o)
	}
}

func (p Plan) writeObstacles(b *strings.Builder) {
	if len(p.Obstacles) == 0 {
		return
	}
	b.WriteString("in the way\n")
	for _, o := range p.Obstacles {
		fmt.Fprintf(b, "  %s: %s\n", o.Kind, o.words())
	}
}

package plan

import (
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/internal/message"
)

// namedObstacles is how many objects a message names at most.
const namedObstacles = 3

// Message says in one line how far a component is, and what keeps it from being done, in at most limit bytes. Equal
// plans have equal messages.
func Message(p Plan, limit int) string {
	for count := namedObstacles; count > 1; count-- {
		if text := p.message(count); len(text) <= limit {
			return text
		}
	}
	return message.Truncate(p.message(1), limit)
}

// message names up to count objects.
func (p Plan) message(count int) string {
	var parts []string
	switch progress := p.Progress; {
	case p.Done && p.Deleting:
		return "all objects are gone"
	case p.Done:
		return fmt.Sprintf("all %d objects are ready", len(p.Inventory))
	case p.Deleting && progress.Wave == 0 && !Committed(p.Inventory):
		parts = append(parts, "deletion has not begun")
	case p.Deleting:
		parts = append(parts, message.Objects(len(p.Inventory))+" left to delete")
	case progress.Wave > 0:
		parts = append(parts, fmt.Sprintf("wave %d of %d: %d of %d ready",
			progress.Wave, progress.Waves, progress.Ready, progress.Total))
	}
	var groups []string
	for _, kind := range []ObstacleKind{
		ObstacleFailed, ObstacleContested, ObstacleNotOurs, ObstacleBlocked, ObstacleWaiting,
	} {
		if group, named := p.obstaclesOf(kind, count); group != "" {
			groups = append(groups, group)
			count -= named
		}
	}
	if len(groups) > 0 {
		parts = append(parts, strings.Join(groups, "; "))
	}
	if len(parts) == 0 {
		return "under way"
	}
	return strings.Join(parts, ", ")
}

// obstaclesOf names up to count of the objects with that kind of obstacle, and says how many more there are. It
// returns how many it named. Objects that are kept do not count: the component waits for others.
func (p Plan) obstaclesOf(kind ObstacleKind, count int) (text string, named int) {
	var words []string
	more := 0
	for _, o := range p.Obstacles {
		if o.Auxiliary || o.Kept {
			continue
		}
		if o.Kind == kind && len(words) < count {
			words = append(words, o.String())
		} else if o.Kind == kind {
			more++
		}
	}
	named = len(words)
	heading := string(kind) + ": "
	if kind == ObstacleWaiting {
		heading = "waiting for "
	}
	switch {
	case named == 0 && more == 0:
		return "", 0
	case named == 0:
		return fmt.Sprintf("%s%d more", heading, more), 0
	case more == 0:
		return heading + strings.Join(words, ", "), named
	default:
		return fmt.Sprintf("%s%s and %d more", heading, strings.Join(words, ", "), more), named
	}
}

// String names the object, and says what is waited for or what failed.
func (o Obstacle) String() string {
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

func (s Stage) write(b *strings.Builder) {
	if len(s.Operations) > 0 {
		fmt.Fprintf(b, "%s\n", s.Title)
	}
	for _, o := range s.Operations {
		fmt.Fprintf(b, "  %s\n", o)
	}
}

func (p Plan) writeObstacles(b *strings.Builder) {
	if len(p.Obstacles) > 0 {
		b.WriteString("in the way\n")
	}
	for _, o := range p.Obstacles {
		fmt.Fprintf(b, "  %s: %s\n", o.Kind, o)
	}
}

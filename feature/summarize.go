package feature

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/message"
)

// The limits of what a status says.
const (
	maxMessage  = 1024
	maxText     = 256
	maxCulprits = 3
)

// dependent is an object of a feature, and how it is.
type dependent struct {
	apis.DependentStatus
	// grade is what the object means after the grace period, empty if it means neither Degraded nor Down.
	grade apis.State
	// waits is true if the object waits for others, or does not exist yet.
	waits bool
	// counts is false if the feature does without the object, or without its health.
	counts bool
	// left is true if the object is not known to be gone.
	left bool
}

// text names the object, and says how it is.
func (d dependent) text() string {
	name := objectName(d.Kind, d.Namespace, d.Name)
	if text := cmp.Or(d.Message, d.Reason); text != "" {
		return strings.TrimPrefix(name+": "+text, ": ")
	}
	return name
}

func objectName(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return strings.TrimSpace(kind + " " + name)
}

// summary is what the objects of a feature amount to.
type summary struct {
	// state is the most important state of the objects that count, Healthy if all are healthy or there are none.
	state apis.State
	// message has the texts of the objects in that state.
	message string
	// grade is the worst grade, and gradeMessage has the texts of the objects with that grade.
	grade        apis.State
	gradeMessage string
	// left is how many objects are not known to be gone, and leftMessage names them.
	left        int
	leftMessage string
	// dependents are the objects that have an entry in the record, the most important ones first.
	dependents []apis.DependentStatus
	// partial is true if a node stopped, so that not all objects are known.
	partial bool
}

// summarize sums up how the objects are. lists says which objects have an entry in the record.
func summarize(objects []dependent, lists func(dependent) bool) summary {
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b dependent) int {
		return compareDependents(a.DependentStatus, b.DependentStatus)
	})
	gradeWaiting(objects)
	s := summary{state: apis.StateHealthy}
	var left []dependent
	for _, d := range objects {
		if d.left {
			left = append(left, d)
		}
		if lists(d) {
			s.dependents = append(s.dependents, d.DependentStatus)
		}
		if !d.counts {
			continue
		}
		if !health.Healthy(d.State) && rank(d.State) < rank(s.state) {
			s.state = d.State
		}
		if d.grade != "" && (s.grade == "" || rank(d.grade) < rank(s.grade)) {
			s.grade = d.grade
		}
	}
	s.message = culprits(objects, func(d dependent) bool {
		return d.counts && d.State == s.state && !health.Healthy(d.State)
	})
	s.gradeMessage = culprits(objects, func(d dependent) bool {
		return d.counts && s.grade != "" && d.grade == s.grade
	})
	s.left, s.leftMessage = len(left), culprits(left, func(dependent) bool { return true })
	return s
}

// gradeWaiting grades the objects that wait for others. They do not mean anything as long as a task runs that they may
// wait for.
func gradeWaiting(objects []dependent) {
	waits := func(d dependent) bool { return d.waits && d.grade == "" }
	grade := apis.StateDown
	for _, d := range objects {
		switch {
		case !d.counts || waits(d):
		case health.Healthy(d.State):
			grade = apis.StateDegraded
		case d.grade == "":
			return
		}
	}
	for i, d := range objects {
		if d.counts && waits(d) {
			objects[i].grade = grade
		}
	}
}

// compareDependents sorts the most important objects first.
func compareDependents(a, b apis.DependentStatus) int {
	return cmp.Or(
		cmp.Compare(rank(a.State), rank(b.State)),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message),
	)
}

// culprits returns the texts of the first objects that match, and says how many more there are.
func culprits(objects []dependent, match func(dependent) bool) string {
	var texts []string
	matching := 0
	for _, d := range objects {
		if !match(d) {
			continue
		}
		if matching++; matching <= maxCulprits {
			texts = append(texts, d.text())
		}
	}
	text := strings.Join(texts, "; ")
	if matching > maxCulprits {
		text += fmt.Sprintf("; and %d more", matching-maxCulprits)
	}
	return message.Truncate(text, maxMessage)
}

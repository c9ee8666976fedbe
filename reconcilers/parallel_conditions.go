package reconcilers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/conditionlog"
	"github.com/espalier-dev/espalier/internal/statusfield"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conditionsBeside are conditions that are none of a resource.
type conditionsBeside struct{ all []metav1.Condition }

var _ apis.ConditionsAccessor = (*conditionsBeside)(nil)

// GetConditions implements [apis.ConditionsAccessor].
func (c *conditionsBeside) GetConditions() []metav1.Condition { return c.all }

// SetConditions implements [apis.ConditionsAccessor].
func (c *conditionsBeside) SetConditions(conditions []metav1.Condition) { c.all = conditions }

func (c *conditionsBeside) find(conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(c.all, conditionType)
}

// put gives the condition of that type a value. Nil removes it.
func (c *conditionsBeside) put(conditionType string, value *metav1.Condition) {
	isOther := func(other metav1.Condition) bool { return other.Type == conditionType }
	c.all = slices.DeleteFunc(slices.Clone(c.all), isOther)
	if value != nil {
		c.all = append(c.all, *value)
		slices.SortStableFunc(c.all, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	}
}

// saysSame reports whether two conditions, or nil, are equal but for the time of the transition.
func saysSame(a, b *metav1.Condition) bool {
	if a == nil || b == nil {
		return a == b
	}
	left := *a
	left.LastTransitionTime = b.LastTransitionTime
	return left == *b
}

// mergedSummaries are the conditions that sum up others, as all branches have left them.
type mergedSummaries struct {
	types  []string
	before []metav1.Condition
	// after are the conditions once the changes of all branches were made one after the other.
	after conditionsBeside
	// summing are the branches that have made changes which such a condition may follow, by its type.
	summing map[string][]int
	// unexplained are the branches in which such a condition is not what the changes that were noted make of it.
	unexplained map[string][]int
}

// mergeSummaries gives all copies the conditions that sum up others, as if the changes of the branches had been made
// one after the other. Where a branch has changed such a condition in a way that was not noted, and another one has
// changes that it sums up, that cannot be found out, and is an error.
func (r *parallelRun[Type]) mergeSummaries() []error {
	if !statusfield.Of(r.resource).HasConditions() {
		return nil
	}
	m := &mergedSummaries{
		before:  statusfield.Of(r.resource).GetConditions(),
		summing: map[string][]int{}, unexplained: map[string][]int{},
	}
	changes := make([][]conditionlog.Change, len(r.branches))
	for i := range r.branches {
		changes[i] = conditionlog.Of(r.branches[i].ctx).Changes()
		for _, change := range changes[i] {
			if t := change.Summary; t != "" && !slices.Contains(m.summing[t], i) {
				m.types, m.summing[t] = append(m.types, t), append(m.summing[t], i)
			}
		}
	}
	if len(m.types) == 0 {
		return nil
	}
	slices.Sort(m.types)
	m.types = slices.Compact(m.types)
	m.after.all = m.before
	for i := range r.branches {
		m.add(i, changes[i], statusfield.Of(r.branches[i].resource).GetConditions())
	}
	var errs []error
	for _, t := range m.types {
		value := m.after.find(t)
		if by := m.unexplained[t]; len(by) > 0 {
			first, second, clash := m.clash(t)
			if !clash {
				continue
			}
			what := fmt.Sprintf(".status.conditions[%s] of the resource", t)
			errs = append(errs, r.errBothChange(first, second, what))
			for _, i := range []int{second, first} {
				own := GetCondition(r.branches[i].resource, t)
				if !saysSame(own, meta.FindStatusCondition(m.before, t)) {
					value = own
				}
			}
		}
		for i := range r.branches {
			showCondition(r.branches[i].resource, t, value)
		}
	}
	return errs
}

// add makes the changes of a branch, which has left those conditions.
func (m *mergedSummaries) add(branch int, changes []conditionlog.Change, left []metav1.Condition) {
	alone := conditionsBeside{m.before}
	for _, change := range changes {
		change.Again(&alone)
		change.Again(&m.after)
	}
	for _, condition := range slices.Concat(alone.all, left) {
		t := condition.Type
		value := meta.FindStatusCondition(left, t)
		switch {
		case saysSame(alone.find(t), value):
		case !slices.Contains(m.types, t):
			// It was changed without a context, and conditions of later branches may be summed up with it.
			m.after.put(t, value)
		case !slices.Contains(m.unexplained[t], branch):
			m.unexplained[t] = append(m.unexplained[t], branch)
		}
	}
}

// clash returns the first two branches that change a condition, if what they make of it together is not known.
func (m *mergedSummaries) clash(conditionType string) (first, second int, clash bool) {
	all := slices.Concat(m.unexplained[conditionType], m.summing[conditionType])
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) < 2 {
		return 0, 0, false
	}
	first = all[0]
	if i := m.unexplained[conditionType][0]; i > all[1] {
		return first, i, true
	}
	return first, all[1], true
}

// showCondition gives a resource the condition of that type. Nil removes it.
func showCondition(resource client.Object, conditionType string, value *metav1.Condition) {
	own := GetCondition(resource, conditionType)
	if saysSame(own, value) && (own == nil || own.LastTransitionTime.Equal(&value.LastTransitionTime)) {
		return
	}
	shown := conditionsBeside{statusfield.Of(resource).GetConditions()}
	shown.put(conditionType, value)
	statusfield.Of(resource).SetConditions(shown.all)
}

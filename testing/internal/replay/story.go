package replay

import "github.com/espalier-dev/espalier/internal/fault"

// story tells a run in one line.
func story(requests []*request, rested bool) string {
	var told []fault.Request
	for i, q := range requests {
		atRest := rested
		if i < len(requests)-1 {
			atRest = requests[i+1].step != ""
		}
		t := fault.Request{Step: q.step, End: q.ending(atRest)}
		for _, c := range q.calls {
			t.Calls = append(t.Calls, fault.Told{
				Call: c.name, Namespace: c.Namespace, Name: c.Name, Reads: !c.external() && !c.Writes(),
				Fault: c.fault, Err: c.err,
			})
		}
		told = append(told, t)
	}
	return fault.Story(told)
}

// ending says how a request ended.
func (q *request) ending(rest bool) string {
	switch {
	case q.died:
		return "†"
	case rest:
		return "rest"
	case q.err != nil:
		return "error"
	}
	if _, delay := q.outcome().next(); delay > 0 {
		return delay.String() + " later"
	}
	return "again"
}

package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// pathOfPlan is where a form asks for a fresh plan.
const pathOfPlan = "plan"

// maxForm is how long a form is, in bytes.
const maxForm = 16 << 10

// servePlan makes a fresh plan of a component, for a viewer who may update the resource. Then it shows the component.
func (p *Page) servePlan(a *answer) {
	a.request.Body = http.MaxBytesReader(a, a.request.Body, maxForm)
	if err := a.request.ParseForm(); err != nil {
		http.Error(a, "400: the form cannot be read.", http.StatusBadRequest)
		return
	}
	of := planOf{root: a.value("root"), resource: a.resourceKey(), component: a.value("component")}
	if !p.isOwnForm(a, of) {
		http.Error(a, "403: the form is not one that this page gave you. Load the page of the component again.",
			http.StatusForbidden)
		return
	}
	_, known, visible, ok := p.resource(a)
	if !ok {
		return
	}
	if known == nil {
		a.notFound("resource")
		return
	}
	may := false
	if visible {
		var err error
		if may, err = known.allows(a, verbUpdate); err != nil {
			refuse(a, a.request, err)
			return
		}
	}
	if !may {
		http.Error(a, "403: who asks for a plan must be allowed to get and to update the resource.",
			http.StatusForbidden)
		return
	}
	progress := known.component(of.component)
	if progress == nil || !known.isCurrent(progress) {
		a.notFound("component that a plan can be made of")
		return
	}
	switch refusal, after := p.plans.begin(of, a.now); refusal {
	case http.StatusConflict:
		a.later(refusal, after, "another plan is being made.")
	case http.StatusTooManyRequests:
		a.later(refusal, after, "a plan of this resource was made within the last minute.")
	default:
		// A viewer who goes away does not end it: the others wait for it, too.
		ctx := context.WithoutCancel(a.request.Context())
		p.plans.make(rtime.StashNow(ctx, a.now), of, a.now, progress.plan)
		// A URL that is relative leads there also below a prefix that a proxy has removed.
		a.Header().Set("Location", componentURL(of.root, of.resource, of.component)+"#plan")
		a.WriteHeader(http.StatusSeeOther)
	}
}

// later refuses a request that may be made again after a while.
func (a *answer) later(status int, after time.Duration, why string) {
	a.Header().Set("Retry-After", fmt.Sprint(int(after.Round(time.Second)/time.Second)))
	http.Error(a, fmt.Sprintf("%d: %s", status, why), status)
}

// isOwnForm reports whether the viewer has sent a form of this page, and no page of another origin has.
func (p *Page) isOwnForm(a *answer, of planOf) bool {
	var protection http.CrossOriginProtection
	return protection.Check(a.request) == nil && p.plans.isToken(a.value("token"), a.viewer.Name(), of)
}

// isCurrent reports whether a plan can be made of a component: it had a part in the last request.
func (r *resourceRecord) isCurrent(c *progressRecord) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.plan != nil && c.slot >= 0 && c.slot < len(r.nodes) && r.nodes[c.slot].request == r.count
}

// planForm is the form that asks for a fresh plan.
type planForm struct{ Root, Namespace, Name, Component, Token string }

// planFormOf returns the form for a viewer who may send it, or nil.
func (p *Page) planFormOf(a *answer, known *resourceRecord, c *progressRecord) *planForm {
	if !known.isCurrent(c) {
		return nil
	}
	if may, err := known.allows(a, verbUpdate); err != nil || !may {
		return nil
	}
	of := planOf{root: known.root.id, resource: known.key, component: c.path}
	return &planForm{
		Root: of.root, Namespace: of.resource.Namespace, Name: of.resource.Name, Component: of.component,
		Token: p.plans.token(a.viewer.Name(), of),
	}
}

// freshPlan is the last plan that was asked for.
type freshPlan struct {
	At        moment
	Error     string
	Counts    string
	Changes   []changeView
	Obstacles []string
	Omitted   int
	// Hidden is true if there are objects that the viewer may not get.
	Hidden bool
}

// changeView is what would be done about an object. It has no values.
type changeView struct {
	Action, Object, Reason, Error string
	Fields                        []string
	// Visible is false if the viewer may not get the object. Then the reason, the error and the fields are empty.
	Visible bool
}

// freshPlanOf returns the last plan of a component, as far as the viewer may see it, or nil.
func (p *Page) freshPlanOf(a *answer, of planOf) *freshPlan {
	record := p.plans.last(of)
	if record == nil {
		return nil
	}
	sights := map[schema.GroupVersionKind]*sight{}
	return freshPlanViewOf(record, a.now, func(object reconcilers.ObjectRef) bool {
		s := sights[object.GroupVersionKind]
		if s == nil {
			s = sightOf(a.viewer, object.GroupVersionKind)
			sights[object.GroupVersionKind] = s
		}
		return s.ofNamespace(a.request.Context(), object.Namespace)
	})
}

func freshPlanViewOf(record *planRecord, now time.Time, sees func(reconcilers.ObjectRef) bool) *freshPlan {
	v := &freshPlan{At: momentOf(record.when, now), Error: record.err, Omitted: record.omitted}
	if v.Error != "" {
		return v
	}
	v.Counts = record.counts
	for i, c := range record.changes {
		if record.remote || !sees(record.refs[i]) {
			// What the viewer may do in another cluster is not known.
			c, v.Hidden = changeView{Action: c.Action, Object: c.Object}, true
		}
		v.Changes = append(v.Changes, c)
	}
	if !v.Hidden && !record.remote {
		v.Obstacles = record.obstacles
	}
	return v
}

func changeViewOf(c *component.Change) changeView {
	v := changeView{
		Action: c.Action, Object: c.Object, Reason: message.Truncate(c.Reason, maxWriteText), Visible: true,
		Fields: c.Fields[:min(len(c.Fields), maxOperations)],
	}
	if c.Err != nil {
		v.Error = textOfWrite(reconcilers.Write{Object: c.Ref, Err: withoutQuotes(c.Err)})
	}
	return v
}

// withoutQuotes returns the answer of an API server that an error is about, if it is one. The text of the error itself
// may quote values.
func withoutQuotes(err error) error {
	var answer *apierrs.StatusError
	if errors.As(err, &answer) {
		return answer
	}
	return err
}

package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/statusfield"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// itemText is the key of the text that is recorded of an item.
type itemText struct{ name, key string }

// record stores the keys of the items, and which items are not as they should be.
func (p *itemsPass[Type, Item]) record() {
	if p.terminating {
		return
	}
	before := p.recordOf(p.ctx, p.resource)
	next := apis.ForEachStatus{
		Name: before.Name, NotReadyCount: int32(len(p.notReady)),
		Source: before.Source, SourceGeneration: before.SourceGeneration,
	}
	for _, run := range p.plan.runs {
		if slices.Contains(p.done, run.key) {
			p.memory.forget(run.key)
		} else {
			next.Keys = append(next.Keys, run.key)
		}
	}
	for _, key := range p.plan.kept {
		if slices.Contains(before.Keys, key) {
			next.Keys = append(next.Keys, key)
		}
	}
	next.Keys = append(next.Keys, p.plan.fresh...)
	slices.Sort(next.Keys)
	next.NotReady = worstFirst(p.notReady)
	for i := range next.NotReady {
		item := &next.NotReady[i]
		var shown *string
		for _, was := range before.NotReady {
			if text := was.Message; was.Key == item.Key && was.Status == item.Status && was.Reason == item.Reason {
				shown = &text
			}
		}
		item.Message = ReportText(p.ctx, p.resource, itemText{before.Name, item.Key}, shown, item.Message)
	}
	setItemRecord(statusfield.PartOf[apis.ItemsStatus](p.resource), next)

	lost := p.memory.lost.Note(slices.ContainsFunc(p.plan.fresh, func(key string) bool {
		return slices.Contains(p.memory.recorded, key)
	}))
	p.memory.recorded = p.plan.fresh
	if lost >= statusfield.MaxLosses {
		p.errs = append(p.errs, Failed(Enter(p.ctx, p.Name), nil, fmt.Errorf("the status of %T does not keep the keys "+
			"of items: its CustomResourceDefinition must define status.forEach", p.resource)))
	}
	if len(p.plan.fresh) > 0 {
		p.awaitRecord()
		// The write of the status brings the resource back, as a rule.
		p.result = aggregateResult(p.result, Result{RequeueAfter: time.Second})
	}
}

// awaitRecord says that nothing exists yet for items whose keys are recorded now.
func (p *itemsPass[Type, Item]) awaitRecord() {
	NotDone(p.ctx)
	if outer := SupervisorOf(p.ctx); outer != nil {
		outer.Observe(ObservedObject{Node: RetrievePath(Enter(p.ctx, p.Name)), Health: &apis.Health{
			State: apis.StateUnknown, Message: "the keys of new items are recorded first",
		}})
	}
}

// recordOf returns the record of the loop, as it is in the cluster.
func (r *ForEach[Type, Item]) recordOf(ctx context.Context, resource Type) apis.ForEachStatus {
	name := ItemName(ctx, r.Name)
	status := statusfield.PartOf[apis.ItemsStatus](resource)
	if s := contextOf(ctx).state; s != nil && s.stored != nil {
		status = cmp.Or(statusfield.PartOf[apis.ItemsStatus](s.stored), status)
	}
	if status != nil {
		for _, record := range status.ForEach {
			if record.Name == name {
				return record
			}
		}
	}
	return apis.ForEachStatus{Name: name}
}

// setItemRecord stores the record of a loop, and removes one that has nothing. Records are sorted by name.
func setItemRecord(status *apis.ItemsStatus, record apis.ForEachStatus) {
	at, found := slices.BinarySearchFunc(status.ForEach, record.Name, func(r apis.ForEachStatus, name string) int {
		return strings.Compare(r.Name, name)
	})
	// The slice may be shared with what the status was before.
	switch empty := len(record.Keys) == 0 && record.NotReadyCount == 0; {
	case found && equality.Semantic.DeepEqual(status.ForEach[at], record):
	case found && empty:
		status.ForEach = slices.Delete(slices.Clone(status.ForEach), at, at+1)
	case found:
		status.ForEach = slices.Clone(status.ForEach)
		status.ForEach[at] = record
	case !empty:
		status.ForEach = slices.Insert(slices.Clone(status.ForEach), at, record)
	}
}

func (r *ForEach[Type, Item]) errNoRecords(resource client.Object) error {
	return fmt.Errorf("ForEach %q finds no apis.ItemsStatus in the status of %T: "+
		"embed apis.ItemsStatus in the type of its field Status, since Key is set", r.Name, resource)
}

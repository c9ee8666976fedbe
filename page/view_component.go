package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"

	"k8s.io/apimachinery/pkg/types"
)

// componentView is how a component of a resource is.
type componentView struct {
	Name     link
	State    string
	Reason   string
	Message  string
	Since    moment
	At       moment
	Revision int64
	Total    int
	// Waves are a picture of progress. While the component is deleted they are those of the deletion.
	Waves []waveView
	// OmittedWaves is how many waves are not shown.
	OmittedWaves int
	Deleting     bool
	Obstacles    []obstacleView
	Next         []operationView
	Omitted      int
}

// waveView is a wave: the objects of one order.
type waveView struct {
	Number int
	Order  int16
	// State is Done, In progress, Blocked, or Waiting.
	State string
	// Text says what the wave waits for.
	Text  string
	Ready int
	Total int
	// Obstacles are those of objects of the wave.
	Obstacles []obstacleView
}

// obstacleView is why an object is not as it is to be.
type obstacleView struct {
	Object  string `json:"object"`
	Kind    string `json:"kind"`
	Message string `json:"message,omitempty"`
}

type operationView struct{ Action, Object, Reason string }

// The states of a wave.
const (
	waveDone     = "Done"
	waveProgress = "In progress"
	waveBlocked  = "Blocked"
	waveWaiting  = "Waiting"
)

// obstacleWaiting is the kind of an obstacle that goes by itself.
const obstacleWaiting = "waiting"

func componentViewOf(root string, key types.NamespacedName, c *progressRecord, now time.Time) componentView {
	v := componentView{
		Name:  link{URL: componentURL(root, key, c.path), Text: c.path},
		State: string(c.state), Reason: c.reason, Message: c.message, Revision: c.revision,
		Since: momentOf(c.since, now), At: momentOf(c.when, now), Omitted: c.omitted, Total: c.inventory.total,
		Deleting: c.state == apis.ComponentDeleting || c.state == apis.ComponentDeletionPending,
	}
	for _, o := range c.obstacles {
		v.Obstacles = append(v.Obstacles, obstacleView{Object: o.Object, Kind: o.Kind, Message: o.Message})
	}
	for _, o := range c.next {
		v.Next = append(v.Next, operationView{Action: o.Action, Object: o.Object, Reason: o.Reason})
	}
	v.Waves, v.OmittedWaves = shownWaves(wavesOf(c.inventory, v.Deleting, v.Obstacles))
	return v
}

// maxWaves is how many waves are shown.
const maxWaves = 100

// shownWaves leaves out waves if there are too many: those that are done first.
func shownWaves(waves []waveView) (shown []waveView, omitted int) {
	if len(waves) <= maxWaves {
		return waves, 0
	}
	for _, w := range waves {
		if w.State != waveDone && len(shown) < maxWaves {
			shown = append(shown, w)
		}
	}
	return shown, len(waves) - len(shown)
}

// wavesOf returns the picture of progress.
func wavesOf(inventory *inventory, deleting bool, obstacles []obstacleView) []waveView {
	orderOf := func(r *row) int16 { return r.applyOrder }
	records := inventory.waves
	if deleting {
		orderOf = func(r *row) int16 { return r.deleteOrder }
		records = deletionWaves(inventory.rows)
	}
	byOrder := obstaclesByOrder(inventory.rows, orderOf, obstacles)
	waves := make([]waveView, 0, len(records))
	before := ""
	for i, record := range records {
		w := waveView{
			Number: i + 1, Order: record.order, Ready: record.ready, Total: record.total,
			Obstacles: byOrder[record.order],
		}
		w.State, w.Text = w.decide(&record, before)
		if w.State != waveDone && before == "" {
			before = fmt.Sprintf("wave %d", w.Number)
		}
		waves = append(waves, w)
	}
	return waves
}

// obstaclesByOrder returns the obstacles of each wave.
func obstaclesByOrder(rows []row, orderOf func(*row) int16, obstacles []obstacleView) map[int16][]obstacleView {
	byObject := map[string][]obstacleView{}
	for _, o := range obstacles {
		byObject[o.Object] = append(byObject[o.Object], o)
	}
	if len(byObject) == 0 {
		return nil
	}
	byOrder := map[int16][]obstacleView{}
	for i := range rows {
		if own := byObject[rows[i].objectName()]; own != nil {
			byOrder[orderOf(&rows[i])] = append(byOrder[orderOf(&rows[i])], own...)
		}
	}
	return byOrder
}

// deletionWaves counts the objects that are left, by the order in which they are deleted.
func deletionWaves(rows []row) []waveRecord {
	var waves []waveRecord
	places := map[int16]int{}
	for i := range rows {
		at, ok := places[rows[i].deleteOrder]
		if !ok {
			at = len(waves)
			places[rows[i].deleteOrder] = at
			waves = append(waves, waveRecord{order: rows[i].deleteOrder})
		}
		waves[at].total++
		if rows[i].part() == partFailed {
			waves[at].failed++
		}
	}
	slices.SortFunc(waves, func(a, b waveRecord) int { return int(a.order) - int(b.order) })
	return waves
}

// decide returns the state of a wave, and what it waits for. Before names the wave that is not done before it, if any.
func (w *waveView) decide(record *waveRecord, before string) (state, text string) {
	isBlock := func(o obstacleView) bool { return o.Kind != obstacleWaiting }
	var names []string
	for _, o := range w.Obstacles {
		names = append(names, o.Object)
	}
	switch {
	case record.ready == record.total:
		return waveDone, ""
	case slices.ContainsFunc(w.Obstacles, isBlock), record.failed > 0:
		return waveBlocked, "by " + firstOf(names, record.failed)
	case before != "" && record.active == 0 && record.ready == 0:
		return waveWaiting, "for " + before
	case len(names) > 0:
		return waveProgress, "waits for " + firstOf(names, 0)
	}
	return waveProgress, fmt.Sprintf("%d left", record.total-record.ready)
}

// firstOf names the first of some objects, and counts the others.
func firstOf(names []string, failed int) string {
	const shown = 3
	switch {
	case len(names) == 0:
		return fmt.Sprintf("%d that failed", failed)
	case len(names) > shown:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}

// inventorySize is how many objects are on one page.
const inventorySize = 100

// inventoryFilter is what a viewer asks of the objects of a component.
type inventoryFilter struct {
	text  string
	phase string
	page  int
}

// inventoryView is the page of the objects of a component.
type inventoryView struct {
	frame
	// Visible is false if the viewer may not get the resource, and Known if the page does not know the component.
	Visible, Known bool
	Component      componentView
	// Kept is false if there was no room for the objects.
	Kept                              bool
	RootID, Namespace, NameOnly, Path string
	Query, Phase                      string
	Phases                            []string
	Rows                              []objectView
	Pages                             pages
	// Plan is the form that asks for a fresh plan, if the viewer may.
	Plan *planForm
	// Fresh is the last plan that was asked for, if it is known.
	Fresh *freshPlan
}

// objectView is an object of a component.
type objectView struct {
	Kind, Name, Phase, Status, Message string
	Order                              int16
}

func inventoryViewOf(
	f frame, root string, key types.NamespacedName, c *progressRecord, filter inventoryFilter, now time.Time,
) inventoryView {
	v := inventoryView{
		frame: f, Visible: true, Known: true, Component: componentViewOf(root, key, c, now),
		Kept: c.inventory.rows != nil, RootID: root, Namespace: key.Namespace, NameOnly: key.Name, Path: c.path,
		Query: filter.text, Phase: filter.phase,
	}
	var found []*row
	for i := range c.inventory.rows {
		r := &c.inventory.rows[i]
		if !slices.Contains(v.Phases, string(r.phase)) {
			v.Phases = append(v.Phases, string(r.phase))
		}
		if filter.has(r) {
			found = append(found, r)
		}
	}
	slices.Sort(v.Phases)
	query := resourceQuery(root, key)
	query.Set("component", c.path)
	query.Set("q", filter.text)
	query.Set("phase", filter.phase)
	var start, end int
	v.Pages, start, end = pagesOf(len(found), inventorySize, filter.page, pageURL("component", query))
	for _, r := range found[start:end] {
		v.Rows = append(v.Rows, objectView{
			Kind: r.kind, Name: nameOf(types.NamespacedName{Namespace: r.namespace, Name: r.name}),
			Phase: string(r.phase), Status: string(r.status), Message: r.message, Order: r.applyOrder,
		})
	}
	v.Summary = fmt.Sprintf("%s: %s (%s). %s", c.path, c.state, c.reason, c.message)
	return v
}

func (f *inventoryFilter) has(r *row) bool {
	if f.phase != "" && string(r.phase) != f.phase {
		return false
	}
	text := strings.ToLower(f.text)
	return text == "" || strings.Contains(strings.ToLower(r.objectName()), text) ||
		strings.Contains(strings.ToLower(r.message), text)
}

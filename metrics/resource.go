package metrics

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxConditions is how many types of conditions of one root have series. The types that come later have none.
const maxConditions = 50

// maxWaves is how many values the label wave has for one controller. Components in other waves share one.
const maxWaves = 50

// reconciled has the resources of a controller. Roots that share them, as several [reconcilers.Embedded] do, count each
// once.
type reconciled struct {
	mu    sync.Mutex
	known map[types.NamespacedName]*resource
	types map[string]*conditionType
	// waves are the values of the label wave.
	waves map[string]struct{}
}

func newReconciled() *reconciled {
	return &reconciled{
		known: map[types.NamespacedName]*resource{}, types: map[string]*conditionType{}, waves: map[string]struct{}{},
	}
}

// resource is what the metrics count of a resource.
type resource struct {
	// seen is true once a request has ended.
	seen bool
	// uid is that of the resource in the last request. Another one has the name of a resource that is gone.
	uid types.UID
	// conditions are the statuses that it has, in the order of its conditions.
	conditions []*conditionStatus
	// features and components are those of the resource, components by path and items.
	features   map[featureKey]*featureStatus
	components map[string]*componentStatus
}

// conditionType has the series of a type, for the statuses True, False and Unknown.
type conditionType struct {
	statuses [3]conditionStatus
}

// conditionStatus has the series of a type and a status.
type conditionStatus struct {
	of          *conditionType
	name        string
	status      metav1.ConditionStatus
	count       prometheus.Gauge
	transitions prometheus.Counter
}

type featureKey struct{ path, name string }

// featureStatus is what is counted of a feature.
type featureStatus struct {
	status, reason string
	since          time.Time
}

// componentStatus is what is counted of a component.
type componentStatus struct {
	path  string
	state apis.ComponentState
	// entered is when the process saw that the component entered the state; zero if it was in the state before.
	entered time.Time
	// wave is the value of the label; empty if none is under way.
	wave string
	// since is since when a roll-out has been under way, or zero.
	since     time.Time
	phases    map[apis.InventoryPhase]int
	obstacles map[string]int
}

// resource returns the entry of a resource, which is made if need be.
func (r *root) resource(key types.NamespacedName) *resource {
	if known := r.known[key]; known != nil {
		return known
	}
	made := &resource{}
	r.known[key] = made
	r.resources.WithLabelValues(r.controller).Inc()
	return made
}

// statusOf returns the series of a condition; nil if it has none.
func (r *root) statusOf(c *metav1.Condition) *conditionStatus {
	known := r.types[c.Type]
	if known == nil {
		if len(r.types) >= maxConditions {
			return nil
		}
		known = &conditionType{}
		name := labelValue(strings.Clone(c.Type))
		for i, status := range []metav1.ConditionStatus{
			metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown,
		} {
			known.statuses[i] = conditionStatus{
				of: known, name: name, status: status,
				count:       r.conditions.WithLabelValues(r.controller, name, string(status)),
				transitions: r.conditionTransitions.WithLabelValues(r.controller, name, string(status)),
			}
		}
		r.types[c.Type] = known
	}
	switch c.Status {
	case metav1.ConditionTrue:
		return &known.statuses[0]
	case metav1.ConditionFalse:
		return &known.statuses[1]
	}
	return &known.statuses[2]
}

// setConditions replaces the conditions of the resource with the UID.
func (r *root) setConditions(key types.NamespacedName, uid types.UID, conditions []metav1.Condition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := r.resource(key)
	if entry.uid != uid {
		for _, status := range entry.conditions {
			r.leave(key, status)
		}
		entry.conditions, entry.seen, entry.uid = nil, false, uid
	}
	isFirst := !entry.seen
	entry.seen = true
	if r.isCounted(entry, conditions) {
		return
	}
	before := map[*conditionType]*conditionStatus{}
	for _, status := range entry.conditions {
		before[status.of] = status
	}
	now := make([]*conditionStatus, 0, len(conditions))
	for i := range conditions {
		status := r.statusOf(&conditions[i])
		if status == nil || slices.ContainsFunc(now, func(s *conditionStatus) bool { return s.of == status.of }) {
			continue
		}
		now = append(now, status)
		was := before[status.of]
		if delete(before, status.of); was == status {
			continue
		}
		r.leave(key, was)
		status.count.Inc()
		if !isFirst {
			status.transitions.Inc()
		}
		if r.perResource {
			r.resourceCondition.WithLabelValues(
				r.controller, key.Namespace, key.Name, status.name, string(status.status)).
				Set(float64(conditions[i].LastTransitionTime.Unix()))
		}
	}
	for _, gone := range before {
		r.leave(key, gone)
	}
	entry.conditions = now
}

// isCounted reports whether the conditions are those of the request before.
func (r *root) isCounted(entry *resource, conditions []metav1.Condition) bool {
	counted := 0
	for i := range conditions {
		status := r.statusOf(&conditions[i])
		if status == nil {
			continue
		}
		if counted == len(entry.conditions) || entry.conditions[counted] != status {
			return false
		}
		counted++
	}
	return counted == len(entry.conditions)
}

// leave counts a condition that a resource does not have any more. It may be nil.
func (r *root) leave(key types.NamespacedName, was *conditionStatus) {
	if was == nil {
		return
	}
	was.count.Dec()
	if r.perResource {
		r.resourceCondition.DeleteLabelValues(r.controller, key.Namespace, key.Name, was.name, string(was.status))
	}
}

// setFeature replaces what is counted of a feature.
func (r *root) setFeature(key types.NamespacedName, of *reconcilers.Node, phase feature.Phase) {
	if !r.hasResources {
		return
	}
	which := featureKey{path: r.node(of).path, name: labelValue(phase.Feature)}
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := r.resource(key)
	was := entry.features[which]
	now := featureStatus{status: string(phase.Status), reason: string(phase.Reason), since: phase.Since}
	if was != nil && *was == now && !phase.Removed {
		return
	}
	r.leaveFeature(key, which, was)
	if phase.Removed {
		delete(entry.features, which)
		return
	}
	if entry.features == nil {
		entry.features = map[featureKey]*featureStatus{}
	}
	entry.features[which] = &now
	r.features.WithLabelValues(r.controller, which.path, now.status, now.reason).Inc()
	if r.perResource {
		r.resourceFeature.WithLabelValues(
			r.controller, key.Namespace, key.Name, which.name, now.status, now.reason).Set(float64(now.since.Unix()))
	}
}

// leaveFeature counts what a feature is not any more. It may be nil.
func (r *root) leaveFeature(key types.NamespacedName, which featureKey, was *featureStatus) {
	if was == nil {
		return
	}
	r.features.WithLabelValues(r.controller, which.path, was.status, was.reason).Dec()
	if r.perResource {
		r.resourceFeature.DeleteLabelValues(r.controller, key.Namespace, key.Name, which.name, was.status, was.reason)
	}
}

// rollout is how a component is: component.Progress, which is known by its method. The package of components would make
// the binary of each operator larger.
type rollout interface {
	Summary() (
		state apis.ComponentState, since time.Time, phases map[apis.InventoryPhase]int, obstacles map[string]int,
	)
	Wave() (order int16, isUnderWay bool)
}

// setComponent replaces what is counted of a component, and measures a roll-out that has ended.
func (r *root) setComponent(ctx context.Context, of *reconcilers.Node, how rollout) {
	if !r.hasResources {
		return
	}
	path := r.node(of).path
	now := componentStatus{path: path}
	now.state, now.since, now.phases, now.obstacles = how.Summary()
	order, isUnderWay := how.Wave()
	name := reconcilers.ItemName(ctx, of.Label)
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := r.resource(resourceOf(ctx))
	was := entry.components[name]
	if was == nil {
		was = &componentStatus{path: path}
	}
	if isUnderWay {
		now.wave = r.waveLabel(order)
	}
	if now.phases == nil && now.state != "" {
		now.phases, now.wave = was.phases, was.wave
	}
	at := rtime.RetrieveNow(ctx)
	if now.state == apis.ComponentReady && now.since.IsZero() && !was.since.IsZero() {
		r.componentRollout.WithLabelValues(r.controller, path).Observe(at.Sub(was.since).Seconds())
	}
	if now.entered = was.entered; now.state != was.state && was.state != "" {
		if !was.entered.IsZero() {
			left := r.componentState.WithLabelValues(r.controller, path, string(was.state))
			left.Observe(at.Sub(was.entered).Seconds())
		}
		now.entered = at
	}
	r.moveComponent(was, &now)
	if now.state == "" {
		delete(entry.components, name)
		return
	}
	if entry.components == nil {
		entry.components = map[string]*componentStatus{}
	}
	entry.components[name] = &now
}

// waveLabel returns the label of a wave.
func (r *root) waveLabel(order int16) string {
	label := strconv.Itoa(int(order))
	if _, known := r.waves[label]; !known && len(r.waves) >= maxWaves {
		return other
	}
	r.waves[label] = struct{}{}
	return label
}

// moveComponent counts a component that was in one way and now is in another.
func (r *root) moveComponent(was, now *componentStatus) {
	if was.state != now.state {
		if was.state != "" {
			r.components.WithLabelValues(r.controller, was.path, string(was.state)).Dec()
		}
		if now.state != "" {
			r.components.WithLabelValues(r.controller, was.path, string(now.state)).Inc()
		}
	}
	if was.wave != now.wave {
		if was.wave != "" {
			r.componentWaves.WithLabelValues(r.controller, was.path, was.wave).Dec()
		}
		if now.wave != "" {
			r.componentWaves.WithLabelValues(r.controller, was.path, now.wave).Inc()
		}
	}
	phase := func(p apis.InventoryPhase) string { return string(p) }
	move(r.componentObjects, r, was.path, was.phases, now.phases, phase)
	move(r.componentObstacles, r, was.path, was.obstacles, now.obstacles, camelCase)
}

// move adds the differences of two counts to a gauge.
func move[K ~string](g *prometheus.GaugeVec, r *root, path string, was, now map[K]int, label func(K) string) {
	if maps.Equal(was, now) {
		return
	}
	for key, count := range now {
		if more := count - was[key]; more != 0 {
			g.WithLabelValues(r.controller, path, label(key)).Add(float64(more))
		}
	}
	for key, count := range was {
		if now[key] == 0 {
			g.WithLabelValues(r.controller, path, label(key)).Sub(float64(count))
		}
	}
}

// camelCase joins words, as Kubernetes does in names of reasons.
func camelCase(words string) string {
	var joined strings.Builder
	for word := range strings.FieldsSeq(words) {
		joined.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return joined.String()
}

// forget drops a resource that is gone.
func (r *root) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := r.known[key]
	if entry == nil {
		return
	}
	delete(r.known, key)
	r.resources.WithLabelValues(r.controller).Dec()
	for _, status := range entry.conditions {
		r.leave(key, status)
	}
	for which, status := range entry.features {
		r.leaveFeature(key, which, status)
	}
	for _, status := range entry.components {
		r.moveComponent(status, &componentStatus{path: status.path})
	}
}

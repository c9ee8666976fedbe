package plan

import (
	"github.com/espalier-dev/espalier/apis"
)

// state is what the plan makes of an object.
type state int8

const (
	// stateDone: there is nothing to do, and nothing to wait for.
	stateDone state = iota
	// stateAct: something may be done now.
	stateAct
	// stateHeld: something is to be done, but it is not its turn.
	stateHeld
	// stateWaiting, and those after it, are obstacles.
	stateWaiting
	stateFailed
	stateBlocked
	stateNotOurs
	// stateGone: the record is dropped.
	stateGone
)

// item is what the plan works out about one record.
type item struct {
	key      Key
	record   *apis.InventoryRecord
	position int32
	// desired is nil for one that is to go.
	desired *Desired
	seen    Observed
	kind    *kind
	// space is the record of the namespace that the object is in, if there is one.
	space *namespace
	// failure is why an operation failed in this pass.
	failure string
	failed  bool

	state   state
	action  Action
	reason  string
	message string
	// rollout: what is desired of it was never written. It waits for its turn, where what was written before is put right at once.
	rollout bool
	// volatile: it is not ready, and holds nobody up.
	volatile bool
	// unseen: nobody knows whether it is there.
	unseen bool
	// released: it may go, as far as the waves of what is desired are concerned.
	released bool
	// twin: it may be the same object as one that is desired and was not seen yet.
	twin bool
	// wave is the index of the wave in which the object is applied, or deleted.
	wave int
	// order is the wave in which the object is deleted, given what has to go before.
	order int16
}

// namespace is what the plan knows of a namespace that the component has.
type namespace struct {
	item *item
	// left, unreleased and order are those of a kind, for what is in the namespace.
	left, unreleased int
	order            int16
}

func (it *item) act(action Action, reason string) {
	it.state, it.action, it.reason = stateAct, action, reason
}

// wait says what the object waits for, in its record too.
func (it *item) wait(status apis.ObjectStatus, message string) {
	it.stand(stateWaiting, status, message)
}

// pause says what is not known yet of the object. The record is left alone: it has what was known last, and the cluster has not
// changed because we begin to look.
func (it *item) pause(message string) {
	it.state, it.message = stateWaiting, message
}

func (it *item) stand(s state, status apis.ObjectStatus, message string) {
	it.state, it.message = s, message
	it.record.Status, it.record.Message = status, shorten(message, recordMessage)
}

// hold puts off what is to be done.
func (it *item) hold() {
	if it.state == stateAct {
		it.state = stateHeld
	}
}

// fail gives up, for this pass, on an operation that failed already.
func (it *item) fail() {
	if it.state == stateAct && it.failed {
		it.stand(stateFailed, it.record.Status, it.failure)
	}
}

// defines tells whether the object defines types.
func (it *item) defines() bool {
	return it.kind.defines || len(it.record.ManagedTypes) > 0
}

// holder tells whether others have to go before the object may.
func (it *item) holder() bool {
	return it.kind.namespace || it.defines()
}

// stage is the part of a wave in which the object is written.
func (it *item) stage() int {
	switch {
	case it.kind.managed:
		return stageManaged
	case it.kind.late:
		return stageLate
	default:
		return stageRegular
	}
}

// The stages of a wave.
const (
	stageRegular = iota
	stageLate
	stageManaged
	stages
)

func (it *item) operation() Operation {
	o := Operation{Action: it.action, Key: it.key, Version: it.record.Version, UID: it.seen.UID, Reason: it.reason, Pattern: -1}
	switch it.action {
	case ActionCreate:
		o.UID = ""
		fallthrough
	case ActionAdopt, ActionApply, ActionReplace:
		if it.desired != nil {
			o.Override = it.action != ActionCreate && it.desired.UpdatePolicy == apis.UpdateApplyOverride
			o.Stamp = it.desired.ReapplyInterval > 0 && it.desired.Digest != DigestOnce
		}
	default:
	}
	return o
}

// removalStage is the part of a wave in which the object is deleted: instances of managed types go before what may serve
// them.
func (it *item) removalStage() int {
	if it.kind.managed && !it.holder() {
		return 0
	}
	return 1
}

// obstacle returns what the item is in the way of being done.
func (it *item) obstacle() (o Obstacle, is bool) {
	o = Obstacle{Key: it.key, Message: it.message}
	switch it.state {
	case stateWaiting:
		o.Kind = ObstacleWaiting
	case stateFailed:
		o.Kind = ObstacleFailed
	case stateBlocked:
		o.Kind = ObstacleBlocked
	case stateNotOurs:
		o.Kind = ObstacleNotOurs
	default:
		return Obstacle{}, false
	}
	return o, true
}

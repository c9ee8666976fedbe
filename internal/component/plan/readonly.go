package plan

import "github.com/espalier-dev/espalier/apis"

// assessReadOnly decides about an object that is only read. Its record is not kept. The first line that applies counts:
//
//	the component is  observed     decision
//	suspended         anything     nothing to do: it is not the component's to suspend
//	anything else     nothing yet  wait
//	                  absent       wait, unless its absence is ignored
//	                  terminating  wait
//	                  present      done, or wait until it is ready
func (b *builder) assessReadOnly(it *item) {
	o := &it.observed
	absent := o.Presence == Absent
	switch {
	case b.in.Suspended, absent && it.desired.IgnoreAbsence:
		it.record.Phase = apis.PhaseReady
		it.state = stateDone
	case o.Presence == PresenceUnknown:
		it.waitForObservation(messageUnobserved)
	case absent:
		it.setState(stateWaiting, apis.ObjectNotFound, messageAbsent)
	case o.Terminating:
		it.setState(stateWaiting, apis.ObjectTerminating, it.observed.deletion())
	default:
		it.assessReadiness()
	}
}

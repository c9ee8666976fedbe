package plan

import (
	"cmp"

	"github.com/espalier-dev/espalier/apis"
)

const messageRunFailed = "it failed and is gone; it is run again when its manifest changes"

// assessEnded decides about a desired object that is gone for good: a Job that was deleted after it finished, or an
// object that is written once. It reports whether there is one. It never runs a Job twice for the same desired state
// without knowing that the run did not finish:
//
//	the Job ended       the record says           decision
//	with success        anything                  done
//	with a failure      it was written            an obstacle, until another state is desired
//	before it finished  anything                  create (not decided here)
//	unseen              it was written            done
//	unseen              it was written, failed    an obstacle, until another state is desired
//	unseen              anything else             create (not decided here)
//
// A Job that is being deleted by its time to live counts as gone.
func (it *item) assessEnded() bool {
	r, d, o := it.record, it.desired, &it.observed
	once := sameOrigin(d.Digest, DigestOnce)
	if !once && !d.Expires {
		return false
	}
	written := r.UID != "" && !it.unwritten && r.Phase != apis.PhaseRecreating
	ending := EndingUnknown
	if d.Expires && sameOrigin(o.Digest, d.Digest) {
		ending = o.Ending
	}
	if ending == EndingUnknown || ending == EndingInterrupted && once {
		if !written || o.Presence != Absent {
			return false
		}
		if ending = EndingCompleted; d.Expires && r.Status == apis.ObjectFailed {
			ending = EndingFailed
		}
	}
	switch {
	case ending == EndingCompleted:
		recordPurged(r)
		it.state, it.unwritten = stateDone, false
		return true
	case ending == EndingFailed && written:
		text := messageRunFailed
		if r.Status == apis.ObjectFailed {
			text = cmp.Or(r.Message, text)
		}
		it.setState(stateFailed, apis.ObjectFailed, text)
		return true
	}
	return false
}

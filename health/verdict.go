package health

import (
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/message"
)

// verdict is how an object is. Both its health and its readiness follow from it.
type verdict struct {
	status apis.ObjectStatus
	// reason and message say why the object is not Current.
	reason, message string
	attributes      map[string]string
	// waves is the readiness if the waves of a component see another one than the status and the message.
	waves Readiness
}

var current = verdict{status: apis.ObjectCurrent}

func inProgress(message string) verdict {
	return verdict{status: apis.ObjectInProgress, message: message}
}

func failed(message string) verdict { return verdict{status: apis.ObjectFailed, message: message} }

func unknown(message string) verdict { return verdict{status: apis.ObjectUnknown, message: message} }

func terminating(message string) verdict {
	return verdict{status: apis.ObjectTerminating, reason: ReasonTerminating, message: message}
}

// because returns the verdict with a reason.
func (v verdict) because(reason string) verdict {
	v.reason = reason
	return v
}

// toWaves returns the verdict with the readiness of another one.
func (v verdict) toWaves(other verdict) verdict {
	v.waves = other.readiness()
	return v
}

// volatile returns the verdict with a readiness that is volatile while it is InProgress.
func (v verdict) volatile() verdict {
	v.waves = v.readiness()
	v.waves.Volatile = v.status == apis.ObjectInProgress
	return v
}

// readiness returns the readiness that a verdict means.
func (v verdict) readiness() Readiness {
	if v.waves.Status != "" {
		return v.waves
	}
	return Readiness{Status: v.status, Message: message.Stable(v.message)}
}

package plan

import (
	"errors"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/fault"
)

// Locked reports whether clients may hold a mutex while they make a call: discovery, and an event that a recorder
// writes (refreshExistingEventSeries and finishSeries of client-go). Virtual time stands still while a goroutine waits
// for a mutex, so such a call must not take any: it has no latency, and meets nothing that waits.
func Locked(c fault.Call) bool {
	return c.Verb == fault.Discover || slices.Contains(recorded, c.Verb) && ofEvents(c.Path)
}

// recorded are the verbs with which recorders write events.
var recorded = []string{fault.Create, fault.Update, fault.Patch}

// ofEvents reports whether a path, which may be a pattern of a fault, is one of events, in the core group or in that of
// their own.
func ofEvents(path string) bool {
	if strings.HasPrefix(path, "/apis/events.k8s.io/") {
		return true
	}
	words := strings.Split(path, "/") // "", api, v1, namespaces, default, events, name
	return len(words) > 5 && words[1] == "api" && words[3] == "namespaces" &&
		strings.TrimSuffix(words[5], "*") == "events"
}

// waits reports whether a call that a fault strikes takes time: the client is asked to wait, or the user deletes
// something meanwhile.
func waits(f fault.Fault) bool {
	return f.Kind == fault.Throttles || f.Kind == fault.UserDeletes && f.Delay == 0
}

var errWaits = errors.New("recorders hold a mutex while they write events, and virtual time stands still if they " +
	"wait meanwhile: choose Fails, Refuses or LosesAnswer for requests for events")

// validateLocked returns an error if the fault names calls that must not wait, and would have them wait.
func validateLocked(f fault.Fault) error {
	if waits(f) && ofEvents(f.Path) && (f.Verb == "" || slices.Contains(recorded, f.Verb)) {
		return errWaits
	}
	return nil
}

package readiness

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
)

// reason says why an object is not Current that kstatus finds to be so.
func (s *subject) reason(computed *status.Result) string {
	switch s.kind {
	case kindDeployment:
		return s.deployment(computed)
	case kindReplicaSet:
		return s.replicaSet()
	case kindStatefulSet:
		return s.statefulSet()
	case kindDaemonSet:
		return s.daemonSet()
	case kindService:
		return "waiting for an address"
	}
	if c, ok := s.condition("Ready"); ok {
		return c.String()
	}
	return computed.Message
}

const unfinished = "the roll-out is not finished"

func (s *subject) deployment(computed *status.Result) string {
	wanted := s.number(1, "spec", "replicas")
	total := s.number(0, "status", "replicas")
	updated := s.number(0, "status", "updatedReplicas")
	available := s.number(0, "status", "availableReplicas")
	ready := s.number(0, "status", "readyReplicas")

	message := unfinished
	switch {
	case updated < wanted && updated < available:
		message = of(updated, wanted, "replica", "updated")
	case available < wanted:
		message = of(available, wanted, "replica", "available")
	case ready < wanted:
		message = of(ready, wanted, "replica", "ready")
	case total > wanted:
		message = surplus(total - wanted)
	}
	if computed.Status == status.FailedStatus {
		message = "progress deadline exceeded: " + message
	}
	return message + s.replicaFailure()
}

func (s *subject) replicaSet() string {
	wanted := s.number(1, "spec", "replicas")
	total := s.number(0, "status", "replicas")
	available := s.number(0, "status", "availableReplicas")

	message := unfinished
	switch {
	case available < wanted:
		message = of(available, wanted, "replica", "available")
	case total > wanted:
		message = surplus(total - wanted)
	}
	return message + s.replicaFailure()
}

// replicaFailure says why replicas cannot be created. The message of the condition names the pod that failed last, which is
// another one each time.
func (s *subject) replicaFailure() string {
	if c, ok := s.condition("ReplicaFailure"); ok && c.status == "True" && c.reason != "" {
		return " (" + c.reason + ")"
	}
	return ""
}

func (s *subject) statefulSet() string {
	wanted := s.number(1, "spec", "replicas")
	total := s.number(0, "status", "replicas")
	updated := s.number(0, "status", "updatedReplicas")
	ready := min(total, s.number(0, "status", "readyReplicas"))
	// Those below the partition are to stay as they are.
	changing := max(0, wanted-s.number(0, "spec", "updateStrategy", "rollingUpdate", "partition"))

	switch {
	case ready < wanted:
		return of(ready, wanted, "replica", "ready")
	case total > wanted:
		return surplus(total - wanted)
	case updated < changing:
		return of(updated, changing, "replica", "updated")
	}
	return unfinished
}

func (s *subject) daemonSet() string {
	wanted := s.number(-1, "status", "desiredNumberScheduled")
	updated := s.number(0, "status", "updatedNumberScheduled")
	ready := min(s.number(0, "status", "numberReady"), s.number(0, "status", "numberAvailable"))

	switch {
	case wanted < 0 || field(s.object.Object, "status", "observedGeneration") == nil:
		return "has not been observed yet"
	case updated < wanted && updated < ready:
		return of(updated, wanted, "node", "updated")
	case ready < wanted:
		return of(ready, wanted, "node", "ready")
	}
	return unfinished
}

// of says how far a roll-out is, as in "1 of 3 replicas available".
func of(n, wanted int64, noun, state string) string {
	return fmt.Sprintf("%d of %s %s", n, count(wanted, noun), state)
}

func surplus(n int64) string {
	return "waiting for " + count(n, "surplus replica") + " to go"
}

func count(n int64, noun string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// maxMessage is the length of the longest message, in bytes.
const maxMessage = 200

// changing are the parts of a message of others that make another message of it each time: times and UIDs.
var changing = regexp.MustCompile(
	`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?(Z|UTC|[+-]\d\d:?\d\d))*( m=[+-][\d.]+)?` +
		`|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)

// clean makes one line of limited length of a message, which says the same whenever the same is the matter.
func clean(message string) string {
	if message == "" {
		return ""
	}
	// What is far beyond the limit need not be looked at.
	message = strings.ToValidUTF8(message[:min(len(message), 4*maxMessage)], "")
	if strings.Count(message, "-") >= 2 {
		message = changing.ReplaceAllLiteralString(message, "…")
	}
	message = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, message)
	message = strings.Join(strings.Fields(message), " ")
	if len(message) <= maxMessage {
		return message
	}
	cut := maxMessage - len("…")
	for !utf8.RuneStart(message[cut]) {
		cut--
	}
	return strings.TrimRight(message[:cut], " ") + "…"
}

package health

import (
	"cmp"
	"fmt"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/message"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Readiness says whether an object is as desired, by what its status says.
type Readiness struct {
	Status apis.ObjectStatus
	// Message says in a stable text of limited length why the object is not Current. It is empty if the object is
	// Current.
	Message string
	// Volatile reports whether the object waits for another one, which may be deployed after it.
	Volatile bool
}

// ReadinessOf says whether the object is as desired. It applies kstatus, and rules of its own for kinds where kstatus
// is wrong. It does not change the object, and never fails. The first of these that applies decides:
//
//   - It is being deleted: Terminating.
//   - Its generation has not been observed, or a condition Reconciling is True: InProgress.
//   - A condition Stalled is True: Failed.
//   - The rule of its kind says that it is not Current; for kinds without a rule, its condition Ready says so.
//
// Otherwise it is Current. So an object without a status is Current unless a rule of its kind says otherwise, since
// many kinds never have one. If the status does not have the form that the rules expect, the result is Unknown.
func ReadinessOf(object *unstructured.Unstructured) Readiness {
	return newSubject(object).verdict().readiness()
}

// Static reports whether the objects of a kind are Current as soon as they exist: every API server serves the kind, and
// its status has nothing that a rule looks at, neither conditions nor an observed generation.
func Static(kind schema.GroupKind) bool { return rules[kind].static }

// subject is an object with what most rules look at.
type subject struct {
	object     *unstructured.Unstructured
	kind       schema.GroupKind
	conditions []content.Condition
}

func newSubject(object *unstructured.Unstructured) *subject {
	return &subject{
		object:     object,
		kind:       object.GroupVersionKind().GroupKind(),
		conditions: content.ConditionsOf(object.Object),
	}
}

// verdict returns how the object is.
func (s *subject) verdict() verdict {
	v, decided := s.verdictOfAll()
	if !decided {
		v = s.verdictOfKind()
	}
	if v.status != apis.ObjectInProgress && v.status != apis.ObjectFailed {
		return v
	}
	v.reason = cmp.Or(v.reason, s.reason())
	if s.kind == kinds.Pod {
		return s.blame(v)
	}
	return v
}

// verdictOfAll applies the rules for all kinds. kstatus has these rules too, but does not say which of them applied.
func (s *subject) verdictOfAll() (v verdict, decided bool) {
	if s.text("metadata", "deletionTimestamp") != "" {
		return terminating(message.Deletion(s.object.GetFinalizers())), true
	}
	generation, known := content.Field(s.object, "metadata", "generation").(int64)
	observed, reported := content.Field(s.object, "status", "observedGeneration").(int64)
	if known && reported && observed != generation {
		text := fmt.Sprintf("generation %d, observed %d", generation, observed)
		if observed == content.NeverObserved {
			text = fmt.Sprintf("generation %d", generation)
		}
		return inProgress("has not been observed yet (" + text + ")"), true
	}
	// Reconciling comes first, in any order of the conditions: what is still tried has not failed.
	if c, ok := s.firstTrue(string(kstatus.ConditionReconciling)); ok {
		return inProgress(message.WithReasons(c.Type, c.Reason, c.Message)), true
	}
	if c, ok := s.firstTrue(string(kstatus.ConditionStalled)); ok {
		return failed(message.WithReasons(c.Type, c.Reason, c.Message)), true
	}
	return verdict{}, false
}

// verdictOfKind applies the rule of the kind to what kstatus says.
func (s *subject) verdictOfKind() verdict {
	judge := rules[s.kind].judge
	if s.kind == kinds.Pod {
		return judge(s, unknown(""))
	}
	computed, err := kstatus.Compute(s.object)
	if err != nil {
		return unknown(fmt.Sprintf("its status cannot be read: %v", err))
	}
	v := current
	if computed.Status != kstatus.CurrentStatus {
		v = verdict{status: apis.ObjectStatus(computed.Status), message: computed.Message}
		if c, ok := s.condition("Ready"); ok {
			v.message = c.String()
		}
	}
	if judge != nil {
		return judge(s, v)
	}
	return v
}

// condition returns the first condition with the name.
func (s *subject) condition(name string) (content.Condition, bool) {
	for _, c := range s.conditions {
		if c.Type == name {
			return c, true
		}
	}
	return content.Condition{}, false
}

// firstTrue returns the first condition with the name that is True.
func (s *subject) firstTrue(name string) (content.Condition, bool) {
	for _, c := range s.conditions {
		if c.Type == name && c.Status == "True" {
			return c, true
		}
	}
	return content.Condition{}, false
}

// has reports whether the first condition with the name has that status.
func (s *subject) has(name, status string) bool {
	c, ok := s.condition(name)
	return ok && c.Status == status
}

// number returns the integer at a path, or fallback if there is none.
func (s *subject) number(fallback int64, path ...string) int64 {
	return content.Number(s.object, fallback, path...)
}

func (s *subject) text(path ...string) string { return content.Text(s.object, path...) }

// waitingFor says what has to happen first, as in "waiting for 1 pod to end".
func waitingFor(n int64, noun, verb string) string {
	return "waiting for " + count(n, noun) + " to " + verb
}

func count(n int64, noun string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

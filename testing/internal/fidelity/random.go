package fidelity

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CompareRandomCalls fails the test if two clusters answer the random calls of a seed differently. It prints the
// shortest sequence of calls that it finds for a difference.
func CompareRandomCalls(t testing.TB, seed uint64, real, other func() (Cluster, error)) {
	t.Helper()
	r := &differential{t: t, real: real, other: other}
	calls := randomCalls(newDice(seed), 40)
	n, _, _ := r.differ(calls)
	if n < 0 {
		return
	}
	calls = r.shrink(calls[:n+1])
	n, want, got := r.differ(calls)
	if n < 0 {
		t.Errorf("seed %d: a difference that comes and goes", seed)
		return
	}
	var story strings.Builder
	for _, c := range calls[:n+1] {
		fmt.Fprintf(&story, "  %s\n", c.name)
	}
	t.Errorf("seed %d: the last of these calls is answered differently\n%swant %s\ngot  %s",
		seed, &story, want, got)
}

// differential runs calls on two clusters.
type differential struct {
	t           testing.TB
	real, other func() (Cluster, error)
}

// differ returns the first call that is answered differently, -1 if there is none, and the answers.
func (r *differential) differ(calls []randomCall) (n int, want, got string) {
	namespace := fmt.Sprintf("random%05d", runs.Add(1))
	on := func(newCluster func() (Cluster, error)) (answers []string) {
		c := check{"", func(p *probe) {
			s := &session{probe: p, uids: map[string]string{}, versions: map[string]string{}}
			for _, call := range calls {
				answers = append(answers, strings.ReplaceAll(call.run(s), namespace, "NAMESPACE"))
			}
		}}
		if answer := c.answer(r.t.Context(), newCluster, namespace); answer != "" {
			answers = append(answers, answer)
		}
		return answers
	}
	reals, others := on(r.real), on(r.other)
	for i := range max(len(reals), len(others)) {
		switch {
		case i >= len(reals):
			return min(i, len(calls)-1), "", others[i]
		case i >= len(others):
			return min(i, len(calls)-1), reals[i], ""
		case reals[i] != others[i]:
			return min(i, len(calls)-1), reals[i], others[i]
		}
	}
	return -1, "", ""
}

// shrink leaves out what is not needed for a difference.
func (r *differential) shrink(calls []randomCall) []randomCall {
	for i := len(calls) - 2; i >= 0; i-- {
		less := slices.Delete(slices.Clone(calls), i, i+1)
		if n, _, _ := r.differ(less); n >= 0 {
			calls = less[:n+1]
			i = min(i, len(calls)-1)
		}
	}
	return calls
}

// session is one run of random calls.
type session struct {
	*probe
	// copies are the objects that were answered, oldest first.
	copies []client.Object
	// uids and versions replace what servers choose, in the order in which it was seen.
	uids, versions map[string]string
}

// answered notes what came of a call with the object that it answered. What a dry run creates has a UID of its own.
func (s *session) answered(obj client.Object, dryRun []string, err error) string {
	switch {
	case err != nil:
		return verdict(err)
	case dryRun != nil && s.uids[string(obj.GetUID())] == "":
		uid := obj.GetUID()
		obj.SetUID("")
		return fmt.Sprintf("ok %s with UID %t", s.masked(obj), uid != "")
	}
	s.copies = append(s.copies, obj.DeepCopyObject().(client.Object))
	return "ok " + s.masked(obj)
}

// masked returns the JSON of an object, without what differs from server to server.
func (s *session) masked(obj client.Object) string {
	raw, err := json.Marshal(obj)
	s.must(err)
	u := &unstructured.Unstructured{}
	s.must(json.Unmarshal(raw, &u.Object))
	u.SetResourceVersion(seen(s.versions, "v", u.GetResourceVersion()))
	metadata := u.Object["metadata"].(fields)
	metadata["uid"] = seen(s.uids, "uid", string(obj.GetUID()))
	metadata["creationTimestamp"] = !obj.GetCreationTimestamp().Time.IsZero()
	if obj.GetDeletionTimestamp() != nil {
		metadata["deletionTimestamp"] = true
	}
	var managers []string
	for _, entry := range obj.GetManagedFields() {
		managers = append(managers, fmt.Sprintf("%s %s %s %s %s", entry.Manager, entry.Operation, entry.APIVersion,
			entry.Subresource, entry.FieldsV1.GetRawBytes()))
	}
	slices.Sort(managers)
	metadata["managedFields"] = managers
	raw, err = json.Marshal(u.Object)
	s.must(err)
	return string(raw)
}

// seen returns the name of a value: how many were seen before it.
func seen(names map[string]string, prefix, value string) string {
	if value == "" {
		return ""
	}
	if _, ok := names[value]; !ok {
		names[value] = prefix + strconv.Itoa(len(names))
	}
	return names[value]
}

// copyOf returns one of the objects that were answered: that many before the last one.
func (s *session) copyOf(before int) client.Object {
	if len(s.copies) == 0 {
		return s.configMap("none")
	}
	i := max(0, len(s.copies)-1-before)
	return s.copies[i].DeepCopyObject().(client.Object)
}

// randomCall is one call of a random sequence. What it does depends on what was answered before.
type randomCall struct {
	name string
	run  func(s *session) string
}

// dice is a source of random calls. The objects of one sequence are of two kinds, so that calls meet.
type dice struct {
	*rand.Rand
	kinds [2]int
}

func newDice(seed uint64) dice {
	r := rand.New(rand.NewPCG(seed, 0))
	return dice{r, [2]int{r.IntN(5), r.IntN(5)}}
}

func randomCalls(r dice, n int) []randomCall {
	calls := make([]randomCall, n)
	for i := range calls {
		calls[i] = kindsOfCalls[r.IntN(len(kindsOfCalls))](r)
	}
	return calls
}

func pick[T any](r dice, from ...T) T { return from[r.IntN(len(from))] }

// kindsOfCalls are as often as they are tried. What collects garbage is left out: nobody knows when it happens.
var kindsOfCalls = []func(r dice) randomCall{
	randomCreate, randomCreate, randomUpdate, randomUpdate, randomUpdate, randomStatus, randomPatch, randomPatch,
	randomJSONPatch,
	randomApply, randomApply, randomApply, randomDelete, randomDelete, randomRead,
}

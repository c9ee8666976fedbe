package reconcilers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/kinds"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The objects of a story are in the order of their creation: "D" has the desired name, "O" another one; a small letter
// is not ready yet, and "-" behind it means that it is terminating.
func objectsOf(story string) (objects []namedChild) {
	for i, letter := range story {
		switch letter {
		case '-':
			objects[len(objects)-1].terminating = true
		default:
			objects = append(objects, namedChild{
				desired: letter == 'D' || letter == 'd',
				ready:   letter == 'D' || letter == 'O',
				created: time.Unix(int64(i), 0),
			})
		}
	}
	return objects
}

func (n names) String() string {
	text := fmt.Sprintf("child %d", n.child)
	if n.child < 0 {
		text = "create"
	}
	if n.waits {
		text += " waits"
	}
	if n.refused {
		text += " refused"
	}
	if len(n.first) > 0 {
		text += fmt.Sprint(" first ", n.first)
	}
	if len(n.last) > 0 {
		text += fmt.Sprint(" last ", n.last)
	}
	return text
}

func TestDecideNames(t *testing.T) {
	for _, row := range []struct{ story, replaces, refuses string }{
		{"", "create", "create"},
		{"D", "child 0", "child 0"},
		{"d-", "child 0", "child 0"},
		{"O", "create last [0]", "child 0 refused"},
		{"o", "create last [0]", "child 0 refused"},
		{"O-", "create", "child 0 waits"},
		{"OO-", "create last [0]", "child 0 refused"},
		{"OD", "child 1 last [0]", "child 1"},
		{"Od", "child 1 last [0]", "child 1"},
		// The name before is desired again.
		{"Do", "child 0 last [1]", "child 0"},
		{"D-O", "child 0 last [1]", "child 0"},
		// A third name is desired before the second was ready.
		{"Oo", "create first [1] last [0]", "child 0 refused"},
		{"Ood", "child 2 first [1] last [0]", "child 2"},
		{"OO", "create first [0] last [1]", "child 1 refused"},
		{"oo", "create first [1] last [0]", "child 0 refused"},
		{"oOo", "create first [0 2] last [1]", "child 1 refused"},
		// One name was generated twice.
		{"Dd", "child 0 first [1]", "child 0"},
		{"dD", "child 1 first [0]", "child 1"},
		{"D-D", "child 1", "child 1"},
	} {
		for refuses, want := range map[bool]string{false: row.replaces, true: row.refuses} {
			if got := decideNames(refuses, objectsOf(row.story)).String(); got != want {
				t.Errorf("%q becomes %q, want %q (refuses: %t)", row.story, got, want, refuses)
			}
		}
	}
}

// Whatever there is, the object that counts as the child is not deleted unless it has another name, and of the others
// one stays until the child is ready.
func TestDecideNamesDeletesNeitherTheChildNorAll(t *testing.T) {
	var stories func(prefix string, n int) []string
	stories = func(prefix string, n int) []string {
		all := []string{prefix}
		for _, next := range []string{"D", "d", "O", "o", "D-", "O-"} {
			if n > 0 {
				all = append(all, stories(prefix+next, n-1)...)
			}
		}
		return all
	}
	for _, story := range stories("", 4) {
		objects := objectsOf(story)
		for _, refuses := range []bool{false, true} {
			decided := decideNames(refuses, objects)
			deleted := slices.Concat(decided.first, decided.last)
			if refuses && len(deleted) > 0 {
				t.Errorf("%q has %v deleted, want nothing", story, deleted)
			}
			live := 0
			for i, object := range objects {
				if !object.terminating && !slices.Contains(decided.first, i) {
					live++
				}
				if object.terminating && slices.Contains(deleted, i) {
					t.Errorf("%q has %d deleted, which is terminating (refuses: %t)", story, i, refuses)
				}
			}
			anyLive := slices.ContainsFunc(objects, func(c namedChild) bool { return !c.terminating })
			if anyLive && live == 0 {
				t.Errorf("%q has all deleted, want one left", story)
			}
			if slices.Contains(deleted, decided.child) && !decided.waits {
				t.Errorf("%q has the child %d deleted (refuses: %t)", story, decided.child, refuses)
			}
		}
	}
}

func TestMayHoldData(t *testing.T) {
	for kind, want := range map[schema.GroupKind][2]bool{ // updated, only created
		kinds.PersistentVolumeClaim: {true, true},
		kinds.StatefulSet:           {true, true},
		kinds.Deployment:            {false, true},
		kinds.Secret:                {false, true},
		kinds.Job:                   {false, false},
		{Group: "acid.example.com", Kind: "Base"}: {true, true},
		{Group: "acid.example.com", Kind: "Job"}:  {true, true},
	} {
		if got := [2]bool{mayHoldData(kind, false), mayHoldData(kind, true)}; got != want {
			t.Errorf("%s may hold data: %v, want %v", kind, got, want)
		}
	}
}

func TestHasName(t *testing.T) {
	named := func(namespace, name, prefix string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, GenerateName: prefix}}
	}
	for _, row := range []struct {
		child, desired *corev1.ConfigMap
		want           bool
	}{
		{named("a", "x", ""), named("a", "x", ""), true},
		{named("a", "x", ""), named("b", "x", ""), false},
		{named("", "x", ""), named("b", "x", ""), true},
		{named("a", "x", ""), named("a", "y", ""), false},
		{named("a", "x-12", "x-"), named("a", "", "x-"), true},
		{named("a", "x-12", ""), named("a", "", "x-"), true},
		{named("a", "x-y-12", "x-y-"), named("a", "", "x-"), false},
		{named("a", "x-12", "x-"), named("a", "x-13", "x-"), false},
		{named("a", "z-12", ""), named("a", "", "x-"), false},
		{named("a", "z-12", ""), named("a", "", ""), false},
	} {
		if got := hasName(row.child, row.desired); got != row.want {
			t.Errorf("hasName(%v, %v) is %v, want %v", row.child.ObjectMeta, row.desired.ObjectMeta, got, row.want)
		}
	}
}

package reconcilers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	for _, row := range []struct{ story, createFirst, deleteFirst, keepOld, refuseName string }{
		{"", "create", "create", "create", "create"},
		{"D", "child 0", "child 0", "child 0", "child 0"},
		{"d-", "child 0", "child 0", "child 0", "child 0"},
		{"O", "create last [0]", "child 0 waits first [0]", "create", "child 0 refused"},
		{"o", "create last [0]", "child 0 waits first [0]", "create", "child 0 refused"},
		{"O-", "create", "child 0 waits", "create", "child 0 waits"},
		{"OO-", "create last [0]", "child 0 waits first [0]", "create", "child 0 refused"},
		{"OD", "child 1 last [0]", "child 1 first [0]", "child 1", "child 1"},
		{"Od", "child 1 last [0]", "child 1 first [0]", "child 1", "child 1"},
		// The name before is desired again.
		{"Do", "child 0 last [1]", "child 0 first [1]", "child 0", "child 0"},
		{"D-O", "child 0 last [1]", "child 0 first [1]", "child 0", "child 0"},
		// A third name is desired before the second was ready.
		{"Oo", "create first [1] last [0]", "child 0 waits first [0 1]", "create", "child 0 refused"},
		{"Ood", "child 2 first [1] last [0]", "child 2 first [0 1]", "child 2", "child 2"},
		{"OO", "create first [0] last [1]", "child 1 waits first [0 1]", "create", "child 1 refused"},
		{"oo", "create first [1] last [0]", "child 0 waits first [0 1]", "create", "child 0 refused"},
		{"oOo", "create first [0 2] last [1]", "child 1 waits first [0 1 2]", "create", "child 1 refused"},
		// One name was generated twice.
		{"Dd", "child 0 first [1]", "child 0 first [1]", "child 0", "child 0"},
		{"dD", "child 1 first [0]", "child 1 first [0]", "child 1", "child 1"},
		{"D-D", "child 1", "child 1", "child 1", "child 1"},
	} {
		for how, want := range map[Renaming]string{
			CreateFirst: row.createFirst, DeleteFirst: row.deleteFirst, KeepOld: row.keepOld, RefuseName: row.refuseName,
		} {
			if got := decideNames(how, objectsOf(row.story)).String(); got != want {
				t.Errorf("with %s, %q becomes %q, want %q", how, row.story, got, want)
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
		for _, how := range []Renaming{CreateFirst, DeleteFirst, KeepOld, RefuseName} {
			decided := decideNames(how, objects)
			deleted := slices.Concat(decided.first, decided.last)
			if (how == KeepOld || how == RefuseName) && len(deleted) > 0 {
				t.Errorf("with %s, %q has %v deleted, want nothing", how, story, deleted)
			}
			live := 0
			for i, object := range objects {
				if !object.terminating && !slices.Contains(decided.first, i) {
					live++
				}
				if object.terminating && slices.Contains(deleted, i) {
					t.Errorf("with %s, %q has %d deleted, which is terminating", how, story, i)
				}
			}
			anyLive := slices.ContainsFunc(objects, func(c namedChild) bool { return !c.terminating })
			if how == CreateFirst && anyLive && live == 0 {
				t.Errorf("with %s, %q has all deleted, want one left", how, story)
			}
			if slices.Contains(deleted, decided.child) && !decided.waits {
				t.Errorf("with %s, %q has the child %d deleted", how, story, decided.child)
			}
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

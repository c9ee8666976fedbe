package plugins_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/espalier-dev/espalier/plugins"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// release returns an operator of a plugin in the process, called by its category, that gives these dependents.
func (w *world) release(category string, given ...*plugins.Dependent) {
	w.host = &plugins.Host{InProcess: []plugins.Plugin{{Category: category, Types: []plugins.Type{{
		Name: "postgres", Dependents: func(context.Context, plugins.Request) ([]*plugins.Dependent, error) {
			return given, nil
		},
	}}}}}
	w.root = w.newRoot(capability(w.host))
}

// named returns a dependent whose object has its name.
func named(name string) *plugins.Dependent {
	return plugins.Owns(name, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// left returns which of the objects are there.
func (w *world) left(names ...string) (left string) {
	for _, name := range names {
		if w.has(&corev1.ConfigMap{}, name) {
			left += name
		}
	}
	return left
}

// An answer that has nothing of what exists, or is that of another plugin, changes nothing, also after a restart of the
// operator, until it says that it means it, or the spec of the owner changes.
func TestAnswersThatDropAll(t *testing.T) {
	const here, elsewhere = "Database", "DATABASE"
	refused := plugins.ReasonAnswerRefused
	type given = []*plugins.Dependent
	for name, test := range map[string]struct {
		category string
		given    given
		reason   string
		// left are the objects that are there then, and after the spec has changed.
		left, after string
	}{
		"nothing":                    {here, nil, refused, "ab", ""},
		"others":                     {here, given{named("c")}, refused, "ab", "c"},
		"one that is only read":      {here, given{named("a").ReadOnly()}, refused, "ab", "a"},
		"one of two":                 {here, given{named("b")}, "Ready", "b", "b"},
		"nothing, as is meant":       {here, given{plugins.DropsAll()}, "Ready", "", ""},
		"the same elsewhere":         {elsewhere, given{named("a"), named("b")}, refused, "ab", "ab"},
		"others elsewhere, as meant": {elsewhere, given{named("a"), plugins.DropsAll()}, "Ready", "a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.release(here, named("a"), named("b"))
			w.until("gadget", "Ready")
			for range 2 {
				w.release(test.category, test.given...)
				w.until("gadget", test.reason)
				if left := w.left("a", "b", "c"); left != test.left {
					t.Errorf("the objects %q are there, want %q", left, test.left)
				}
			}
			w.ask("gadget", "value=x")
			w.until("gadget", "Ready")
			if left := w.left("a", "b", "c"); left != test.after {
				t.Errorf("the objects %q are there after the spec has changed, want %q", left, test.after)
			}
		})
	}
}

// The status of an owner of an earlier release does not say which plugin has answered: that of now may be another one.
// What exists stays as long as nobody knows of a change, and then the plugin is recorded.
func TestAnswersOfAnEarlierRelease(t *testing.T) {
	w := newWorld(t, nil)
	w.release("Database", named("a"), named("b"))
	w.until("gadget", "Ready")
	before := w.widget("gadget")
	before.Status.ForEach[0].Source, before.Status.ForEach[0].SourceGeneration = "", 0
	if err := w.Status().Update(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	w.release("DATABASE")
	w.until("gadget", plugins.ReasonAnswerRefused)
	w.release("DATABASE", named("b"))
	w.until("gadget", "Ready")
	record, generation := w.widget("gadget").Status.ForEach[0], w.widget("gadget").Generation
	if record.Source != "DATABASE in the operator" || record.SourceGeneration != generation || w.left("a", "b") != "b" {
		t.Errorf("the record is %+v, want the plugin and the generation %d", record, generation)
	}
}

// A sidecar that comes back without what it has given changes nothing.
func TestSidecarComesBackEmpty(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	w := worldOf(t, &plugins.Host{Sidecars: map[string]string{socket: bound}})
	first := startSidecar(t, socket, "first")
	w.until("gadget", "Ready")
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	startSidecar(t, socket, "empty")
	found := w.until("gadget", plugins.ReasonAnswerRefused)
	want := "the answer of " + socket + " is refused: it has none of the dependents that exist, config:ConfigMap: " +
		"they stay until its answer says drops_all, or the spec of the owner changes"
	if found.Message != want || w.mode() != "first" {
		t.Errorf("the condition says %q, and the object is that of %q, want %q and the first", found.Message, w.mode(), want)
	}
}

// What the objects of one plugin have yielded is not sent to another one, also while the objects are kept.
func TestValuesAreForOnePlugin(t *testing.T) {
	w := newWorld(t, nil)
	secret := named("a").Yields("name", "metadata", "name")
	w.release("Database", secret)
	w.until("gadget", "Ready")
	local := w.host.InProcess[0]
	var got []map[string]string
	w.host = &plugins.Host{InProcess: []plugins.Plugin{local, {Category: "DATABASE", Types: []plugins.Type{{
		Name: "postgres", Versions: []string{"2"},
		Dependents: func(_ context.Context, r plugins.Request) ([]*plugins.Dependent, error) {
			got = append(got, r.Values)
			return nil, plugins.Invalid("no")
		},
	}}}}}
	w.root = w.newRoot(capability(w.host))
	w.host.Prefer = []string{"Database in the operator"}
	w.until("gadget", "Ready")
	w.ask("gadget", "version=2")
	for range 3 {
		w.until("gadget", plugins.ReasonInvalid)
	}
	if len(got) != 1 || got[0] != nil {
		t.Errorf("the other plugin has got the values %v, want none", got)
	}
}

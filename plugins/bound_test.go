package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/plugins"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// untilSays has the gadget reconciled until its condition has the reason, and a text with what is wanted. A text that
// alone differs is shown after a minute, so each request is later than the one before.
func (w *world) untilSays(reason, want string) {
	w.t.Helper()
	now := time.Now()
	controlplanetest.Eventually(w.t, "the condition does not say "+want, func(context.Context) error {
		now = now.Add(2 * time.Minute)
		_, err := w.onceAt("gadget", now)
		found := meta.FindStatusCondition(w.widget("gadget").Status.Conditions, condition)
		if found == nil || found.Reason != reason || !strings.Contains(found.Message, want) {
			return fmt.Errorf("it is %+v, and the last error %w", found, errors.Join(err))
		}
		return nil
	})
}

// A source that claims a capability which its entry does not allow is not asked, so it deletes nothing of that of
// another one. The log and NoPlugin name it first, also where others do not run.
func TestSourceClaimsMoreThanItsEntryAllows(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "z")
	w := worldOf(t, &plugins.Host{
		InProcess: []plugins.Plugin{testPlugin("local", &calls{})},
		Sidecars:  map[string]string{socket: "queue/rabbit,database/mysql", "/run/a": bound, "/run/b": "x", "/run/c": ""},
	})
	w.until("gadget", "Ready")
	startSidecar(t, socket, "empty")
	w.untilLogged("the plugin claims what it must not provide")
	w.until("gadget", "Ready")
	if !w.has(&corev1.ConfigMap{}, "gadget-config") || w.mode() != "local" {
		t.Error("the object of the plugin in the process is gone, want it as it was")
	}
	for asked, want := range map[string]string{
		"version=99.9": "no plugin provides database/postgres 99.9: there are the versions 16, 15 (" + socket +
			" claims it, and its entry does not allow that, /run/a does not run: it cannot be reached, /run/b does not run: " +
			`its entry has "x": give a category and a type, such as database/postgres or queue/* and 1 more)`,
		// It is named as well by those who ask for what its entry allows.
		"type=mysql": socket + " claims database/postgres, and its entry does not allow that",
	} {
		w.ask("gadget", asked)
		w.untilSays(plugins.ReasonNoPlugin, want)
		if w.mode() != "local" {
			t.Error("the object is gone, want it as it was")
		}
	}
}

// A program is run for what the list lets it provide, and the list may change that. One without an entry is not run.
func TestEntryOfAProgram(t *testing.T) {
	f := newFolder(t)
	digest := f.put("databases", "")
	f.writeText(digest + "  databases\n")
	w := worldOf(t, f.host(map[string]string{"databases": "program"}))
	w.untilLogged("its entry does not say what it may provide")
	w.untilSays(plugins.ReasonNoPlugin, "(databases does not run: its entry does not say what it may provide")
	f.writeText(digest + "  databases\tDatabase/*\n")
	w.untilMode("program")
	w.until("gadget", "Ready")
	f.writeText(digest + "  databases\tdatabase/mysql\n")
	w.untilSays(plugins.ReasonNoPlugin, "databases claims it, and its entry does not allow that")
	f.writeText(digest + "  databases\tdatabase/mysql,database/POSTGRES\n")
	w.until("gadget", "Ready")
	if w.mode() != "program" {
		t.Errorf("the object is that of %q, want that of the program", w.mode())
	}
}

package simulation

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// runFaults runs a test of TestToldFaults in a test binary of its own, and returns what it prints.
func runFaults(t *testing.T, name string, flags ...string) (string, error) {
	t.Helper()
	flags = append([]string{"-test.run=^TestToldFaults$/^" + name + "$", "-test.v", "-simulation.budget=0"}, flags...)
	command := exec.CommandContext(t.Context(), os.Args[0], flags...)
	command.Env = append(os.Environ(), findBugs+"=true")
	out, err := command.CombinedOutput()
	return string(out), err
}

// TestToldFaults has the stories that runFaults tells.
func TestToldFaults(t *testing.T) {
	if os.Getenv(findBugs) == "" {
		return
	}
	for name, story := range toldStories {
		t.Run(name, func(t *testing.T) {
			RunFaults(t, reconciles(plantedBugs["the error of unregister is swallowed"].do), story)
		})
	}
}

var toldStories = map[string]func(w *World){
	"long": func(w *World) {
		app := newApp("one")
		w.Create(app)
		w.Rest()
		for n := range 12 {
			w.Update(app, func() { app.Data = map[string]string{"text": fmt.Sprint(n)} })
			w.Pass(time.Second)
		}
		unregister(w, app)
	},
	"dereference": func(w *World) {
		app := newApp("one")
		w.Create(app)
		w.Rest()
		w.Get(app)
		if got := app.Finalizers[0]; got != finalizer {
			w.Errorf("the finalizer is %s", got)
		}
		unregister(w, app)
	},
	"fatal": func(w *World) {
		app := newApp("one")
		w.Create(app)
		w.Rest()
		if !w.Exists(app) {
			w.Fatal("the app is not ready")
		}
		unregister(w, app)
	},
	"return": func(w *World) {
		app := newApp("one")
		w.Create(app)
		w.Rest()
		if !w.Exists(app) {
			return
		}
		unregister(w, app)
	},
	"skip": func(w *World) {
		app := newApp("one")
		w.Create(app)
		w.Rest()
		if !w.Exists(app) {
			w.Skip("no app")
		}
		unregister(w, app)
	},
}

func unregister(w *World, app *corev1.ConfigMap) {
	w.Helper()
	w.Delete(app)
	w.Rest()
	if registered.Of(w).all["one"] {
		w.Error("one is still registered")
	}
}

// TestFaultsOfEachCall tries fewer faults than there are of a call that is made again and again: the call that is made
// once has its faults, too, and what was not tried is named.
func TestFaultsOfEachCall(t *testing.T) {
	t.Parallel()
	out, err := runFaults(t, "long", "-simulation.faults=24")
	if err == nil || !strings.Contains(out, "one is still registered") ||
		!strings.Contains(out, `{Kind: simulation.Fails, Actor: "operator", Verb: "call", Path: "unregister one"}`) {
		t.Errorf("the bug is not found: %v\n%s", err, out)
	}
	for _, says := range []string{"left out: ", " of call register one", "set -simulation.faults=0"} {
		if !strings.Contains(out, says) {
			t.Errorf("it does not say %q:\n%s", says, out)
		}
	}
}

// TestUserDeletesWithoutChecks tells stories that end before they check anything if the user deletes the resource early.
func TestUserDeletesWithoutChecks(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]string{
		"dereference": "index out of range", "fatal": "the app is not ready", "return": "", "skip": "no app",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _ := runFaults(t, name)
			for line := range strings.Lines(out) {
				if strings.Contains(line, "--- PASS: ") && strings.Contains(line, "/UserDeletes_") {
					t.Errorf("a story that was not told to its end passes: %s", line)
				}
			}
			for _, says := range []string{"the story ended before its own Delete", why, "2 more showed nothing"} {
				if !strings.Contains(out, says) {
					t.Errorf("it does not say %q:\n%s", says, out)
				}
			}
		})
	}
}

// TestSkippedStory tells stories that do not come to their end.
func TestSkippedStory(t *testing.T) {
	t.Parallel()
	o := attempt(t, Options{}, func(w *World) { w.Skip("not here") })
	if o.failed || !o.skipped || !strings.Contains(o.untold, ": faults_test.go:") ||
		!strings.HasSuffix(o.untold, ": not here") {
		t.Errorf("it is %v, %v and says %q", o.failed, o.skipped, o.untold)
	}
	o = attempt(t, Options{}, func(*World) { runtime.Goexit() })
	if o.failed || o.skipped || o.untold == "" {
		t.Errorf("it is %v, %v and says %q", o.failed, o.skipped, o.untold)
	}
}

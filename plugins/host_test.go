package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/plugins"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// mode returns the mode of the plugin that has made the object of the gadget.
func (w *world) mode() string {
	w.t.Helper()
	object := &corev1.ConfigMap{}
	if !w.has(object, "gadget-config") {
		return ""
	}
	return object.Data["mode"]
}

// untilMode has the gadget reconciled until its object is that of the plugin with the mode.
func (w *world) untilMode(mode string) {
	w.t.Helper()
	controlplanetest.Eventually(w.t, "the object is not that of "+mode, func(context.Context) error {
		_, err := w.once("gadget")
		if got := w.mode(); got != mode {
			return fmt.Errorf("it is that of %q, and the last error %w", got, errors.Join(err))
		}
		return nil
	})
}

// A program that is not listed does not run, also if it was put in the place of one that is. What runs is what was
// compared.
func TestProgramsThatAreNotListed(t *testing.T) {
	f := newFolder(t)
	host := f.host(map[string]string{"databases": "first"})
	f.put("databases", "")
	for _, name := range []string{"SHA256SUMS", ".hidden"} {
		if err := os.WriteFile(filepath.Join(f.path, name), []byte("no program"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := worldOf(t, host)
	found := w.until("gadget", plugins.ReasonNoPlugin)
	if want := "postgres (databases does not run: it is not in the list)"; !strings.Contains(found.Message, want) {
		t.Errorf("the condition says %q, want %q", found.Message, want)
	}

	f.write(map[string]string{"databases": strings.Repeat("00", 32)})
	w.untilLogged("its SHA-256 is not the one in the list")

	f.write(map[string]string{"databases": f.put("databases", "listed")})
	w.untilMode("first")

	f.put("databases", "swapped")
	w.ask("gadget", "do=exit")
	w.until("gadget", plugins.ReasonPluginUnavailable)
	w.ask("gadget", "value=after")
	w.until("gadget", "Ready")

	f.write(nil)
	w.until("gadget", plugins.ReasonNoPlugin)
	if w.mode() != "first" {
		t.Error("the object is gone with the plugin, want it kept")
	}
}

// A plugin appears, is replaced and goes while the host runs, and no resource has to be touched for that.
func TestProgramsChange(t *testing.T) {
	f := newFolder(t)
	host := f.host(map[string]string{"databases": "program"})
	w := worldOf(t, host)
	w.until("gadget", plugins.ReasonNoPlugin)

	f.write(map[string]string{"databases": f.put("databases", "1")})
	w.untilMode("program")
	w.until("gadget", "Ready")

	host.Environment["databases"][0] = modeEnvironment + "=another"
	f.write(map[string]string{"databases": f.put("databases", "2")})
	w.untilMode("another")
	w.until("gadget", "Ready")

	if err := os.Remove(filepath.Join(f.path, "databases")); err != nil {
		t.Fatal(err)
	}
	w.until("gadget", plugins.ReasonNoPlugin)
}

// While a program takes the place of another one, both run. They count as one, and the new one is
// asked although the one before has not ended yet.
func TestProgramIsReplacedByOneThatRuns(t *testing.T) {
	f := newFolder(t)
	host := f.host(map[string]string{"databases": "never ends"})
	f.write(map[string]string{"databases": f.put("databases", "1")})
	w := worldOf(t, host)
	w.untilMode("raw")
	w.until("gadget", "Ready")
	object := &corev1.ConfigMap{}
	w.has(object, "gadget-config")
	before := "/proc/" + object.Data["pid"]

	host.Environment["databases"][0] = modeEnvironment + "=program"
	f.write(map[string]string{"databases": f.put("databases", "2")})
	controlplanetest.Eventually(t, "the new program is not asked", func(context.Context) error {
		_, err := w.once("gadget")
		found := meta.FindStatusCondition(w.widget("gadget").Status.Conditions, condition)
		if found == nil || found.Reason != "Ready" && found.Reason != plugins.ReasonAsking {
			t.Fatalf("the condition is %+v while a program is replaced, want it to stay Ready or to be asking", found)
		}
		if got := w.mode(); got != "program" {
			return fmt.Errorf("the object is that of %q, and the last error is %w", got, errors.Join(err))
		}
		return nil
	})
	controlplanetest.Eventually(t, "the program before is not killed", func(context.Context) error {
		if _, err := os.Stat(before); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reading %s returns %w, want that it does not exist", before, errors.Join(err))
		}
		return nil
	})
	w.until("gadget", "Ready")
}

// What two plugins provide is asked of neither, unless the host prefers one. Versions that only one has are its own.
func TestSeveralPlugins(t *testing.T) {
	plugin := func(category, version string) plugins.Plugin {
		p := testPlugin("version "+version, &calls{})
		p.Category = category
		return p
	}
	all := []plugins.Plugin{plugin("Database", "9.6"), plugin("DATABASE", "16.2"), plugin("database", "latest")}
	all[2].Types[0].Versions = append(all[2].Types[0].Versions, "9.6")
	const old, young = "Database in the operator", "DATABASE in the operator"
	for name, test := range map[string]struct {
		prefer              []string
		asked, reason, mode string
	}{
		"any version":              {reason: plugins.ReasonSeveralPlugins},
		"a version that two have":  {asked: "version=9.6", reason: plugins.ReasonSeveralPlugins},
		"a version that one has":   {asked: "version=16.2", reason: "Ready", mode: "version 16.2"},
		"no such version":          {asked: "version=12", reason: plugins.ReasonNoPlugin},
		"no such type":             {asked: "type=mysql", reason: plugins.ReasonNoPlugin},
		"the preferred one":        {prefer: []string{"x", young, old}, reason: "Ready", mode: "version 16.2"},
		"preferred, of a version":  {prefer: []string{young, old}, asked: "version=9.6", reason: "Ready", mode: "version 9.6"},
		"none that has it is":      {prefer: []string{young}, asked: "version=9.6", reason: plugins.ReasonSeveralPlugins},
		"one alone, not preferred": {prefer: []string{old}, asked: "version=16.2", reason: "Ready", mode: "version 16.2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOf(t, &plugins.Host{InProcess: all, Prefer: test.prefer})
			w.ask("gadget", test.asked)
			found := w.until("gadget", test.reason)
			if w.mode() != test.mode {
				t.Errorf("the object is that of %q, want that of %q", w.mode(), test.mode)
			}
			if several := found.Reason == plugins.ReasonSeveralPlugins; several != strings.Contains(found.Message, old) {
				t.Errorf("the condition says %q, want the plugins that provide it", found.Message)
			}
		})
	}
}

// A plugin that serves first does not count before the one that is preferred to it, even if that serves later.
func TestSeveralPluginsAtTheStart(t *testing.T) {
	f, host := withPlugin(t, "program")
	host.Sidecars = map[string]string{filepath.Join(t.TempDir(), "s"): bound}
	host.Prefer = slices.Collect(maps.Keys(host.Sidecars))
	startSidecar(t, host.Prefer[0], "sidecar")
	w := worldOf(t, host)
	w.until("gadget", "Ready")
	if w.mode() != "sidecar" {
		t.Errorf("the object is that of %q, want that of the sidecar", w.mode())
	}
	f.write(nil)
	w.untilLogged("not in the list any more")
	w.until("gadget", "Ready")
}

// startSidecar starts the test binary as a sidecar. The end of the test kills it.
func startSidecar(t *testing.T, socket, mode string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sidecar := exec.Command(self)
	sidecar.Env = []string{modeEnvironment + "=" + mode, plugins.SocketEnvironment + "=" + socket}
	if err := sidecar.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sidecar.Process.Kill() // it may have ended
		_ = sidecar.Wait()
	})
	return sidecar
}

// A sidecar is a plugin that somebody else runs. It may come later than the host, and be another one the next time.
func TestSidecar(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	w := worldOf(t, &plugins.Host{Sidecars: map[string]string{socket: bound}})
	found := w.until("gadget", plugins.ReasonNoPlugin)
	if want := socket + " does not run: it cannot be reached"; !strings.Contains(found.Message, want) {
		t.Errorf("the condition says %q, want %q", found.Message, want)
	}
	for _, mode := range []string{"first", "second"} {
		sidecar := startSidecar(t, socket, mode)
		w.untilMode(mode)
		w.until("gadget", "Ready")
		// To connect, one has to be able to write.
		if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o660 {
			t.Errorf("the socket has %v (%v), want that its user and its group alone can connect", info.Mode(), err)
		}
		var err error
		if mode == "first" {
			// It leaves its socket behind.
			err = sidecar.Process.Kill()
		} else {
			err = sidecar.Process.Signal(os.Interrupt)
		}
		if err != nil {
			t.Fatal(err)
		}
		err = sidecar.Wait()
		if ended := sidecar.ProcessState.ExitCode(); mode == "second" && ended != 0 {
			t.Errorf("the sidecar has ended with %v, want no error after an interrupt", err)
		}
	}
}

// A host ends its plugins with itself.
func TestHostEnds(t *testing.T) {
	var pid string
	t.Run("host", func(t *testing.T) {
		_, host := withPlugin(t, "ends")
		w := worldOf(t, host)
		w.ask("gadget", "do=pid")
		w.until("gadget", "Ready")
		object := &corev1.ConfigMap{}
		w.has(object, "gadget-config")
		pid = object.Data["pid"]
	})
	if _, err := os.Stat("/proc/" + pid); err == nil || pid == "" {
		t.Errorf("the process %s of the plugin is there, want it ended with the host", pid)
	}
}

// A host does not wait for a plugin that is being started.
func TestHostEndsWhileAPluginStarts(t *testing.T) {
	_, host := withPlugin(t, "never starts")
	host.Limits.Start = time.Hour
	w := worldOf(t, host)
	w.untilLogged("it never starts")
	// The end of the test waits for the host.
}

// A list that cannot be read leaves the plugins as they are.
func TestListThatCannotBeRead(t *testing.T) {
	f, host := withPlugin(t, "program")
	w := worldOf(t, host)
	w.until("gadget", "Ready")
	f.writeText("no list\n")
	w.untilLogged(":1: a line must begin with a SHA-256 in hexadecimal")
	w.ask("gadget", "value=after")
	w.until("gadget", "Ready")
}

func TestHostsThatAreNotValid(t *testing.T) {
	valid := testPlugin("valid", &calls{})
	twice := plugins.Plugin{Category: "x", Types: append(valid.Types, valid.Types...)}
	for want, host := range map[string]*plugins.Host{
		"a Host must have both Folder and List, or none of them": {Folder: "x"},
		"the field Advertise of a Host must have":                {Advertise: &plugins.Advertisement{}},
		"the field Install of a Host must have":                  {Install: &plugins.Installation{}},
		`a plugin must be valid: the category "" must have letters`: {
			InProcess: []plugins.Plugin{{Types: valid.Types}},
		},
		`a plugin must be valid: the type "Postgres" is given twice`: {InProcess: []plugins.Plugin{twice}},
		`the type "" of a plugin must have a function Dependents`: {
			InProcess: []plugins.Plugin{{Category: "x", Types: []plugins.Type{{}}}},
		},
	} {
		if err := host.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the host has started with %v, want the error %s", err, want)
		}
	}
}

// A sidecar that does not serve is logged once, however often the host tries to connect.
func TestSidecarThatDoesNotServe(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	w := worldOf(t, &plugins.Host{Sidecars: map[string]string{socket: bound}})
	for range 3 {
		connection, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = connection.Close() // the host finds out
	}
	w.untilLogged("the plugin does not run")
	if n := strings.Count(w.logged.String(), "the plugin does not run"); n != 1 {
		t.Errorf("it is logged %d times that the plugin does not run, want once", n)
	}
}

package plugins_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/fake"
	rtime "github.com/espalier-dev/espalier/time"
	"github.com/espalier-dev/espalier/tracker"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// modeEnvironment has the test binary be a plugin, which does what the value says.
const modeEnvironment = "ESPALIER_TEST_PLUGIN"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeEnvironment); mode != "" {
		servePlugin(mode)
		return
	}
	plane.Options.CRDs = []*apiextensionsv1.CustomResourceDefinition{resources.CRD(), capabilityDefinition()}
	os.Exit(plane.Main(m))
}

// condition is what the capability reports.
const condition = resources.WidgetChildReady

var scheme = resources.NewScheme()

// world is an operator with a capability, an API server in memory, and a resource for it.
type world struct {
	client.Client
	t    *testing.T
	host *plugins.Host
	root *reconcilers.ResourceReconciler[*resources.Widget]
	// logged is what the host has logged.
	logged *logs
}

// worldOf returns a world whose host runs until the test ends.
func worldOf(t *testing.T, host *plugins.Host, objects ...client.Object) *world {
	t.Helper()
	w := newWorld(t, host, objects...)
	ctx, cancel := context.WithCancel(logr.NewContext(context.Background(), w.logged.logger()))
	done := make(chan error)
	go func() { done <- host.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the host ended with %v, want no error", err)
		}
		if t.Failed() {
			t.Log(w.logged.String())
		}
	})
	return w
}

// newWorld returns a world whose host does not run.
func newWorld(t *testing.T, host *plugins.Host, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, host: host, logged: &logs{}, Client: fake.NewClientBuilder().WithScheme(scheme).
		WithReturnManagedFields().WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
		widget("gadget"),
	).WithObjects(objects...).Build()}
	w.root = w.newRoot(capability(host))
	return w
}

// newRoot returns a controller with its own memory, as a new process has.
func (w *world) newRoot(node *plugins.Node[*resources.Widget]) *reconcilers.ResourceReconciler[*resources.Widget] {
	return espalier.For(reconcilers.Config{
		Client: w.Client, APIReader: w.Client, Recorder: &record.FakeRecorder{}, Tracker: tracker.New(scheme, 0),
	}, node)
}

// capability returns the node that the tests are about.
func capability(host *plugins.Host) *plugins.Node[*resources.Widget] {
	return plugins.Capability[*resources.Widget](host, "database", "postgres").
		Creates(&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}, &corev1.Pod{}).Reads(&corev1.ConfigMap{}).
		Reports(condition).Asks(func(_ context.Context, w *resources.Widget) (string, string) {
		return typeOf(w), w.Spec.Fields["version"]
	})
}

func typeOf(w *resources.Widget) string {
	switch asked := w.Spec.Fields["type"]; asked {
	case "":
		return "postgres"
	case "none":
		return ""
	default:
		return asked
	}
}

func widget(name string) *resources.Widget {
	return &resources.Widget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: "uid-of-" + typesUID(name), Generation: 1,
	}}
}

// logs is a logger that keeps what is logged.
type logs struct{ lines syncBuilder }

func (l *logs) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		l.lines.WriteString(prefix + " " + args + "\n")
	}, funcr.Options{Verbosity: 1})
}

func (l *logs) String() string { return l.lines.String() }

// ask changes the spec of a widget.
func (w *world) ask(name string, pairs ...string) {
	w.t.Helper()
	found := w.widget(name)
	found.Spec.Fields = map[string]string{}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		found.Spec.Fields[key] = value
	}
	if err := w.Update(w.t.Context(), found); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) widget(name string) *resources.Widget {
	w.t.Helper()
	found := &resources.Widget{}
	if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, found); err != nil {
		w.t.Fatal(err)
	}
	return found
}

// object returns whether an object is there, and reads it.
func (w *world) has(object client.Object, name string) bool {
	w.t.Helper()
	err := w.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, object)
	if err != nil && !apierrs.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

// once has a widget reconciled. It returns the error of the controller.
func (w *world) once(name string) (reconcilers.Result, error) {
	return w.onceAt(name, time.Now())
}

// onceAt is once at a time.
func (w *world) onceAt(name string, now time.Time) (reconcilers.Result, error) {
	return w.root.Reconcile(rtime.StashNow(w.t.Context(), now), reconcilers.Request{
		NamespacedName: client.ObjectKey{Namespace: "default", Name: name},
	})
}

// patience is how long a call or a start may take that has to come to its end: many tests share few processors.
const patience = 3 * time.Minute

// until has a widget reconciled until its condition has the reason, and nothing is to be done at once.
func (w *world) until(name, reason string) metav1.Condition {
	w.t.Helper()
	var reached metav1.Condition
	controlplanetest.Eventually(w.t, "the condition has not the reason "+reason, func(context.Context) error {
		before := w.widget(name).ResourceVersion
		result, err := w.once(name)
		after := w.widget(name)
		found := meta.FindStatusCondition(after.Status.Conditions, condition)
		atOnce := result.RequeueAfter > 0 && result.RequeueAfter <= 10*time.Millisecond
		rests := before == after.ResourceVersion && !atOnce
		if found == nil || found.Reason != reason || !rests {
			return fmt.Errorf("the conditions of %s are %+v, at rest is %v, and the last error %w",
				name, after.Status.Conditions, rests, errors.Join(err))
		}
		reached = *found
		return nil
	})
	return reached
}

// folder is a folder with programs, and their list.
type folder struct {
	t          testing.TB
	path, list string
}

func newFolder(t testing.TB) folder {
	t.Helper()
	path := t.TempDir()
	f := folder{t: t, path: path, list: filepath.Join(t.TempDir(), "SHA256SUMS")}
	f.write(nil)
	return f
}

// host returns a host for the folder. Programs do what their mode says.
func (f folder) host(modes map[string]string) *plugins.Host {
	environment := map[string][]string{}
	for name, mode := range modes {
		environment[name] = []string{modeEnvironment + "=" + mode}
	}
	return &plugins.Host{
		Folder: f.path, List: f.list, Environment: environment, Every: 20 * time.Millisecond,
		Limits: plugins.Limits{Call: patience, Memory: memoryOfTests},
	}
}

// put puts the test binary into the folder, with a text at its end, and returns its digest.
func (f folder) put(name, text string) string {
	f.t.Helper()
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		f.t.Fatal(err)
	}
	defer from.Close()
	// A file that runs cannot be written, so another one takes its place, as an installer does.
	to, err := os.OpenFile(filepath.Join(f.path, "."+name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		f.t.Fatal(err)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, sum), io.MultiReader(from, strings.NewReader(text)))
	err = errors.Join(err, to.Close(), os.Rename(to.Name(), filepath.Join(f.path, name)))
	if err != nil {
		f.t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// bound is the entry of plugins that may provide what the tests ask for.
const bound = "database/postgres"

// write writes the list.
func (f folder) write(digests map[string]string) {
	f.t.Helper()
	var text strings.Builder
	for name, digest := range digests {
		fmt.Fprintf(&text, "%s  %s\t%s\n", digest, name, bound)
	}
	f.writeText(text.String())
}

func (f folder) writeText(text string) {
	f.t.Helper()
	err := os.WriteFile(f.list+".new", []byte(text), 0o600)
	if err = errors.Join(err, os.Rename(f.list+".new", f.list)); err != nil {
		f.t.Fatal(err)
	}
}

// withPlugin returns a folder with one plugin that is listed, and a host for it.
func withPlugin(t testing.TB, mode string) (folder, *plugins.Host) {
	t.Helper()
	f := newFolder(t)
	f.write(map[string]string{"databases": f.put("databases", "")})
	return f, f.host(map[string]string{"databases": mode})
}

// untilLogged waits until the host has logged a text.
func (w *world) untilLogged(text string) {
	w.t.Helper()
	controlplanetest.Eventually(w.t, "the host does not log "+text, func(context.Context) error {
		if !strings.Contains(w.logged.String(), text) {
			return fmt.Errorf("it has logged:\n%s", w.logged)
		}
		return nil
	})
}

package plugintest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/plugins/plugintest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var calls atomic.Int64

// plugin copies the data of a pod's annotations, or does what an annotation of the spec says.
var plugin = plugins.Plugin{Category: "copies", Types: []plugins.Type{{Name: "config", Dependents: copies}}}

func copies(_ context.Context, r plugins.Request) ([]*plugins.Dependent, error) {
	var spec corev1.PodSpec
	if err := r.Owner.Decode(&spec); err != nil {
		return nil, err
	}
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: r.Owner.Name + "-copy"}, Data: map[string]string{"host": spec.Hostname},
	}
	switch spec.Hostname {
	case "waits":
		return nil, espalier.NotReady("NoHost", "there is no host")
	case "invalid":
		return nil, plugins.Invalid("the host is wrong", "very")
	case "fails":
		return nil, errors.New("boom")
	case "differs":
		object.Data["calls"] = fmt.Sprint(calls.Add(1))
	case "differs as a program":
		object.Data["environment"] = fmt.Sprint(len(os.Environ()))
	case "elsewhere":
		object.Namespace = "other"
	}
	return []*plugins.Dependent{plugins.Owns("copy", object).CreateOnly()}, nil
}

func TestMain(m *testing.M) {
	if os.Getenv(plugins.SocketEnvironment) != "" {
		plugins.Serve(plugin)
	}
	os.Exit(plugintest.Main(m, plugin))
}

func owner(host string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	pod.Spec.Hostname = host
	return pod
}

func wanted(host string) []*plugins.Dependent {
	return []*plugins.Dependent{plugins.Owns("copy", &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "web-copy"}, Data: map[string]string{"host": host},
	}).CreateOnly()}
}

var passing = plugintest.Rows{
	"a copy":     {Owner: owner("a"), Want: wanted("a")},
	"not ready":  {Owner: owner("waits"), WantProblem: "NoHost: there is no host"},
	"invalid":    {Owner: owner("invalid"), WantProblem: "the host is wrong, very"},
	"an error":   {Owner: owner("fails"), WantProblem: "boom"},
	"no version": {Owner: owner("a"), Version: "1", Type: "Config", Want: wanted("a")},
}

func TestRows(t *testing.T) { passing.Run(t, plugin) }

// TestSidecar runs the same rows on a process that the test has started.
func TestSidecar(t *testing.T) { passing.RunSidecar(t, startSidecar(t)) }

// startSidecar has the test binary serve on a socket, until the test ends.
func startSidecar(t *testing.T) (socket string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(t.TempDir(), "socket")
	command := exec.CommandContext(t.Context(), self)
	command.Env = append(os.Environ(), plugins.SocketEnvironment+"="+socket)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Wait() })
	return socket
}

// These rows fail. TestRowsThatFail runs them in another process.
var failing = map[string]struct {
	row  plugintest.Row
	says string
}{
	"another object":  {plugintest.Row{Owner: owner("a"), Want: wanted("b")}, `map[string]any{"host": string("b")}`},
	"another word":    {plugintest.Row{Owner: owner("a")}, "the plugin gives other dependents"},
	"no problem":      {plugintest.Row{Owner: owner("a"), WantProblem: "x"}, `the plugin says "", want "x"`},
	"another problem": {plugintest.Row{Owner: owner("fails"), WantProblem: "x"}, `the plugin says "boom", want "x"`},
	"by chance":       {plugintest.Row{Owner: owner("differs")}, "another answer when it is asked again"},
	"by the process":  {plugintest.Row{Owner: owner("differs as a program")}, "another answer as a program"},
	"elsewhere":       {plugintest.Row{Owner: owner("elsewhere")}, `a host refuses the answer: the dependent "copy"`},
	"no owner":        {plugintest.Row{}, "a row must have an Owner"},
}

func failingRows(t *testing.T) plugintest.Rows {
	t.Helper()
	if os.Getenv("FAILING") == "" {
		t.Skip("TestRowsThatFail runs it")
	}
	rows := plugintest.Rows{}
	for name, f := range failing {
		rows[name] = f.row
	}
	return rows
}

func TestFailing(t *testing.T) { failingRows(t).Run(t, plugin) }

func TestFailingSidecar(t *testing.T) {
	rows := failingRows(t)
	delete(rows, "by the process") // there is but one
	rows.RunSidecar(t, startSidecar(t))
}

func TestRowsThatFail(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, "-test.run=^TestFailing", "-test.v")
	command.Env = append(os.Environ(), "FAILING=1")
	output, err := command.CombinedOutput()
	if err == nil {
		t.Fatalf("the rows pass, want each to fail:\n%s", output)
	}
	for name, f := range failing {
		for _, test := range []string{"TestFailing", "TestFailingSidecar"} {
			if test == "TestFailingSidecar" && name == "by the process" {
				continue
			}
			failed := "--- FAIL: " + test + "/" + strings.ReplaceAll(name, " ", "_")
			if !strings.Contains(string(output), failed) || !strings.Contains(string(output), f.says) {
				t.Errorf("the output of the row %q is\n%s\nwant that %s fails with %q", name, output, test, f.says)
			}
		}
	}
}

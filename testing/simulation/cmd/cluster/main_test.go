package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// attached is a cluster that a test commands.
type attached struct {
	t       *testing.T
	in      io.WriteCloser
	answers *bufio.Reader
	ended   chan error
}

func attach(t *testing.T) *attached {
	t.Helper()
	in, commands := io.Pipe()
	answers, out := io.Pipe()
	a := &attached{t: t, in: commands, answers: bufio.NewReader(answers), ended: make(chan error, 1)}
	go func() {
		err := run(context.Background(), []string{"-no-workloads"}, in, out)
		_ = out.Close()
		a.ended <- err
	}()
	return a
}

// client reads the answer that names a kubeconfig.
func (a *attached) client() (c client.Client, kubeConfig string) {
	a.t.Helper()
	path, ok := strings.CutPrefix(a.answer(), kubeConfigIs)
	if !ok {
		a.t.Fatalf("the answer is %q, want a kubeconfig", path)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		a.t.Fatal(err)
	}
	if c, err = client.New(config, client.Options{}); err != nil {
		a.t.Fatal(err)
	}
	return c, path
}

func (a *attached) answer() string {
	a.t.Helper()
	line, err := a.answers.ReadString('\n')
	if err != nil {
		a.t.Fatalf("there is no answer but %q: %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (a *attached) command(line string) {
	a.t.Helper()
	if _, err := io.WriteString(a.in, line+"\n"); err != nil {
		a.t.Fatal(err)
	}
}

func (a *attached) want(command, answer string) {
	a.t.Helper()
	a.command(command)
	if got := a.answer(); got != answer {
		a.t.Errorf("the answer to %q is %q, want %q", command, got, answer)
	}
}

func TestAttached(t *testing.T) {
	a := attach(t)
	admin, kubeConfig := a.client()
	a.command("user\tjoe\tstaff")
	joe, _ := a.client()
	list := func(c client.Client) error { return c.List(t.Context(), &corev1.NamespaceList{}) }
	if err := list(admin); err != nil {
		t.Errorf("the administrator got %v, want an answer", err)
	}
	if err := list(joe); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "joe"`) {
		t.Errorf("the user without a role got %v, want it forbidden to joe", err)
	}
	a.want("user\t", "error: add a user: the user has no name")
	a.want("pause", `error: there is no command "pause"`)
	for range 2 { // The second call does nothing.
		a.want("stop", "ok")
	}
	if err := list(admin); !utilnet.IsConnectionRefused(err) {
		t.Errorf("a stopped API server answered %v, want a refused connection", err)
	}
	for range 2 {
		a.want("start", "ok")
	}
	if err := list(admin); err != nil {
		t.Errorf("after the start the answer is %v, want the namespaces", err)
	}
	if err := a.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-a.ended; err != nil {
		t.Errorf("the program ended with %v, want no error", err)
	}
	if _, err := os.Stat(filepath.Dir(kubeConfig)); !os.IsNotExist(err) {
		t.Errorf("the look for the folder of the kubeconfig ends with %v, want it gone", err)
	}
}

func TestArgumentsThatAreWrong(t *testing.T) {
	for argument, want := range map[string]string{
		"start":              `there are flags alone, and no "start"`,
		"-crds=/nonexistent": "/nonexistent",
	} {
		err := run(t.Context(), []string{argument}, nil, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q in it", argument, err, want)
		}
	}
}

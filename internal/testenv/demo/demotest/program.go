package demotest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

var exported = regexp.MustCompile(`(?m)^ *export KUBECONFIG='(.*)'$`)

// startPatience is how long a program may take, and what compiles it before.
const startPatience = 10 * time.Minute

// StartProgram starts a program, and returns when it has printed a line that exports KUBECONFIG: the path, and what
// returns all that it has printed until then. The context of the command is that of the test. When it ends, the program
// is interrupted, as by Ctrl-C: the test fails unless it succeeds then, and removes the kubeconfig.
func StartProgram(t testing.TB, command *exec.Cmd) (kubeconfig string, printed func() string) {
	t.Helper()
	output := &output{}
	command.Stdout, command.Stderr = output, output
	// The command may start others, they are interrupted with it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancelCause(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end(fmt.Errorf("it has ended: %w", command.Wait()))
	}()
	t.Cleanup(func() {
		<-ended
		if !command.ProcessState.Success() {
			t.Errorf("%s was interrupted, and has ended with %v", command, command.ProcessState)
		}
		if _, err := os.Stat(kubeconfig); !os.IsNotExist(err) {
			t.Errorf("the kubeconfig %q of %s is there after the end (%v)", kubeconfig, command, err)
		}
		if t.Failed() {
			t.Logf("%s has printed\n%s", command, output)
		}
	})
	err := demo.Eventually(ctx, startPatience, func(context.Context) error {
		match := exported.FindStringSubmatch(output.String())
		if match == nil {
			return errors.New("there is no line that exports KUBECONFIG")
		}
		kubeconfig = match[1]
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return kubeconfig, output.String
}

// output is what a program has printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

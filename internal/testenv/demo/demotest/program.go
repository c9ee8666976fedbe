package demotest

import (
	"bytes"
	"context"
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

// StartWithKubeconfig is [StartProgram] for a program that prints a line which exports KUBECONFIG. It returns the path.
// The test fails unless the program removes the kubeconfig when it is interrupted.
func StartWithKubeconfig(t testing.TB, command *exec.Cmd) (kubeconfig string, printed func() string) {
	t.Helper()
	// Cleanups run in the reverse order.
	t.Cleanup(func() {
		if _, err := os.Stat(kubeconfig); !os.IsNotExist(err) {
			t.Errorf("the kubeconfig %q of %s is there after the end (%v)", kubeconfig, command, err)
		}
	})
	return StartProgram(t, command, exported)
}

// StartProgram starts a program, and returns when it has printed a line that matches: the first group of the match, and
// what returns all that it has printed until then. The context of the command is that of the test. When it ends, the
// program is interrupted, as by Ctrl-C: the test fails unless it succeeds then.
func StartProgram(
	t testing.TB, command *exec.Cmd, line *regexp.Regexp,
) (matched string, printed func() string) {
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
		if t.Failed() {
			t.Logf("%s has printed\n%s", command, output)
		}
	})
	err := demo.Eventually(ctx, startPatience, func(context.Context) error {
		match := line.FindStringSubmatch(output.String())
		if match == nil {
			return fmt.Errorf("there is no line that matches %s", line)
		}
		matched = match[1]
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return matched, output.String
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

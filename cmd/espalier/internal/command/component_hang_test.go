package command_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

// silent is a server that takes connections and never answers. asked is closed at the first one.
func silent(t *testing.T) (url string, asked <-chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan struct{})
	var serving sync.WaitGroup
	serving.Go(func() {
		for notify := sync.OnceFunc(func() { close(first) }); ; notify() {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = connection.Close() })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); serving.Wait() })
	return "http://" + listener.Addr().String(), first
}

// hanging starts the command, which has to end within a minute.
func hanging(t *testing.T, out *terminal, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, self, args...)
	c.Env = append(os.Environ(), runsCommand+"=1", "KUBECONFIG="+os.DevNull)
	c.Stdout, c.Stderr = out, out
	return c
}

// A server that takes connections and never answers holds no command longer than its timeout, or than until a signal.
func TestServerDoesNotAnswer(t *testing.T) {
	manifests := filepath.Join(t.TempDir(), "a.yaml")
	content := []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
	if err := os.WriteFile(manifests, content, 0o600); err != nil {
		t.Fatal(err)
	}
	const overtime, interrupted = "the time is over", "signal received"
	for _, tc := range []struct {
		args string
		code int
		says string
	}{
		{"component apply shop FILE --timeout 1s", 2, overtime},
		{"component apply shop FILE --dry-run=client --timeout 1s", 2, overtime},
		{"component delete shop --timeout 1s", 2, overtime},
		{"component apply shop FILE", 130, interrupted},
		{"component delete shop", 130, interrupted},
		{"component list", 130, interrupted},
		{"component status shop", 130, interrupted},
		{"component status deployment/shop", 130, interrupted},
		{"component plan shop FILE", 130, interrupted},
		{"component diff shop FILE", 2, interrupted},
		{"page deployment/shop", 130, interrupted},
		{"tree deployment/shop --operator deployment/shop", 130, interrupted},
	} {
		t.Run(tc.args, func(t *testing.T) {
			t.Parallel()
			server, asked := silent(t)
			out := &terminal{}
			args := strings.Fields(strings.ReplaceAll(tc.args, "FILE", manifests))
			c := hanging(t, out, append(args, "-n", "shops", "--server", server)...)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			if tc.says != overtime {
				<-asked
				if err := c.Process.Signal(syscall.SIGINT); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Wait(); exitCode(err) != tc.code || !strings.Contains(out.String(), tc.says) ||
				strings.Count(out.String(), "\n") != 1 {
				t.Errorf("the command ends with %v, want the exit code %d and one line with %q:\n%s", err, tc.code, tc.says, out)
			}
		})
	}
}

// A program that writes nothing into the pipe holds no command either.
func TestStandardInputDoesNotEnd(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(reader.Close(), writer.Close()) })
	out := &terminal{}
	c := hanging(t, out, "component", "apply", "shop", "-", "--timeout", "1s")
	c.Stdin = reader
	if err := c.Run(); exitCode(err) != 2 || !strings.Contains(out.String(), "the time is over") {
		t.Errorf("the command ends with %v, want the exit code 2 and that the time is over:\n%s", err, out)
	}
}

// A program that makes credentials has no context. A second signal ends the command, whatever that does.
func TestSecondSignal(t *testing.T) {
	server, _ := silent(t)
	// Without TLS, no credentials are made.
	server = strings.Replace(server, "http:", "https:", 1)
	dir := t.TempDir()
	started, config := filepath.Join(dir, "started"), filepath.Join(dir, "kubeconfig")
	content := fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
users:
- name: test
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      interactiveMode: Never
      command: sh
      args: ["-c", "touch %s; while kill -0 $PPID; do sleep 0.1; done"]
`, server, started)
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c := hanging(t, &terminal{}, "component", "list", "--kubeconfig", config)
	// The program that makes credentials has the outputs of the command, and ends after it.
	c.WaitDelay = time.Minute
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the program that makes credentials does not start", func(context.Context) error {
		_, err := os.Stat(started)
		return err
	})
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	controlplanetest.Eventually(t, "signals do not end the command", func(context.Context) error {
		select {
		case err := <-ended:
			status, _ := c.ProcessState.Sys().(syscall.WaitStatus)
			if !status.Signaled() || status.Signal() != syscall.SIGINT {
				t.Errorf("the command ends with %v, want that the signal has ended it", err)
			}
			return nil
		default:
			return errors.Join(errors.New("it runs"), c.Process.Signal(syscall.SIGINT))
		}
	})
}

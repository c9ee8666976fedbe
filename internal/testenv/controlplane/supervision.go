package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// supervision knows the process ids of the control plane. It ends these processes when this process is gone, even if no
// deferred call runs, as after the time-out of a test. envtest does neither, so each program is started through a
// script that writes its process id to a file and then becomes the program.
type supervision struct {
	// dir has the scripts and the ids. It is removed in the end.
	dir string
	// watcher reads from alive until that is closed, which the operating system does when this process ends.
	watcher *exec.Cmd
	alive   io.WriteCloser
}

// watch waits for the end of its standard input, then kills what the .pid files in the folder name.
const watch = `cat >/dev/null; for f in "$0"/*.pid; do [ -e "$f" ] && kill -9 "$(cat "$f")"; done; rm -rf "$0"`

// supervise starts a supervision with its files in dir.
func supervise(dir string) (*supervision, error) {
	watcher := exec.Command("/bin/sh", "-c", watch, dir)
	// An interrupt typed at the terminal reaches all processes of a group. In another group the watcher survives it.
	watcher.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	alive, err := watcher.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := watcher.Start(); err != nil {
		return nil, fmt.Errorf("could not start the watcher of the control plane's processes: %w", err)
	}
	return &supervision{dir: dir, watcher: watcher, alive: alive}, nil
}

// wrap returns the path of a script that runs the program at path, supervised under name.
func (s *supervision) wrap(name, path string) (string, error) {
	script := fmt.Sprintf("#!/bin/sh\necho $$ >%s\nexec %s \"$@\"\n", quote(s.pidFile(name)), quote(path))
	wrapper := filepath.Join(s.dir, name)
	// A process forked while the file is open for writing would inherit it, and the file be too busy to run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return wrapper, os.WriteFile(wrapper, []byte(script), 0o700)
}

// quote makes one word of a shell's command line.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

func (s *supervision) pidFile(name string) string { return filepath.Join(s.dir, name+".pid") }

// kill ends the process that runs under name at once. The process may have ended before.
func (s *supervision) kill(name string) error {
	content, err := os.ReadFile(s.pidFile(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return fmt.Errorf("no process id in %s: %w", s.pidFile(name), err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("could not kill %s: %w", name, err)
	}
	return os.Remove(s.pidFile(name))
}

// end kills what still runs and removes the folder.
func (s *supervision) end() error {
	err := s.alive.Close()
	return errors.Join(err, s.watcher.Wait())
}

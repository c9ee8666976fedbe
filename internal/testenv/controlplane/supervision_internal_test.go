package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// helperVariable makes the test binary play the process that is killed; its value is the folder to use.
const helperVariable = "ESPALIER_SUPERVISION_HELPER"

// TestProcessesEndWithTheProcessThatStartedThem kills a process the hard way. The pipe its descendants inherit ends when
// the last of them is gone.
func TestProcessesEndWithTheProcessThatStartedThem(t *testing.T) {
	if dir := os.Getenv(helperVariable); dir != "" {
		superviseForever(dir)
	}
	dir := filepath.Join(t.TempDir(), "it's a folder")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	helper := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	helper.Env = append(os.Environ(), helperVariable+"="+dir)
	inherited, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	started := make([]byte, len("started"))
	if _, err := io.ReadFull(inherited, started); err != nil || string(started) != "started" {
		t.Fatalf(`the helper said %q (%v), want "started"`, started, err)
	}
	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The program that would still run ends by itself after five minutes.
	if err := inherited.(*os.File).SetReadDeadline(time.Now().Add(4 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(inherited); err != nil || len(rest) > 0 {
		t.Errorf("the program still runs: %q (%v), want it ended", rest, err)
	}
	_ = helper.Wait() // it was killed
}

// superviseForever runs a program that would take minutes.
func superviseForever(dir string) {
	s, err := supervise(dir)
	if err != nil {
		panic(err)
	}
	path, err := s.wrap("program", "/bin/sh")
	if err != nil {
		panic(err)
	}
	program := exec.Command(path, "-c", "printf started; exec sleep 300")
	program.Stdout = os.Stdout
	fmt.Fprintln(os.Stderr, program.Run())
	os.Exit(1)
}

func TestSupervisionKillsByName(t *testing.T) {
	s, err := supervise(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path, err := s.wrap("program", "/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	program := exec.Command(path, "-c", "printf started; exec sleep 300")
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("started"))); err != nil {
		t.Fatal(err)
	}
	if err := s.kill("program"); err != nil {
		t.Error(err)
	}
	if err := program.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the program ended with %v, want it killed", err)
	}
	for _, name := range []string{"program", "unknown"} {
		if err := s.kill(name); err != nil {
			t.Errorf("killing %s, which does not run: %v", name, err)
		}
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the look at the folder ends with %v, want it gone", err)
	}
}

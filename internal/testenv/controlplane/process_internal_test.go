package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestProcessThatEndsAtOnce(t *testing.T) {
	for name, script := range map[string]string{
		"failing":    "echo unknown flag; exit 2",
		"succeeding": "echo unknown flag",
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcess(t, script)
			p.minLifetime = time.Minute
			err := p.start(t.Context())
			if err == nil || !strings.Contains(err.Error(), "ended by itself") || !strings.Contains(err.Error(), "unknown flag") {
				t.Errorf("the error of start is %v, want that the process ended by itself with its output", err)
			}
			if p.stop() == nil {
				t.Error("the error of stop is nil, want that of start")
			}
		})
	}
}

func TestProcessThatEndsLater(t *testing.T) {
	p := newProcess(t, "exec sleep 300")
	if err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.err(); err != nil {
		t.Fatalf("it runs, and err returns %v", err)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	if err := p.err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the error is %v, want that the process was killed", err)
	}
}

func TestProcessThatIsStopped(t *testing.T) {
	p := newProcess(t, "exec sleep 300")
	if err := p.stop(); err != nil {
		t.Errorf("stopping before the start: %v", err)
	}
	if err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	}
}

func newProcess(t *testing.T, script string) *process {
	t.Helper()
	path := filepath.Join(t.TempDir(), controllerManagerBinary)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return &process{name: controllerManagerBinary, path: path, output: &output{}, minLifetime: minLifetime}
}

func TestOutputKeepsTheLastLines(t *testing.T) {
	var next strings.Builder
	o := &output{next: &next}
	for range 1000 {
		if _, err := o.Write([]byte("a line that is not remembered\n")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.Write([]byte("the last line\n")); err != nil {
		t.Fatal(err)
	}
	last := o.last()
	if len(last) > maxTail || !strings.HasPrefix(last, "a line") || !strings.HasSuffix(last, "the last line") {
		t.Errorf("%d bytes are remembered (%q ... %q), want at most %d, whole lines up to the last one", len(last),
			last[:20], last[len(last)-20:], maxTail)
	}
	if next.Len() < 30*1000 {
		t.Errorf("%d bytes were passed on, want at least 30000", next.Len())
	}
}

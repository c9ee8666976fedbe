package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// TestRewrite writes much more than is live.
func TestRewrite(t *testing.T) {
	k := newKept(t)
	_ = k.file.Close()
	s := quick()
	s.slack = 80_000
	k.open(s)
	k.some()
	large := strings.Repeat("1", 10_000)
	longest := 0
	for i := range 50 {
		k.append(k.next(fmt.Sprint("/large/", i%3), large+fmt.Sprint(i)))
		longest = max(longest, len(k.bytes()))
	}
	if longest < 80_000 || longest > 160_000 {
		t.Errorf("the longest file had %d bytes, want it between 80,000 and 160,000", longest)
	}
	k.reopen()
	if got := len(k.bytes()); got > 31_000 {
		t.Errorf("after the start the file has %d bytes, want at most 31,000", got)
	}
	k.logged()
	before := k.bytes()
	k.reopen()
	if len(k.bytes()) != len(before) {
		t.Errorf("a file in which all is live becomes %d bytes instead of %d", len(k.bytes()), len(before))
	}
}

// TestRewriteFails has the file stay as it is.
func TestRewriteFails(t *testing.T) {
	k := newKept(t)
	k.some()
	_ = k.file.Close()
	attempts, failing := 0, true
	s := quick()
	s.slack = 80_000
	s.rename = func(from, to string) error {
		attempts++
		if failing {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: errors.New("broken")}
		}
		return os.Rename(from, to)
	}
	k.open(s)
	k.logged("could not be rewritten", "broken")
	large := strings.Repeat("1", 10_000)
	for range 40 {
		k.append(k.next("/large", large))
	}
	if attempts > 10 {
		t.Errorf("there were %d attempts to rewrite the file while it has grown to five times its slack", attempts)
	}
	if _, err := os.Stat(k.path + rewriteSuffix); !os.IsNotExist(err) {
		t.Errorf("a file is left behind: %v", err)
	}
	failing = false
	for range 20 {
		k.append(k.next("/large", large))
	}
	if got := len(k.bytes()); got > 160_000 {
		t.Errorf("the file has %d bytes after it could be rewritten", got)
	}
	k.lines = nil
	k.reopen()
	k.logged()
}

// images are what a process that is killed would leave behind.
type images struct {
	*kept
	random *rand.Rand
	// pending is the entry that is being appended.
	pending *storage.Entry
	count   int
}

// check opens a copy of the folder as it is.
func (m *images) check() {
	m.Helper()
	m.count++
	copied := filepath.Join(m.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(filepath.Dir(m.path))); err != nil {
		m.Fatal(err)
	}
	file, entries, revision, err := open(filepath.Join(copied, filepath.Base(m.path)), Options{}, quick())
	if err != nil {
		m.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if m.pending != nil && revision == m.pending.Revision {
		with := &kept{T: m.T, want: map[string]*storage.Entry{}}
		for _, e := range m.want {
			with.has(e)
		}
		with.has(m.pending)
		with.compare(entries, revision)
	} else {
		m.compare(entries, revision)
	}
	names, err := os.ReadDir(copied)
	if err != nil || len(names) != 1 {
		m.Errorf("there is more than the file: %v, %v", names, err)
	}
}

// system checks before and after each step, and within each write.
func (m *images) system() system {
	s := quick()
	s.slack = 1000
	around := func(step error) error {
		m.check()
		return step
	}
	s.write = func(file *os.File, data []byte, offset int64) error {
		m.check()
		n := m.random.IntN(len(data))
		if err := realSystem.write(file, data[:n], offset); err != nil {
			return err
		}
		m.check()
		return around(realSystem.write(file, data[n:], offset+int64(n)))
	}
	s.sync = func(file *os.File) error { return around(nil) }
	s.truncate = func(file *os.File, length int64) error { return around(file.Truncate(length)) }
	s.rename = func(from, to string) error { return around(os.Rename(from, to)) }
	return s
}

// TestKilledAtEachStep opens what is there between any two steps, of appends and of rewriting the file.
func TestKilledAtEachStep(t *testing.T) {
	m := &images{kept: newKept(t), random: rand.New(rand.NewPCG(*seed, 0))}
	_ = m.file.Close()
	m.open(m.system())
	large := strings.Repeat("1", 300)
	for i := range 60 {
		key, value := fmt.Sprint("/", m.random.IntN(5)), fmt.Sprint(i)
		switch {
		case m.want[key] != nil && m.random.IntN(4) == 0:
			value = ""
		case i%5 == 0:
			value = large
		}
		m.pending = m.next(key, value)
		m.append(m.pending)
		m.pending = nil
		if i%10 == 9 {
			_ = m.file.Close()
			m.open(m.system())
		}
	}
	t.Logf("%d states were opened", m.count)
}

package wal

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// messages are what a file has told its log.
type messages struct {
	mu    sync.Mutex
	lines []string
}

func (m *messages) options() Options {
	return Options{Log: funcr.New(func(_, args string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.lines = append(m.lines, args)
	}, funcr.Options{})}
}

// quick returns a system that does not wait for the disk. Only a loss of power shows that.
func quick() system {
	s := realSystem
	s.sync = func(*os.File) error { return nil }
	return s
}

// kept is a file with what was appended to it.
type kept struct {
	*testing.T
	*messages
	path string
	file *File
	// want are the entries that it has to have, and revision the last one.
	want     map[string]*storage.Entry
	revision int64
}

func newKept(t *testing.T) *kept {
	t.Helper()
	k := &kept{
		T: t, messages: &messages{}, path: filepath.Join(t.TempDir(), "folder", "data"), want: map[string]*storage.Entry{},
	}
	k.open(quick())
	t.Cleanup(func() { _ = k.file.Close() })
	return k
}

// open opens the file, and compares what is in it.
func (k *kept) open(s system) {
	k.Helper()
	file, entries, revision, err := open(k.path, k.options(), s)
	if err != nil {
		k.Fatal(err)
	}
	k.file = file
	k.compare(entries, revision)
}

func (k *kept) compare(entries []*storage.Entry, revision int64) {
	k.Helper()
	if revision != k.revision {
		k.Errorf("the file has revision %d, want %d", revision, k.revision)
	}
	got := map[string]*storage.Entry{}
	for _, e := range entries {
		got[e.Key] = e
	}
	if diff := gocmp.Diff(k.want, got, cmpopts.IgnoreUnexported(storage.Entry{})); diff != "" || len(got) != len(entries) {
		k.Fatalf("the file has other entries (-want +got):\n%s", diff)
	}
}

func (k *kept) reopen() {
	k.Helper()
	if err := k.file.Close(); err != nil {
		k.Fatal(err)
	}
	k.open(quick())
}

// next returns the next entry. Without a value it is the end of a key.
func (k *kept) next(key, value string) *storage.Entry {
	e := &storage.Entry{Key: key, Revision: k.revision + 1}
	if value != "" {
		e.Value = []byte(value)
	}
	return e
}

// append appends an entry.
func (k *kept) append(e *storage.Entry) {
	k.Helper()
	if err := k.file.Append(e); err != nil {
		k.Fatal(err)
	}
	k.has(e)
}

func (k *kept) has(e *storage.Entry) {
	k.revision, k.want[e.Key] = e.Revision, e
	if e.Value == nil {
		delete(k.want, e.Key)
	}
}

// bytes returns what is in the file.
func (k *kept) bytes() []byte {
	k.Helper()
	data, err := os.ReadFile(k.path)
	if err != nil {
		k.Fatal(err)
	}
	return data
}

func (k *kept) write(data []byte) {
	k.Helper()
	if err := os.WriteFile(k.path, data, mode); err != nil {
		k.Fatal(err)
	}
}

// logged fails the test unless the log was told something with each of some parts, and nothing else, since the last
// call.
func (k *kept) logged(parts ...string) {
	k.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.lines) != min(1, len(parts)) {
		k.Errorf("the log was told %q", k.lines)
	}
	for _, part := range parts {
		if len(k.lines) == 0 || !strings.Contains(k.lines[0], part) {
			k.Errorf("the log was told %q, want %q in it", k.lines, part)
		}
	}
	k.lines = nil
}

// some appends entries of all sorts.
func (k *kept) some() {
	k.Helper()
	k.append(k.next("/a", "1"))
	k.append(k.next("/b", "1"))
	k.append(k.next("/a", "2"))
	expires := k.next("/c", "1")
	expires.Expires = time.Unix(0, 1<<60+1)
	k.append(expires)
	k.append(k.next("/b", ""))
}

func TestEntriesAreKept(t *testing.T) {
	k := newKept(t)
	for range 3 {
		k.reopen()
		k.some()
	}
	k.reopen()
	for _, e := range k.want {
		k.append(k.next(e.Key, ""))
	}
	for range 2 { // Nothing is live, but the revision is.
		k.reopen()
	}
	k.logged()
	if info, err := os.Stat(k.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the file is %v, %v; want that its owner alone reads it", info.Mode(), err)
	}
}

// TestModeIsSet opens a file that others may read.
func TestModeIsSet(t *testing.T) {
	k := newKept(t)
	if err := os.Chmod(k.path, 0o644); err != nil {
		t.Fatal(err)
	}
	k.reopen()
	if info, err := os.Stat(k.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the file is %v, %v", info.Mode(), err)
	}
}

// TestOneAtATime opens a file twice, also after it was rewritten.
func TestOneAtATime(t *testing.T) {
	k := newKept(t)
	refused := func() {
		t.Helper()
		_, _, _, err := Open(k.path, Options{})
		if !errors.Is(err, errInUse) || !strings.Contains(err.Error(), k.path) {
			t.Errorf("the error is %v, want that %s is used", err, k.path)
		}
	}
	refused()
	k.some()
	k.reopen()
	refused()
	if err := k.file.rewrite(); err != nil {
		t.Fatal(err)
	}
	refused()
	k.append(k.next("/a", "3"))
	k.reopen()
}

// TestManyOpenAtOnce has one of several open a new file.
func TestManyOpenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	files := make(chan *File, 20)
	var group sync.WaitGroup
	for range cap(files) {
		group.Go(func() {
			switch file, _, _, err := Open(path, Options{}); {
			case err == nil:
				files <- file
			case !errors.Is(err, errInUse):
				t.Error(err)
			}
		})
	}
	group.Wait()
	if len(files) != 1 {
		t.Errorf("%d have opened the file, want one", len(files))
	}
	for range len(files) {
		_ = (<-files).Close()
	}
}

// TestLink has the path be a symbolic link.
func TestLink(t *testing.T) {
	k := newKept(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(k.path, link); err != nil {
		t.Fatal(err)
	}
	real := k.path
	k.path = link
	k.some()
	k.reopen()
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	k.path = real
	k.reopen()
}

// TestNotOurs opens what must not be written to.
func TestNotOurs(t *testing.T) {
	for name, tc := range map[string]struct{ data, want string }{
		"a text":             {"apiVersion: v1\n", "name another file"},
		"a short text":       {"D\n", "name another file"},
		"another version":    {title + "2\nabc", `it has version "2", and this program reads "1"`},
		"no version":         {title, ""},
		"nothing":            {"", ""},
		"part of the header": {header[:7], ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data")
			if err := os.WriteFile(path, []byte(tc.data), 0o640); err != nil {
				t.Fatal(err)
			}
			file, _, _, err := Open(path, Options{})
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				_ = file.Close()
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("the error is %v, want %q in it", err, tc.want)
			}
			data, _ := os.ReadFile(path)
			if info, err := os.Stat(path); string(data) != tc.data || err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("the file was changed to %v %q, %v", info.Mode(), data, err)
			}
		})
	}
	for path, want := range map[string]string{
		t.TempDir(): "is a directory", "/dev/full": "this is not a file", "/dev/null/data": "not a directory",
	} {
		if _, _, _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q in it", path, err, want)
		}
	}
}

// full returns a system in which a write fails after some bytes. A negative number is none.
func full(left *int) system {
	s := quick()
	s.write = func(file *os.File, data []byte, offset int64) error {
		if *left < 0 {
			return realSystem.write(file, data, offset)
		}
		n := min(*left, len(data))
		_, err := file.WriteAt(data[:n], offset)
		return cmp.Or(err, error(&os.PathError{Op: "write", Path: "somewhere", Err: syscall.ENOSPC}))
	}
	return s
}

// TestFullDisk has the disk be full after each byte of a record.
func TestFullDisk(t *testing.T) {
	k := newKept(t)
	k.some()
	left := -1
	_ = k.file.Close()
	k.open(full(&left))
	for left = range len(appendRecord(nil, k.next("/d", "1"))) {
		before := k.bytes()
		err := k.file.Append(k.next("/d", "1"))
		if want := fmt.Sprintf("append to %s: write: no space left on device", k.path); err == nil || err.Error() != want {
			t.Fatalf("the error is %v, want %s", err, want)
		}
		if after := k.bytes(); !slices.Equal(before, after) {
			t.Fatalf("an append that failed after %d bytes has changed the file from %q to %q", left, before, after)
		}
		if left%5 == 0 {
			left = -1
			k.append(k.next("/e", fmt.Sprint(k.revision)))
			k.reopen()
			_ = k.file.Close()
			k.open(full(&left))
		}
	}
	left = -1
	k.append(k.next("/d", "1"))
	k.reopen()
	k.logged()
}

// TestFailures has what follows a write fail, too.
func TestFailures(t *testing.T) {
	k := newKept(t)
	broken := errors.New("broken")
	var write, sync, truncate error
	s := system{
		write: func(file *os.File, data []byte, offset int64) error {
			return cmp.Or(realSystem.write(file, data, offset), write)
		},
		sync: func(*os.File) error { return sync },
		truncate: func(file *os.File, length int64) error {
			return cmp.Or(truncate, realSystem.truncate(file, length))
		},
		rename: os.Rename,
	}
	_ = k.file.Close()
	file, entries, revision, err := open(k.path, Options{Sync: true}, s)
	if err != nil {
		t.Fatal(err)
	}
	k.file = file
	k.compare(entries, revision)
	k.some()
	fails := func() {
		t.Helper()
		if err := k.file.Append(k.next("/d", "1")); !errors.Is(err, broken) {
			t.Errorf("the error is %v, want %v", err, broken)
		}
	}
	sync = broken
	fails()
	sync = nil
	k.append(k.next("/d", "2"))
	write, truncate = broken, broken
	fails()
	write = nil
	fails() // What is left of the last one is still there.
	truncate = nil
	k.append(k.next("/d", "3"))
	k.reopen()
	k.logged()
	if err := k.file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := k.file.Append(k.next("/d", "4")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("an append to a closed file: %v", err)
	}
}

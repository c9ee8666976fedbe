// Package wal keeps what is written to a storage in a file: a write-ahead log, to which each write is appended before
// it has an effect.
//
// The file begins with a line that has its version. Records follow, in the order of their revisions. A record has a
// mark, its length, a checksum, and an entry of the storage. Of the records of a key only the last one is live, unless
// it is a deletion. When most records are not live, the file is rewritten with the live ones.
//
// A process that is killed loses no record whose append has returned: the kernel has it. A loss of power loses none
// either with [Options].Sync, and may do so otherwise.
package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-logr/logr"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

const (
	// mode lets the user of the process alone read a file: it has Secrets.
	mode       fs.FileMode = 0o600
	folderMode fs.FileMode = 0o700
)

// errInUse is the error of a file that somebody else has opened.
var errInUse = errors.New("another cluster uses the file: stop it, or name another file")

// Options are those of [Open].
type Options struct {
	// Sync has each record be on the disk before its append returns.
	Sync bool
	// Log is told that the end of the file was cut off, and that the file could not be rewritten.
	Log logr.Logger
}

// File is an open file. Nobody else can open it. It is safe for concurrent use.
type File struct {
	options Options
	path    string
	system  system

	mu   sync.Mutex
	file *os.File
	contents
	buffer []byte
	// repair has to succeed before the next record, if it is not nil.
	repair func() error
	// rewriteAt is the length below which the file is not rewritten.
	rewriteAt int64
}

// system is how a file is changed.
type system struct {
	write    func(file *os.File, data []byte, offset int64) error
	sync     func(file *os.File) error
	truncate func(file *os.File, length int64) error
	rename   func(from, to string) error
	// slack is how much longer than twice its live records a file becomes before it is rewritten.
	slack int64
}

var realSystem = system{
	write: func(file *os.File, data []byte, offset int64) error {
		_, err := file.WriteAt(data, offset)
		return err
	},
	sync:     (*os.File).Sync,
	truncate: (*os.File).Truncate,
	rename:   os.Rename,
	slack:    8 << 20,
}

// Open opens the file at a path, and returns the live entries in it and the last revision, which is 0 for a new file.
// It creates the file if there is none. Behind the last record, it cuts off what is left of a write that did not end.
// If a damaged record has whole ones behind it, or the file is not one of this package, Open returns an error and
// changes nothing.
//
// The file with the ending .rewrite at the same path belongs to the package, too.
func Open(path string, options Options) (f *File, entries []*storage.Entry, revision int64, err error) {
	return open(path, options, realSystem)
}

func open(path string, options Options, s system) (f *File, entries []*storage.Entry, revision int64, err error) {
	f = &File{options: options, system: s}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", path, withoutPath(err))
			if f.file != nil {
				_ = f.file.Close()
			}
			f = nil
		}
	}()
	if err := os.MkdirAll(filepath.Dir(path), folderMode); err != nil {
		return f, nil, 0, err
	}
	if err := f.acquire(path); err != nil {
		return f, nil, 0, err
	}
	data, err := io.ReadAll(f.file)
	if err != nil {
		return f, nil, 0, err
	}
	f.contents, entries, err = parse(data)
	if err != nil {
		return f, nil, 0, err
	}
	if err := f.prepare(int64(len(data))); err != nil {
		return f, nil, 0, err
	}
	return f, entries, f.revision, nil
}

// acquire opens and locks the file at a path. Whoever has it may put another one in its place before it is locked.
func (f *File) acquire(path string) error {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, mode)
		if err != nil {
			return err
		}
		f.file = file
		info, err := file.Stat()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return errors.New("this is not a file: name another one")
		}
		if err := lock(file); err != nil {
			return err
		}
		// A link to the file stays one when the file is rewritten.
		f.path, err = filepath.EvalSymlinks(path)
		if err != nil {
			return err
		}
		now, err := os.Stat(f.path)
		if err == nil && os.SameFile(info, now) {
			return nil
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
}

// prepare makes a file that was read ready for records. It had a length.
func (f *File) prepare(length int64) error {
	if err := f.file.Chmod(mode); err != nil {
		return err
	}
	if f.length == 0 {
		if err := f.system.write(f.file, []byte(header), 0); err != nil {
			return err
		}
		f.length = int64(len(header))
	}
	if length > f.length {
		f.options.Log.Info("what is left of the last write to the file was cut off: it had no answer",
			"file", f.path, "offset", f.length, "bytes", length-f.length)
		if err := f.truncate(); err != nil {
			return err
		}
	}
	if err := os.Remove(f.path + rewriteSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if f.options.Sync {
		// What another process has written may not be on the disk.
		if err := errors.Join(f.system.sync(f.file), syncFolder(filepath.Dir(f.path))); err != nil {
			return err
		}
	}
	f.rewriteIfLarger(0)
	return nil
}

// Append appends a record. If it fails, the file is as before, and a later call may succeed.
func (f *File) Append(e *storage.Entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.append(e); err != nil {
		return fmt.Errorf("append to %s: %w", f.path, withoutPath(err))
	}
	f.rewriteIfLarger(f.system.slack)
	return nil
}

func (f *File) append(e *storage.Entry) error {
	if f.repair != nil {
		if err := f.repair(); err != nil {
			return err
		}
		f.repair = nil
	}
	f.buffer = appendRecord(f.buffer[:0], e)
	err := f.system.write(f.file, f.buffer, f.length)
	if err == nil && f.options.Sync {
		err = f.system.sync(f.file)
	}
	if err != nil {
		if f.truncate() != nil {
			f.repair = f.truncate
		}
		return err
	}
	f.note(e, int64(len(f.buffer)))
	return nil
}

// truncate cuts off what is behind the last record.
func (f *File) truncate() error { return f.system.truncate(f.file, f.length) }

// Close has all be on the disk, and closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := errors.Join(f.system.sync(f.file), f.file.Close()); err != nil {
		return fmt.Errorf("close %s: %w", f.path, withoutPath(err))
	}
	return nil
}

// withoutPath returns the cause of an error that names a file, which may have had another name when it was opened.
func withoutPath(err error) error {
	if named, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", named.Op, named.Err)
	}
	return err
}

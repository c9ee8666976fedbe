package wal

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// rewriteSuffix is added to the path of a file for the one that takes its place.
const rewriteSuffix = ".rewrite"

// rewriteIfLarger rewrites the file if it is longer than twice its live records and a slack, or, without a slack, if
// anything in it is not live. If that fails, the file stays, and it is tried again when the file has grown.
func (f *File) rewriteIfLarger(slack int64) {
	least := int64(len(header)) + f.liveLength + revisionLength
	if slack > 0 {
		least = 2*f.liveLength + slack
	}
	if f.length <= max(least, f.rewriteAt) {
		return
	}
	if err := f.rewrite(); err != nil {
		f.rewriteAt = f.length + max(slack, f.liveLength)
		f.options.Log.Info("the file could not be rewritten without what has been deleted since: it stays as it is",
			"file", f.path, "reason", withoutPath(err).Error())
	}
}

// rewrite puts a file with the live records in the place of the file. At each moment, one of them is at the path, and
// it is locked.
func (f *File) rewrite() (err error) {
	path := f.path + rewriteSuffix
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close(), os.Remove(path))
		}
	}()
	if err := lock(file); err != nil {
		return err
	}
	next, err := f.copyLive(file)
	if err != nil {
		return err
	}
	if err := f.system.sync(file); err != nil {
		return err
	}
	if err := f.system.rename(path, f.path); err != nil {
		return err
	}
	_ = f.file.Close()
	f.file, f.contents, f.rewriteAt = file, next, 0
	if f.options.Sync {
		f.repair = func() error { return syncFolder(filepath.Dir(f.path)) }
	}
	return nil
}

// revisionLength is that of a record without a key.
var revisionLength = int64(len(appendRecord(nil, &storage.Entry{})))

// copyLive writes the live records and the revision to another file, and returns what it has then.
func (f *File) copyLive(to *os.File) (contents, error) {
	next := contents{live: make(map[string]span, len(f.live)), length: int64(len(header))}
	w := bufio.NewWriterSize(&writer{f.system, to, 0}, 1<<20)
	_, err := w.WriteString(header)
	keys := slices.SortedFunc(maps.Keys(f.live), func(a, b string) int {
		return cmp.Compare(f.live[a].offset, f.live[b].offset)
	})
	for _, key := range keys {
		at := f.live[key]
		next.live[key] = span{next.length, at.length}
		next.length += at.length
		next.liveLength += at.length
		_, more := io.Copy(w, io.NewSectionReader(f.file, at.offset, at.length))
		err = errors.Join(err, more)
	}
	last := storage.Entry{Revision: f.revision}
	_, more := w.Write(appendRecord(nil, &last))
	next.note(&last, revisionLength)
	return next, errors.Join(err, more, w.Flush())
}

// writer writes to the end of a file.
type writer struct {
	system system
	file   *os.File
	offset int64
}

// Write implements [io.Writer].
func (w *writer) Write(data []byte) (int, error) {
	if err := w.system.write(w.file, data, w.offset); err != nil {
		return 0, err
	}
	w.offset += int64(len(data))
	return len(data), nil
}

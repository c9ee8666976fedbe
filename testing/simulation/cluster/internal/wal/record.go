package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

const (
	// title begins each file. Its version follows, and the end of the line.
	title   = "Data of a cluster of github.com/espalier-dev/espalier, version "
	version = "1"
	header  = title + version + "\n"

	// mark begins each record. No text in UTF-8 has its first byte, so that no encoded object has the mark.
	mark = "\xffrec"
	// frameLength is how many bytes a record has before its body: the mark, the length of the body, and the checksum of
	// that length and the body.
	frameLength = len(mark) + 4 + 4
	// fixedLength is how many bytes a body has before the key: the revision, the time of expiry, and the length of the
	// key.
	fixedLength = 8 + 8 + 4
)

// order is that of the bytes of a number.
var order = binary.LittleEndian

var checksums = crc32.MakeTable(crc32.Castagnoli)

// appendRecord appends a record to buffer. A record without a key has a revision alone.
func appendRecord(buffer []byte, e *storage.Entry) []byte {
	start := len(buffer)
	expires := int64(0)
	if !e.Expires.IsZero() {
		expires = e.Expires.UnixNano()
	}
	buffer = append(buffer, mark...)
	buffer = order.AppendUint32(buffer, uint32(fixedLength+len(e.Key)+len(e.Value)))
	buffer = order.AppendUint32(buffer, 0)
	buffer = order.AppendUint64(buffer, uint64(e.Revision))
	buffer = order.AppendUint64(buffer, uint64(expires))
	buffer = order.AppendUint32(buffer, uint32(len(e.Key)))
	buffer = append(append(buffer, e.Key...), e.Value...)
	order.PutUint32(buffer[start+len(mark)+4:], checksum(buffer[start:]))
	return buffer
}

// checksum returns that of the length and the body of a record.
func checksum(record []byte) uint32 {
	sum := crc32.Checksum(record[len(mark):len(mark)+4], checksums)
	return crc32.Update(sum, checksums, record[frameLength:])
}

// parseRecord returns the record that data begins with, and its length. It returns false if there is none that is whole
// and has its checksum. The value is a part of data; it is nil if there is none.
func parseRecord(data []byte) (e *storage.Entry, length int, ok bool) {
	if len(data) < frameLength || string(data[:len(mark)]) != mark {
		return nil, 0, false
	}
	size := uint64(order.Uint32(data[len(mark):]))
	if size < fixedLength || size > uint64(len(data)-frameLength) {
		return nil, 0, false
	}
	record := data[:frameLength+int(size)]
	body := record[frameLength:]
	key := uint64(order.Uint32(body[16:]))
	if order.Uint32(record[len(mark)+4:]) != checksum(record) || key > size-fixedLength {
		return nil, 0, false
	}
	e = &storage.Entry{Key: string(body[fixedLength : fixedLength+key]), Revision: int64(order.Uint64(body))}
	if at := int64(order.Uint64(body[8:])); at != 0 {
		e.Expires = time.Unix(0, at)
	}
	if value := body[fixedLength+key:]; len(value) > 0 {
		e.Value = value
	}
	return e, len(record), true
}

// contents are what a file has.
type contents struct {
	// live are the records of the keys that hold something.
	live map[string]span
	// liveLength is that of these records, and length that of all that is whole.
	liveLength, length int64
	// revision is that of the last record, 0 for none.
	revision int64
}

// span is where a record is in a file.
type span struct{ offset, length int64 }

// note adds a record that is at the end.
func (c *contents) note(e *storage.Entry, length int64) {
	c.liveLength -= c.live[e.Key].length
	delete(c.live, e.Key)
	if e.Value != nil {
		c.live[e.Key] = span{c.length, length}
		c.liveLength += length
	}
	c.length += length
	c.revision = e.Revision
}

// parse returns what a file has. A file that ends within its header is one that was about to be made, and has nothing.
// What is behind the last whole record is not a part of the contents: a write of it did not end.
func parse(data []byte) (contents, []*storage.Entry, error) {
	c := contents{live: map[string]span{}}
	if len(data) < len(header) && strings.HasPrefix(header, string(data)) {
		return c, nil, nil
	}
	if !bytes.HasPrefix(data, []byte(title)) {
		return c, nil, errors.New("this is not the data of a cluster: name another file")
	}
	if !bytes.HasPrefix(data, []byte(header)) {
		found, _, _ := bytes.Cut(data[len(title):], []byte("\n"))
		return c, nil, fmt.Errorf("it has version %.20q, and this program reads %q: use a program that reads it, "+
			"or name another file", found, version)
	}
	c.length = int64(len(header))
	for {
		e, length, ok := parseRecord(data[c.length:])
		if !ok {
			break
		}
		if e.Revision < c.revision {
			return c, nil, fmt.Errorf("at offset %d, revision %d follows revision %d: restore a copy", c.length,
				e.Revision, c.revision)
		}
		c.note(e, int64(length))
	}
	if next := findRecord(data[c.length:]); next > 0 {
		return c, nil, fmt.Errorf("the record at offset %d is damaged, and whole ones follow at offset %d: restore a "+
			"copy, or cut the file off at offset %[1]d to lose what follows", c.length, c.length+int64(next))
	}
	entries := make([]*storage.Entry, 0, len(c.live))
	for _, at := range c.live {
		e, _, _ := parseRecord(data[at.offset:])
		// A part of the data would keep all of it in memory.
		e.Value = slices.Clone(e.Value)
		entries = append(entries, e)
	}
	return c, entries, nil
}

// findRecord returns the offset of the first record in data, -1 if there is none.
func findRecord(data []byte) int {
	for offset := 0; ; offset++ {
		next := bytes.Index(data[offset:], []byte(mark))
		if next < 0 {
			return -1
		}
		offset += next
		if _, _, ok := parseRecord(data[offset:]); ok {
			return offset
		}
	}
}

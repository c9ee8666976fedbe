package storage

import "time"

// entry is what a key holds: an encoded object.
type entry struct {
	key   string
	value []byte
	// revision is that of the write that made the entry.
	revision int64
	// expires is zero for an entry that stays until it is deleted.
	expires time.Time
}

// revisionOrZero returns 0 for nil, which is a key that holds nothing.
func (e *entry) revisionOrZero() int64 {
	if e == nil {
		return 0
	}
	return e.revision
}

// change is what one revision did to one key.
type change struct {
	revision int64
	at       time.Time
	// before is nil if the change created the key, after if it deleted the key.
	before, after *entry
}

func (c change) key() string {
	if c.after != nil {
		return c.after.key
	}
	return c.before.key
}

// write asks to replace what a key holds.
type write struct {
	key string
	// expected is the revision of the entry to replace, 0 if the key must hold nothing.
	expected int64
	// value is the new one, nil to delete the key.
	value []byte
	// expires is when the key is deleted again, zero for never.
	expires time.Time
}

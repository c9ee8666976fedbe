package storage

import "strings"

// span is a set of keys: one key, or all that begin with a prefix.
type span struct {
	key    string
	prefix bool
}

func (s span) contains(key string) bool {
	if s.prefix {
		return strings.HasPrefix(key, s.key)
	}
	return key == s.key
}

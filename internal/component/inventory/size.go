package inventory

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/apis"
)

// sizeOf is how many bytes of JSON records make.
func sizeOf(records []apis.InventoryRecord) int {
	n := len("[]") + max(0, len(records)-1)
	for i := range records {
		n += size(&records[i])
	}
	return n
}

// size is how many bytes of JSON a compact record makes. It is asked for each record whenever one is added, and so must cost less
// than the JSON itself.
func size(r *apis.InventoryRecord) int {
	n := len(`{"version":,"kind":,"name":}`) + quoted(r.Version) + quoted(r.Kind) + quoted(r.Name)
	n += member("group", r.Group) + member("namespace", r.Namespace) + member("uid", string(r.UID))
	n += member("adoptionPolicy", string(r.AdoptionPolicy)) + member("reconcilePolicy", string(r.ReconcilePolicy)) +
		member("updatePolicy", string(r.UpdatePolicy)) + member("deletePolicy", string(r.DeletePolicy)) +
		member("prunePolicy", string(r.PrunePolicy))
	n += number("applyOrder", int64(r.ApplyOrder)) + number("deleteOrder", int64(r.DeleteOrder))
	if r.PurgeOrder != nil {
		n += len(`,"purgeOrder":`) + digits(int64(*r.PurgeOrder))
	}
	if len(r.ManagedTypes) > 0 {
		n += len(`,"managedTypes":[]`) + len(r.ManagedTypes) - 1
		for _, t := range r.ManagedTypes {
			n += len(`{"group":,"version":,"kind":}`) + quoted(t.Group) + quoted(t.Version) + quoted(t.Kind)
		}
	}
	if r.IgnoreForeignInstances {
		n += len(`,"ignoreForeignInstances":true`)
	}
	n += member("digest", r.Digest) + member("fields", r.Fields) + number("generation", r.Generation)
	n += member("phase", string(r.Phase)) + member("status", string(r.Status)) + member("message", r.Message)
	if r.LastAppliedAt != nil {
		n += len(`,"lastAppliedAt":""`) + len(r.LastAppliedAt.UTC().Format(time.RFC3339))
	}
	return n
}

// member is the size of a member of an object that is omitted when it is empty, with a comma.
func member(name, value string) int {
	if value == "" {
		return 0
	}
	return len(`,"":`) + len(name) + quoted(value)
}

func number(name string, value int64) int {
	if value == 0 {
		return 0
	}
	return len(`,"":`) + len(name) + digits(value)
}

func digits(value int64) int {
	var buffer [20]byte
	return len(strconv.AppendInt(buffer[:0], value, 10))
}

// quoted is the size of a string in JSON, as package encoding/json writes it.
func quoted(s string) int {
	n := len(`""`) + len(s)
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			n += escape(c)
			i++
			continue
		}
		r, width := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && width == 1:
			n += len(`\ufffd`) - 1
		case r == '\u2028', r == '\u2029':
			n += len(`\u2028`) - width
		}
		i += width
	}
	return n
}

// escape is how many bytes more than one an ASCII character takes.
func escape(c byte) int {
	switch c {
	case '"', '\\', '\n', '\r', '\t', '\b', '\f':
		return 1
	case '<', '>', '&':
		return len(`\u003c`) - 1
	}
	if c < ' ' {
		return len(`\u0000`) - 1
	}
	return 0
}

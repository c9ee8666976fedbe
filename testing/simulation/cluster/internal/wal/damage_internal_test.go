package wal

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestTornTail has the last record end early, or be damaged anywhere.
func TestTornTail(t *testing.T) {
	k := newKept(t)
	k.some()
	k.reopen()
	before := k.bytes()
	last := appendRecord(nil, k.next("/a", strings.Repeat("3", 10)))
	check := func(tail []byte) {
		t.Helper()
		_ = k.file.Close()
		k.write(append(slices.Clone(before), tail...))
		k.open(quick())
		k.logged("cut off", `"file"="`+k.path, fmt.Sprintf(`"offset"=%d "bytes"=%d`, len(before), len(tail)))
		if got := k.bytes(); !slices.Equal(got, before) {
			t.Fatalf("the file with the tail %q has become %q, want %q", tail, got, before)
		}
	}
	for n := 1; n < len(last); n++ {
		check(last[:n])
	}
	for i := range last {
		tail := slices.Clone(last)
		tail[i] ^= 1
		check(tail)
	}
	check(make([]byte, 4096)) // A loss of power may leave that.
	check(append(slices.Clone(last[:7]), last[:9]...))
	k.append(k.next("/a", "4"))
	k.reopen()
	k.logged()
}

// TestDamage has a record be damaged that others follow.
func TestDamage(t *testing.T) {
	k := newKept(t)
	k.some()
	_ = k.file.Close()
	whole := k.bytes()
	starts := []int{len(header)}
	for starts[len(starts)-1] < len(whole) {
		_, length, _ := parseRecord(whole[starts[len(starts)-1]:])
		starts = append(starts, starts[len(starts)-1]+length)
	}
	for i := len(header); i < starts[len(starts)-2]; i++ {
		n, _ := slices.BinarySearch(starts, i+1)
		damaged := slices.Clone(whole)
		damaged[i] ^= 0x80
		k.write(damaged)
		_, _, _, err := Open(k.path, Options{})
		want := fmt.Sprintf("%s: the record at offset %d is damaged, and whole ones follow at offset %d: ",
			k.path, starts[n-1], starts[n])
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Fatalf("byte %d is damaged: the error is %v, want %s", i, err, want)
		}
		if !slices.Equal(k.bytes(), damaged) {
			t.Fatalf("a damaged file was changed")
		}
	}
	k.write(append(slices.Clone(whole), whole[starts[1]:starts[2]]...))
	if _, _, _, err := Open(k.path, Options{}); err == nil || !strings.Contains(err.Error(), "follows revision 5") {
		t.Errorf("an earlier record follows: the error is %v", err)
	}
	k.write(whole)
	k.open(quick())
}

// FuzzParse has anything in a file.
func FuzzParse(f *testing.F) {
	f.Add([]byte(header), 0)
	f.Add(appendRecord([]byte(header), (&kept{}).next("/a", "1")), 70)
	f.Fuzz(func(t *testing.T, data []byte, offset int) {
		c, entries, err := parse(data)
		if err == nil && (c.length > int64(len(data)) || len(entries) != len(c.live) || c.liveLength > c.length) {
			t.Errorf("%q has %v, %v", data, c, entries)
		}
	})
}

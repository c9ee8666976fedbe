package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLists(t *testing.T) {
	one, two := strings.Repeat("01", 32), strings.Repeat("02", 32)
	list, err := parseList([]byte("# plugins\n\n" + one + "  a\n" + two + " *b c\t x/y,z/* \n" + one + "  a\n"))
	if err != nil || len(list) != 2 || list["a"].Digest.String() != one || list["a"].Provides != "" ||
		list["b c"].Digest.String() != two || list["b c"].Provides != "x/y,z/*" {
		t.Errorf("the list is %v with %v, want both programs", list, err)
	}
	for text, want := range map[string]string{
		"x  a":                             "1: a line must begin with a SHA-256",
		"\n" + one[:62] + "  a":            "2: a line must begin with a SHA-256",
		one:                                "1: the name must be that of a file",
		one + "  ../a":                     "1: the name must be that of a file",
		one + "  /a":                       "1: the name must be that of a file",
		one + "  .a":                       "1: the name must be that of a file",
		one + "  a\n" + two + "  a":        "2: a has two digests",
		one + "  a\n" + one + "  a\tx/y":   "2: a has two digests, or may provide two things",
		strings.Repeat("x", 1<<17) + "  a": "token too long",
	} {
		if _, err := parseList([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %s", err, want)
		}
	}
}

func TestFilesThatAreNoPrograms(t *testing.T) {
	folder := t.TempDir()
	if err := os.Symlink("/dev/zero", filepath.Join(folder, "device")); err != nil {
		t.Skip(err)
	}
	for name, want := range map[string]string{
		"missing": "no such file", "device": "it is no file", ".": "it is no file",
	} {
		if _, err := Load(folder, name, Digest{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %s", err, want)
		}
	}
}

// Package program has the bytes of programs that may run: those whose SHA-256 is in a list.
package program

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Digest is a SHA-256.
type Digest [32]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Entry says which file may run, and what it may provide, as the list has it.
type Entry struct {
	Digest   Digest
	Provides string
}

// List are the programs that may run, by the names of their files.
type List map[string]Entry

// maxList is how large a list may be, in bytes.
const maxList = 1 << 20

// ReadList reads a list as sha256sum writes it: in each line a digest, spaces, and the name of a file. Behind a tab
// follows what the program may provide. Empty lines, and those that begin with #, do not count.
func ReadList(path string) (List, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("unable to read the list of plugins: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("unable to read the list of plugins: %w", err)
	}
	if info.Size() > maxList {
		return nil, fmt.Errorf("the list of plugins %s has %d bytes: give up to %d", path, info.Size(), maxList)
	}
	text := make([]byte, info.Size())
	if _, err := file.ReadAt(text, 0); err != nil {
		return nil, fmt.Errorf("unable to read the list of plugins: %w", err)
	}
	list, err := parseList(text)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	return list, nil
}

// parseList returns the programs of a list. An error begins with the number of a line.
func parseList(text []byte) (List, error) {
	list := List{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		line, provides, _ := strings.Cut(line, "\t")
		sum, name, _ := strings.Cut(line, " ")
		// A star before the name says that sha256sum has read the file as binary.
		name = strings.TrimPrefix(strings.TrimLeft(name, " "), "*")
		digest, err := hex.DecodeString(sum)
		switch {
		case err != nil || len(digest) != len(Digest{}):
			return nil, fmt.Errorf("%d: a line must begin with a SHA-256 in hexadecimal", number)
		case !isFileName(name):
			return nil, fmt.Errorf("%d: the name must be that of a file in the folder of the plugins", number)
		}
		entry := Entry{Digest(digest), strings.TrimSpace(provides)}
		if known, ok := list[name]; ok && known != entry {
			return nil, fmt.Errorf("%d: %s has two digests, or may provide two things", number, name)
		}
		list[name] = entry
	}
	return list, lines.Err()
}

// isFileName reports whether name is that of a file in a folder, and not of one that is hidden.
func isFileName(name string) bool {
	return name != "" && !strings.HasPrefix(name, ".") && filepath.Base(name) == name &&
		!strings.ContainsAny(name, `/\`)
}

// ErrNotListed says that a file is not the one of the list.
var ErrNotListed = errors.New("its SHA-256 is not the one in the list")

package transport

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// timestamps are JSON strings that are times as of RFC 3339, with their quotes.
var timestamps = regexp.MustCompile(
	`"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})"`)

// move adds a duration to the times in a JSON text. They stay as long as they are.
func move(text []byte, by time.Duration) []byte {
	return timestamps.ReplaceAllFunc(text, func(quoted []byte) []byte {
		old := string(quoted[1 : len(quoted)-1])
		at, err := time.Parse(time.RFC3339Nano, old)
		if err != nil {
			return quoted
		}
		layout := "2006-01-02T15:04:05"
		if _, fraction, ok := strings.Cut(old, "."); ok {
			digits := len(fraction) - len(strings.TrimLeft(fraction, "0123456789"))
			layout += "." + strings.Repeat("0", digits)
		}
		return fmt.Appendf(nil, "%q", at.Add(by).Format(layout+"Z07:00"))
	})
}

// moveRequest moves the times in a request, and asks for an answer in which times can be moved.
func (x *exchange) moveRequest() error {
	if accept := x.request.Header.Get("Accept"); strings.Contains(accept, "protobuf") {
		x.request.Header.Set("Accept", withoutProtobuf(accept))
	}
	body, err := x.readBody()
	if err != nil || body == nil {
		return err
	}
	if bytes.HasPrefix(body, protobufPrefix) {
		return fmt.Errorf("%s %s: the clock of %s is wrong, so it has to write JSON, not protobuf",
			x.request.Method, x.request.URL.Path, x.client.actor)
	}
	x.setBody(move(body, x.client.ahead))
	return nil
}

// withoutProtobuf returns what is accepted but for protobuf.
func withoutProtobuf(accept string) string {
	var kept []string
	for _, part := range strings.Split(accept, ",") {
		if !strings.Contains(part, "protobuf") {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		return "application/json"
	}
	return strings.Join(kept, ",")
}

// moved is a body with times that are moved. Each line is read as a whole: no time is on two.
type moved struct {
	io.Closer
	lines *bufio.Reader
	by    time.Duration
	line  []byte
	err   error
}

func newMoved(body io.ReadCloser, by time.Duration) *moved {
	return &moved{Closer: body, lines: bufio.NewReader(body), by: by}
}

// Read implements [io.Reader].
func (m *moved) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(m.line) == 0 {
		if m.err != nil {
			return 0, m.err
		}
		var line []byte
		line, m.err = m.lines.ReadBytes('\n')
		m.line = move(line, m.by)
	}
	n := copy(p, m.line)
	m.line = m.line[n:]
	return n, nil
}

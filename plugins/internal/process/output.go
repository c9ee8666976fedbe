package process

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/message"

	"github.com/go-logr/logr"
)

const (
	// outputRate is how many bytes a process may write in a second, before its writes wait.
	outputRate = 1 << 20
	// maxHandshake is how long the line may be by which a process says that it has started, in bytes.
	maxHandshake = 4096
	// handshakeFields is how many fields of that line count.
	handshakeFields = 5
)

// throttle reads what a process writes, and no faster than outputRate, so that a process that writes without end waits
// for itself. What it has read counts again after a second.
type throttle struct {
	from io.Reader
	// done is closed when the process has ended.
	done <-chan struct{}
	// read is how much was read since start.
	read  int
	start time.Time
}

func (t *throttle) Read(into []byte) (int, error) {
	if t.read >= outputRate {
		select {
		case <-t.done:
		case <-time.After(time.Second - time.Since(t.start)):
		}
		t.read = 0
	}
	if t.read == 0 {
		t.start = time.Now()
	}
	n, err := t.from.Read(into)
	t.read += n
	return n, err
}

// firstLine gives the fields that count of the first line of a process, and then waits for the end of its output. A
// field that go-plugin would take for a certificate has no effect.
type firstLine struct {
	from *throttle
	rest *bytes.Reader
	once sync.Once
}

func (f *firstLine) Read(into []byte) (int, error) {
	f.once.Do(func() {
		line, _ := bufio.NewReaderSize(io.LimitReader(f.from, maxHandshake), maxHandshake).ReadString('\n')
		fields := strings.Split(strings.TrimSpace(line), "|")
		line = strings.Join(fields[:min(len(fields), handshakeFields)], "|")
		f.rest = bytes.NewReader([]byte(message.StableWithin(line, maxHandshake) + "\n"))
	})
	if f.rest.Len() > 0 {
		return f.rest.Read(into)
	}
	_, err := io.Copy(io.Discard, f.from)
	if err == nil {
		err = io.EOF
	}
	return 0, err
}

const (
	// linesPerSecond is how many lines of a process are logged in a second. The others are counted.
	linesPerSecond = 20
	// maxLine is how much of a line is logged, in bytes.
	maxLine = 1024
)

// lines logs the lines that are written to it, up to linesPerSecond.
type lines struct {
	log logr.Logger

	mu      sync.Mutex
	partial []byte
	start   time.Time
	logged  int
	dropped int
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := text; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		if room := maxLine - len(l.partial); room > 0 {
			l.partial = append(l.partial, line[:min(len(line), room)]...)
		}
		if ended {
			l.line(string(l.partial))
			l.partial = l.partial[:0]
		}
		rest = after
	}
	return len(text), nil
}

func (l *lines) line(text string) {
	if time.Since(l.start) > time.Second {
		if l.dropped > 0 {
			l.log.Info("the plugin has written more than is logged", "lines", l.dropped)
		}
		l.start, l.logged, l.dropped = time.Now(), 0, 0
	}
	if l.logged == linesPerSecond {
		l.dropped++
		return
	}
	l.logged++
	l.log.V(1).Info("the plugin says", "line", message.StableWithin(text, maxLine))
}

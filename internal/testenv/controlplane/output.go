package controlplane

import (
	"bytes"
	"io"
	"sync"
)

// maxTail is how much of a process's output is kept for error messages.
const maxTail = 4 << 10

// output passes on the output of a process and keeps the end of it. It is safe for concurrent use.
type output struct {
	// next may be nil.
	next io.Writer

	mu   sync.Mutex
	tail []byte
}

// Write never fails, so that a broken writer does not stop a process of the control plane.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail = append(o.tail, p...)
	if cut := len(o.tail) - maxTail; cut > 0 {
		o.tail = append(o.tail[:0], o.tail[cut:]...)
	}
	if o.next != nil {
		_, _ = o.next.Write(p)
	}
	return len(p), nil
}

// last returns the last lines that were printed, without the one that was cut.
func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := o.tail
	if len(tail) == maxTail {
		_, tail, _ = bytes.Cut(tail, []byte("\n"))
	}
	return string(bytes.TrimSpace(tail))
}

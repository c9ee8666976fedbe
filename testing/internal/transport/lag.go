package transport

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// lagged is a body that arrives late. What the server sends in the moment in which the watch begins does not: this is
// what is there already, and without it a client does not begin its work.
type lagged struct {
	io.Closer
	exchange *exchange
	mu       sync.Mutex
	pieces   []piece
	// more has an item if a piece was added since the reader looked.
	more chan struct{}
}

// piece is something that was sent, and when it arrives.
type piece struct {
	data []byte
	err  error
	due  time.Time
}

func newLagged(x *exchange, body io.ReadCloser, lag time.Duration) *lagged {
	l := &lagged{Closer: body, exchange: x, more: make(chan struct{}, 1)}
	go l.receive(body, time.Now(), lag)
	return l
}

// receive takes what the server sends until it sends no more.
func (l *lagged) receive(body io.Reader, began time.Time, lag time.Duration) {
	for {
		data := make([]byte, 4096)
		n, err := body.Read(data)
		due := time.Now()
		if due.After(began) {
			due = due.Add(lag)
		}
		l.add(piece{data[:n:n], err, due})
		if err != nil {
			return
		}
	}
}

func (l *lagged) add(p piece) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pieces = append(l.pieces, p)
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// Read implements [io.Reader].
func (l *lagged) Read(p []byte) (int, error) {
	for {
		n, wait, err := l.take(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
		if err := l.wait(wait); err != nil {
			return 0, err
		}
	}
}

// take reads what has arrived. If nothing has, it returns how long the next piece takes, or 0 if there is none.
func (l *lagged) take(p []byte) (n int, wait time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pieces) == 0 {
		return 0, 0, nil
	}
	first := &l.pieces[0]
	if wait := time.Until(first.due); wait > 0 {
		return 0, wait, nil
	}
	n = copy(p, first.data)
	if first.data = first.data[n:]; len(first.data) > 0 {
		return n, 0, nil
	}
	if first.err != nil {
		return n, 0, first.err
	}
	l.pieces = l.pieces[1:]
	return n, 0, nil
}

// wait waits for a piece to arrive, or to be sent if d is 0.
func (l *lagged) wait(d time.Duration) error {
	var timer <-chan time.Time
	if d > 0 {
		timer = time.After(d)
	}
	select {
	case <-timer:
	case <-l.more:
	case <-l.exchange.ctx.Done():
	}
	if l.exchange.ctx.Err() == nil {
		return nil
	}
	return l.exchange.failure(http.ErrBodyReadAfterClose)
}

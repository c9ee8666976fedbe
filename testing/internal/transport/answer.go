package transport

import (
	"context"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// open has the client read the answer through the connection.
func (x *exchange) open(response *http.Response) {
	response.Request = x.request
	if x.decision.Lag > 0 {
		response.Body = newLagged(x, response.Body, x.decision.Lag)
	}
	if x.client.ahead != 0 && strings.HasPrefix(response.Header.Get("Content-Type"), runtime.ContentTypeJSON) {
		response.Body = newMoved(response.Body, -x.client.ahead)
	}
	response.Body = answer{response.Body, x}
}

// answer is the body of an answer.
type answer struct {
	io.ReadCloser
	exchange *exchange
}

// Read implements [io.Reader]. A broken connection is told as such. What has arrived and was not read is lost with the
// process.
func (a answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if held := a.exchange.pass(); held != nil {
		n, err = 0, held
	}
	if context.Cause(a.exchange.ctx) == errDead {
		n, err = 0, errDead
	}
	if err != nil {
		err = a.exchange.notice(a.exchange.failure(err))
		a.exchange.end(err)
	}
	return n, err
}

// Close implements [io.Closer].
func (a answer) Close() error {
	a.exchange.end(nil)
	return a.ReadCloser.Close()
}

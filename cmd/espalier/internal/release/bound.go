package release

import (
	"context"
	"io"
	"net/http"
)

// bound ends its requests when a context ends. REST mappers and generators make requests without one.
type bound struct {
	http.RoundTripper
	ctx context.Context
}

func (b *bound) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	stop := context.AfterFunc(b.ctx, func() { cancel(context.Cause(b.ctx)) })
	end := func() { stop(); cancel(nil) }
	response, err := b.RoundTripper.RoundTrip(request.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	response.Body = &boundBody{response.Body, end}
	return response, nil
}

// boundBody lets go of the context when the answer was read.
type boundBody struct {
	io.ReadCloser
	end func()
}

func (b *boundBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

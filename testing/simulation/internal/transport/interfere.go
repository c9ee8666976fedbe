package transport

import (
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// somebody is the actor who interferes.
const somebody = "somebody"

// interfere has somebody else write the object of the request: an annotation is put on and taken off again. So the
// object is as before, and those who watch it get events, on which operators rely after a conflict.
func (x *exchange) interfere() {
	server := x.network.serving()
	if server == nil {
		return
	}
	for _, value := range []string{`"true"`, "null"} {
		body := `{"metadata":{"annotations":{"simulation.espalier.dev/written":` + value + `}}}`
		request, err := http.NewRequestWithContext(x.ctx, http.MethodPatch, x.objectURL(), strings.NewReader(body))
		if err != nil {
			return
		}
		request.Header.Set("Content-Type", string(types.MergePatchType))
		request.Header.Set(actorHeader, somebody)
		response, err := server.RoundTrip(request)
		if err != nil {
			return // the object may be gone, and so may the server
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}

// objectURL is the address of the object, without the subresource.
func (x *exchange) objectURL() string {
	url := *x.request.URL
	url.RawQuery = ""
	if x.entry.Subresource != "" {
		url.Path = strings.TrimSuffix(url.Path, "/"+x.entry.Subresource)
	}
	return url.String()
}

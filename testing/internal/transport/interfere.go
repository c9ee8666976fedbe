package transport

import (
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// somebody is the actor who interferes.
const somebody = "somebody"

// interference is a patch of the object of a request by somebody else.
type interference struct {
	kind types.PatchType
	body string
	// lost is the status of an answer that says that what somebody wrote is not there any more.
	lost int
}

// What somebody writes before a request, and takes off again after it. So the object is as without the fault, and those
// who watch it get events, on which operators rely after a conflict.
var (
	written = interference{
		types.MergePatchType, `{"metadata":{"annotations":{"simulation.espalier.dev/written":"true"}}}`, 0,
	}
	unwritten = interference{types.JSONPatchType, `[
		{"op":"test","path":"/metadata/annotations/simulation.espalier.dev~1written","value":"true"},
		{"op":"remove","path":"/metadata/annotations/simulation.espalier.dev~1written"}
	]`, http.StatusUnprocessableEntity}
)

// interfere has somebody else patch the object of the request. It reports whether what somebody writes is there, as far
// as that is known: the object may be gone afterwards, and so may the server.
func (x *exchange) interfere(by interference) bool {
	server := x.network.serving()
	if server == nil {
		return by.lost > 0
	}
	request, err := http.NewRequestWithContext(x.ctx, http.MethodPatch, x.objectURL(), strings.NewReader(by.body))
	if err != nil {
		return by.lost > 0
	}
	request.Header.Set("Content-Type", string(by.kind))
	request.Header.Set(actorHeader, somebody)
	response, err := server.RoundTrip(request)
	if err != nil {
		return by.lost > 0
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	if by.lost > 0 {
		return response.StatusCode != by.lost
	}
	return response.StatusCode < http.StatusMultipleChoices
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

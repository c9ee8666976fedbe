package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// keepAlive is how long a stream is silent at most.
const keepAlive = 15 * time.Second

// maxStream is how long a stream lasts. A browser asks for another one, and its rights are looked at again.
const maxStream = 5 * time.Minute

// eventQuery returns some parameters of the request, for the URL of a stream.
func (a *answer) eventQuery(names ...string) string {
	q := url.Values{}
	for _, name := range names {
		if value := a.value(name); value != "" {
			q.Set(name, value)
		}
	}
	return q.Encode()
}

// eventsOf returns the URL of the stream of the resource that is asked for; empty if it is not known.
func (a *answer) eventsOf(known *resourceRecord) string {
	if known == nil {
		return ""
	}
	return "events?" + a.eventQuery("root", "namespace", "name")
}

// change is what a client is told.
type change struct {
	Root      string `json:"root"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// serveEvents tells a client of changes until it goes, does not read for a while, or the server shuts down.
func (p *Page) serveEvents(a *answer) {
	if a.request.Method != http.MethodGet {
		return
	}
	if a.value("root")+a.resourceKey().Name != "" && !p.mayFollow(a) {
		return
	}
	followed := topic{root: a.value("root"), resource: a.resourceKey()}
	client := p.streams.subscribe(a.request.Context(), a.viewer.Name(), followed)
	if client == nil {
		a.later(http.StatusServiceUnavailable, keepAlive, "too many pages are open.")
		return
	}
	defer p.streams.unsubscribe(client)
	a.Header().Set("Content-Type", "text/event-stream")
	// Proxies that keep back what they get would keep the page still.
	a.Header().Set("X-Accel-Buffering", "no")
	if !a.send("retry: 2000\n\n", p.patience) {
		return
	}
	alive, over := time.NewTicker(keepAlive), time.After(maxStream)
	defer alive.Stop()
	for {
		select {
		case <-a.request.Context().Done():
			return
		case <-over:
			return
		case <-alive.C:
			if !a.send(": alive\n\n", p.patience) {
				return
			}
		case <-client.ready:
			changed, ok := client.take()
			if !ok {
				return
			}
			for _, c := range changed {
				data, _ := json.Marshal(change{c.root, c.resource.Namespace, c.resource.Name}) // strings have no error
				if !a.send(fmt.Sprintf("event: changed\ndata: %s\n\n", data), p.patience) {
					return
				}
			}
		}
	}
}

// mayFollow reports whether the page knows what is asked for, and the viewer may get it if it is a resource. Else it
// answers the request.
func (p *Page) mayFollow(a *answer) bool {
	root := p.recorder.rootByID(a.value("root"))
	if root == nil {
		a.notFound("root")
		return false
	}
	key := a.resourceKey()
	if key.Name == "" {
		return true
	}
	known := p.recorder.known(root, key)
	if known == nil {
		a.notFound("resource")
		return false
	}
	visible, err := known.allows(a, verbGet)
	switch {
	case err != nil:
		refuse(a, a.request, err)
	case !visible:
		http.Error(a, "403: you may not get the resource.", http.StatusForbidden)
	}
	return visible && err == nil
}

// send sends a part of a stream, and reports whether the client took it in time.
func (a *answer) send(text string, patience time.Duration) bool {
	control := http.NewResponseController(a.ResponseWriter)
	_ = control.SetWriteDeadline(time.Now().Add(patience)) // without deadlines the server has one of its own, or none
	if _, err := a.Write([]byte(text)); err != nil {
		return false
	}
	return control.Flush() == nil
}

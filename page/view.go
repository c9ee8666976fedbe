package page

import (
	"net/url"
	"strconv"
	"time"

	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
)

// The functions that make views are pure: what is known, who looks, and the time are arguments. A view has what a
// template shows, as text.

// frame is what each page has around its content.
type frame struct {
	Title   string
	Replica string
	// Leads says whether the replica leads; empty if that is not known.
	Leads string
	// Leader is the replica that leads, if this one does not and that is known.
	Leader link
	At     moment
	// Events is the URL of the stream of changes, from which the page lives.
	Events string
	// Summary is what is read aloud when it changes.
	Summary string
	Usage   usage
	// Up are the links to the pages above.
	Up []link
}

// link is a link with its text. Without a URL it is text alone.
type link struct{ URL, Text string }

// moment is a time, for machines and for people. It is empty for the zero time.
type moment struct{ ISO, Text string }

func momentOf(t, now time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	m := moment{ISO: t.UTC().Format(time.RFC3339), Text: duration.HumanDuration(now.Sub(t)) + " ago"}
	if now.Before(t) {
		m.Text = "in " + duration.HumanDuration(t.Sub(now))
	}
	return m
}

// took returns a duration with about three digits.
func took(d time.Duration) string {
	for unit := time.Second; unit > time.Microsecond; unit /= 1000 {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.Round(time.Microsecond).String()
}

// delayOf returns the delay until the next request, or nothing.
func delayOf(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return duration.HumanDuration(d)
}

func rootURL(root string) string { return "root?" + url.Values{"root": {root}}.Encode() }

func resourceQuery(root string, key types.NamespacedName) url.Values {
	q := url.Values{"root": {root}, "name": {key.Name}}
	if key.Namespace != "" {
		q.Set("namespace", key.Namespace)
	}
	return q
}

func resourceURL(root string, key types.NamespacedName) string {
	return "resource?" + resourceQuery(root, key).Encode()
}

func componentURL(root string, key types.NamespacedName, path string) string {
	q := resourceQuery(root, key)
	q.Set("component", path)
	return "component?" + q.Encode()
}

// nameOf is the namespace and the name of a resource, as kubectl shows them.
func nameOf(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}

// causeText says what woke a request.
func causeText(c reconcilers.Cause) string {
	object := c.Object
	if object == "" {
		object = "an object"
	}
	switch c.Kind {
	case reconcilers.CauseStart:
		return object + " was there at the start"
	case reconcilers.CauseCreated:
		return object + " was created"
	case reconcilers.CauseUpdated:
		return object + " was changed"
	case reconcilers.CauseDeleted:
		return object + " was deleted"
	case reconcilers.CauseResync:
		return object + " was looked at again (resync)"
	case reconcilers.CauseRetry:
		return "the request before failed or halted"
	case reconcilers.CauseDelay:
		return "the delay of the request before is over"
	}
	if c.Object != "" {
		return object
	}
	return "something else"
}

// writeView is a write.
type writeView struct {
	Verb   string
	Object link
	Reason string
	Error  string
}

func writeViewOf(w *writeRecord, linkTo func(reconcilers.ObjectRef) string) writeView {
	v := writeView{Verb: w.verb, Object: link{URL: linkTo(w.object), Text: w.object.String()}, Reason: w.reason}
	v.Error = w.err
	if w.subresource != "" {
		v.Object.Text += " (" + w.subresource + ")"
	}
	if w.verb == verbHeld {
		v.Verb = "not written"
	}
	return v
}

// pages says which part of a long list is shown.
type pages struct {
	// From and To are the first and the last that are shown, from 1; 0 if there is nothing.
	From, To, Of int
	// Before and After are the URLs of the parts around, or empty.
	Before, After string
}

// pagesOf returns the part number page, from 1, of a list, and the indexes of its start and end.
func pagesOf(of, size, page int, to func(page int) string) (p pages, start, end int) {
	last := max(1, (of+size-1)/size)
	page = min(max(page, 1), last)
	start, end = (page-1)*size, min(page*size, of)
	p = pages{From: start + 1, To: end, Of: of}
	if of == 0 {
		p.From = 0
	}
	if page > 1 {
		p.Before = to(page - 1)
	}
	if page < last {
		p.After = to(page + 1)
	}
	return p, start, end
}

// pageURL returns a function that returns the URL of a part of a list. Query has the filter.
func pageURL(path string, query url.Values) func(page int) string {
	return func(page int) string {
		q := url.Values{}
		for key, values := range query {
			if len(values) > 0 && values[0] != "" {
				q[key] = values
			}
		}
		q.Set("page", strconv.Itoa(page))
		return path + "?" + q.Encode()
	}
}

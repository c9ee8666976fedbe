package page

import (
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/reconcilers"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
)

// watchForgotten is after which time without a failure a type counts as watched again. An informer that fails tries
// again within a minute.
const watchForgotten = 3 * time.Minute

// watchFailures are the types that cannot be watched. There are as many as the program has informers.
type watchFailures struct {
	mu     sync.Mutex
	byType map[string]watchFailure
}

type watchFailure struct {
	since, last time.Time
	times       int
	err         string
}

// watchFailureView is a type that cannot be watched.
type watchFailureView struct {
	Type  string `json:"type"`
	Error string `json:"error"`
	Times int    `json:"times"`
	Since moment `json:"-"`
}

func (w *watchFailures) note(fact reconcilers.WatchFailed, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byType == nil {
		w.byType = map[string]watchFailure{}
	}
	f := w.byType[fact.Type]
	if now.Sub(f.last) > watchForgotten {
		f = watchFailure{since: now}
	}
	f.last, f.err, f.times = now, textOfWatch(fact.Err), f.times+1
	w.byType[fact.Type] = f
}

// views returns the types that cannot be watched now, sorted.
func (w *watchFailures) views(now time.Time) []watchFailureView {
	w.mu.Lock()
	defer w.mu.Unlock()
	var views []watchFailureView
	for _, name := range slices.Sorted(maps.Keys(w.byType)) {
		f := w.byType[name]
		if now.Sub(f.last) > watchForgotten {
			continue
		}
		views = append(views, watchFailureView{
			Type: name, Error: f.err, Times: f.times, Since: momentOf(f.since, now),
		})
	}
	return views
}

// quoted is a value in the text of an error of a decoder.
var quoted = regexp.MustCompile(`"[^"]*"`)

// textOfWatch returns the text of an error. What a decoder quotes is content of an object that the viewer may not get.
func textOfWatch(err error) string {
	if apierrs.ReasonForError(err) != "" {
		return textOf(err)
	}
	return message.Truncate(quoted.ReplaceAllString(err.Error(), `"…"`), maxText)
}

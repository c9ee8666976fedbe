// Package run makes what code under test gets for one attempt: a context with the time and a logger, clients of one API
// server with the given objects, a tracker and recorders, all of which record. The server is controller-runtime's fake
// client, a store in memory, that store compared with a real server, or a real server. What is given can be checked
// first. The package knows neither rows nor expectations nor faults. Package testing calls it for each config of a row,
// and for each instance in a replay.
package run

import (
	"fmt"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// Attempt is a server with the config that code under test gets, and what is recorded of it.
type Attempt struct {
	Server
	Config  reconcilers.Config
	Events  *recording.Events
	Tracker *recording.Tracker
	// Journal has the order of all that is recorded.
	Journal *recording.Journal
}

// Start returns an attempt over the API server of the config, with the given objects.
func (g Given) Start() Attempt {
	journal := &recording.Journal{}
	return g.attempt(journal, g.start(journal))
}

// Over returns an attempt over clients of a store.
func (g Given) Over(of Clients) Attempt {
	journal := &recording.Journal{}
	return g.attempt(journal, g.onStore(journal, of))
}

func (g Given) attempt(journal *recording.Journal, server Server) Attempt {
	a := Attempt{
		Server: server, Journal: journal,
		Events: recording.NewEvents(g.Scheme, journal), Tracker: recording.NewTracker(g.Scheme, journal),
	}
	if err := a.Tracker.Give(g.GivenTracks...); err != nil {
		a.Problems = append(a.Problems, fmt.Sprintf("GivenTracks cannot be tracked: %v", err))
	}
	a.Config = reconcilers.Config{
		Client:        a.Client,
		APIReader:     a.Reader,
		Discovery:     a.Discovery,
		Recorder:      a.Events.Old(),
		EventRecorder: a.Events,
		Tracker:       a.Tracker,
	}
	return a
}

package shards_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/simulation"
)

// event is something that happens to the operator or to the sharder.
type event struct {
	name    string
	happens func(s *story)
}

// events are those of stories.
var events = []event{
	{"a process dies", func(s *story) { s.Kill(s.replica()) }},
	{"a shard leaves, and joins again", outage((*simulation.World).Terminate, (*simulation.World).Start)},
	{"a shard crashes, and joins again", outage((*simulation.World).Stop, (*simulation.World).Start)},
	// All clocks of a world are one, so it finds out how long it stood still. No story has a clock that stands with its
	// process.
	{"a process stands still", outage((*simulation.World).Freeze, (*simulation.World).Resume)},
	{"a process is cut off", outage((*simulation.World).Partition, (*simulation.World).Resume)},
	{"a Lease is deleted", (*story).loseLease},
	{"the webhook is away", func(s *story) {
		s.sharder.listen(false)
		s.meanwhile()
		s.sharder.listen(true)
	}},
	{"the ring gets another name", (*story).renameRing},
	{"sharding is switched off and on", (*story).switchOff},
}

// drawn returns the events of a story.
func drawn(seed uint64) []event {
	r := rand.New(rand.NewPCG(seed, 3))
	var all []event
	for range 8 {
		all = append(all, events[r.IntN(len(events))])
	}
	return all
}

// Each event is in many stories.
func TestEvents(t *testing.T) {
	t.Parallel()
	const seeds, least = 50, 15
	in := map[string]int{}
	for seed := range uint64(seeds) {
		once := map[string]bool{}
		for _, event := range drawn(seed) {
			once[event.name] = true
		}
		for name := range once {
			in[name]++
		}
	}
	for _, event := range events {
		if in[event.name] < least {
			t.Errorf("%q is in %d of %d stories, want at least %d", event.name, in[event.name], seeds, least)
		}
	}
}

// outage has something go on for a while for a replica.
func outage(begin, end func(w *simulation.World, replicas ...string)) func(s *story) {
	return func(s *story) {
		replica := s.replica()
		begin(s.World, replica)
		s.meanwhile()
		end(s.World, replica)
	}
}

// meanwhile is a time in which users do something.
func (s *story) meanwhile() {
	s.Helper()
	for range s.IntN(3) {
		s.passes(2 * time.Minute)
		s.user()
	}
	s.passes(2 * time.Minute)
}

// loseLease has somebody delete the Lease of a shard.
func (s *story) loseLease() {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: s.replica()}}
	if err := client.IgnoreNotFound(s.Client.Delete(s.Context(), lease)); err != nil {
		s.Logf("delete a Lease: %v", err)
	}
}

// ring returns the name of the ring.
func (s *story) ring() string { return joinings.Of(s.World).ring() }

// renameRing has the shards join a ring of another name. The old one is deleted or stays.
func (s *story) renameRing() {
	s.Helper()
	s.Terminate()
	s.rings++
	name := fmt.Sprintf("widgets-%d", s.rings)
	s.Create(newRing(s.World, name))
	if s.IntN(2) == 0 {
		s.Delete(newRing(s.World, s.ring()))
	}
	s.passes(2 * time.Minute)
	joinings.Of(s.World).set(name, false)
	s.Start()
}

// switchOff has one process work for all Widgets for a while.
func (s *story) switchOff() {
	s.Helper()
	ring := s.ring()
	s.Terminate()
	joinings.Of(s.World).set(ring, true)
	s.Start()
	s.meanwhile()
	s.Terminate()
	joinings.Of(s.World).set(ring, false)
	s.Start()
}

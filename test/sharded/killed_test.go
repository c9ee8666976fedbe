package sharded_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/sharder/sharderstest"
)

var kills = flag.Int("kills", 12, "how many processes TestKilled kills, one each second")

// maxKills is how many kills more there are while no Widget has moved.
const maxKills = 60

// TestKilled has three processes share Widgets, and kills one of them each second, while Widgets are created, changed
// and deleted. A killed process is started again at once, with the same name. It waits until the Lease of the one
// before has expired, and may be killed before that. So the laws hold at each write, and all Widgets are as they should
// be after the last kill. Each second kill is of one process for ten seconds, so that its Widgets move. On a busy
// machine that may take more kills. A minute of kills:
//
//	go test ./test/sharded -run TestKilled -kills=60
func TestKilled(t *testing.T) {
	s := newScene(t, sharderstest.Start)
	kubeconfig := writeKubeconfig(t, plane.Config(t))
	var containers []*container
	for i := range 3 {
		r := s.replica("killed", fmt.Sprintf("shard-%d", i), 3)
		if i == 0 {
			s.ring(r)
		}
		containers = append(containers, startContainer(t, kubeconfig, r))
	}
	for range 30 {
		s.create(fields())
	}
	s.settle("before the first kill")

	before := s.revision()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for i := 0; i < *kills || i < *kills+maxKills && !s.haveMoved("killed", before); i++ {
		victim := i / 10 % len(containers)
		if i%2 == 1 {
			victim = rand.IntN(len(containers))
		}
		containers[victim].kill()
		for end := false; !end; {
			s.act()
			select {
			case <-second.C:
				end = true
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	s.settle("after the last kill")

	changes := s.history.complete(t, s.Client)
	for _, law := range broken(changes) {
		t.Error(law)
	}
	moved := movesOf("killed", changes, before)
	t.Logf("%d writes, and after the first kill the ring has moved Widgets %d times and children %d times",
		len(changes), moved.widgets, moved.children)
	if moved.widgets == 0 {
		t.Error("no Widget has moved, want that some did: the processes were killed for nothing")
	}
}

// haveMoved reports whether a ring has moved Widgets after a revision.
func (s *scene) haveMoved(ring string, after uint64) bool {
	s.Helper()
	changes, err := s.history.all()
	if err != nil {
		s.Fatal(err)
	}
	return movesOf(ring, changes, after).widgets > 0
}

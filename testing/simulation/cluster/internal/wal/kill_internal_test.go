package wal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

var (
	seed   = flag.Uint64("seed", 1, "of the first round in which a process is killed")
	rounds = flag.Uint64("rounds", 50, "how many rounds there are in which a process is killed")
)

// The variables of the environment of a process that is killed.
const (
	killedFile = "ESPALIER_TEST_KILLED_FILE"
	killedSeed = "ESPALIER_TEST_KILLED_SEED"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(killedFile); path != "" {
		round, _ := strconv.ParseUint(os.Getenv(killedSeed), 10, 64)
		fmt.Println(killed(path, round))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// said is a line that a process writes before a request, without an answer, and after it.
type said struct {
	// Asked is what a client asks for, and Answered is what it has as an answer. The object of an answer to a delete has
	// a name alone.
	Asked, Answered *corev1.ConfigMap `json:",omitempty"`
}

// objects returns the storage of ConfigMaps.
func objects(s *storage.Storage) apistorage.Interface {
	return s.For(storage.Resource{
		Prefix: "/configmaps/", Codec: scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion),
		New: func() runtime.Object { return &corev1.ConfigMap{} },
	})
}

func keyOf(name string) string { return "/configmaps/default/" + name }

func keepIn(file *File, entries []*storage.Entry, revision int64) *storage.Storage {
	return storage.New(storage.Options{
		Entries: entries, Revision: revision,
		Written: func(_ context.Context, e *storage.Entry) error { return file.Append(e) },
	})
}

// deadly returns a system in which the process dies at a random step, within a write after a random number of bytes. In
// a third of the rounds it never does: then somebody else kills the process.
func deadly(random *rand.Rand) system {
	s := realSystem
	s.slack = 100_000
	left := random.IntN(50)
	if random.IntN(2) == 0 {
		left = random.IntN(2000)
	}
	if random.IntN(3) == 0 {
		return s
	}
	die := func() {
		if left--; left < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	s.write = func(file *os.File, data []byte, offset int64) error {
		if left == 0 {
			_ = realSystem.write(file, data[:random.IntN(len(data)+1)], offset)
		}
		die()
		return realSystem.write(file, data, offset)
	}
	s.sync = func(file *os.File) error { die(); return file.Sync() }
	s.truncate = func(file *os.File, length int64) error { die(); return file.Truncate(length) }
	s.rename = func(from, to string) error {
		die()
		err := os.Rename(from, to)
		die()
		return err
	}
	return s
}

// killed has clients write to a storage with a file, and write down what they are answered, until the process is killed.
func killed(path string, round uint64) error {
	random := rand.New(rand.NewPCG(round, 1))
	options := Options{Sync: random.IntN(4) == 0}
	file, entries, revision, err := open(path, options, deadly(random))
	if err != nil {
		return err
	}
	kept := objects(keepIn(file, entries, revision))
	var mu sync.Mutex
	say := func(s said) {
		line, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
			panic(err)
		}
	}
	failed := make(chan error)
	for n := range 4 {
		c := client{kept: kept, say: say, name: fmt.Sprint("client-", n), random: rand.New(rand.NewPCG(round, uint64(n)+2))}
		go func() {
			for {
				if err := c.request(); err != nil {
					failed <- err
				}
			}
		}()
	}
	return <-failed
}

// client writes to objects that nobody else writes to.
type client struct {
	kept   apistorage.Interface
	say    func(said)
	name   string
	random *rand.Rand
}

// request creates, updates or deletes an object.
func (c client) request() error {
	name := fmt.Sprintf("%s-%d", c.name, c.random.IntN(4))
	live := &corev1.ConfigMap{}
	if err := c.kept.Get(context.Background(), keyOf(name), apistorage.GetOptions{IgnoreNotFound: true}, live); err != nil {
		return err
	}
	if live.Name != "" && c.random.IntN(3) == 0 {
		gone := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.say(said{Asked: gone})
		err := c.kept.Delete(context.Background(), keyOf(name), &corev1.ConfigMap{}, nil,
			apistorage.ValidateAllObjectFunc, nil, apistorage.DeleteOptions{})
		c.say(said{Answered: gone})
		return err
	}
	length := c.random.IntN(100)
	if c.random.IntN(20) == 0 {
		length = c.random.IntN(50_000)
	}
	wanted := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(fmt.Sprintf("%016x", c.random.Uint64())),
		},
		Data: map[string]string{"a": strings.Repeat(string(rune('a'+c.random.IntN(26))), length)},
	}
	c.say(said{Asked: wanted})
	got := &corev1.ConfigMap{}
	err := c.kept.GuaranteedUpdate(context.Background(), keyOf(name), got, true, nil,
		func(runtime.Object, apistorage.ResponseMeta) (runtime.Object, *uint64, error) {
			return wanted.DeepCopy(), nil, nil
		}, nil)
	c.say(said{Answered: got})
	return err
}

// witness knows what clients were answered, and what they have asked for without an answer.
type witness struct {
	answered, asked map[string]*corev1.ConfigMap
	// last is the latest resource version of an answer.
	last                          int64
	answers, keptAsked, lostAsked int
}

// heard takes down the lines of a process. The last one may have been cut off.
func (w *witness) heard(t *testing.T, lines []byte) {
	t.Helper()
	scanner := bufio.NewScanner(bytes.NewReader(lines[:bytes.LastIndexByte(lines, '\n')+1]))
	scanner.Buffer(nil, 1<<20)
	first := w.last
	for scanner.Scan() {
		var s said
		if err := json.Unmarshal(scanner.Bytes(), &s); err != nil {
			t.Fatalf("the process has said %s", scanner.Text())
		}
		if s.Asked != nil {
			w.asked[s.Asked.Name] = s.Asked
			continue
		}
		w.answers++
		delete(w.asked, s.Answered.Name)
		w.answered[s.Answered.Name] = s.Answered
		if version := versionOf(t, s.Answered); version > 0 {
			if version <= first {
				t.Errorf("the resource version %d comes again: there was %d before the restart", version, first)
			}
			w.last = max(w.last, version)
		}
	}
}

func versionOf(t *testing.T, obj *corev1.ConfigMap) int64 {
	t.Helper()
	if obj.ResourceVersion == "" {
		return 0
	}
	version, err := strconv.ParseInt(obj.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// compare compares the objects in a file with what clients were answered, one by one.
func (w *witness) compare(t *testing.T, path string, m *messages) {
	t.Helper()
	file, entries, revision, err := Open(path, m.options())
	if err != nil {
		t.Fatal(err)
	}
	if revision < w.last {
		t.Errorf("the file has revision %d, a client has %d", revision, w.last)
	}
	kept := keepIn(file, entries, revision)
	for n := range 16 {
		name := fmt.Sprintf("client-%d-%d", n/4, n%4)
		got := &corev1.ConfigMap{}
		err := objects(kept).Get(t.Context(), keyOf(name), apistorage.GetOptions{IgnoreNotFound: true}, got)
		if err != nil {
			t.Fatal(err)
		}
		answered := w.answered[name]
		if answered == nil || answered.UID == "" {
			answered = &corev1.ConfigMap{}
		}
		if asked := w.asked[name]; asked != nil && !cmp.Equal(answered, got) {
			// It has an effect all the same, with a resource version that nobody has seen.
			if version := versionOf(t, got); asked.UID != "" && version <= versionOf(t, answered) {
				t.Errorf("%s has the resource version %d after %s", name, version, answered.ResourceVersion)
			}
			asked.ResourceVersion, asked.TypeMeta = got.ResourceVersion, got.TypeMeta
			answered = asked
			if asked.UID == "" {
				answered = &corev1.ConfigMap{}
			}
			w.keptAsked++
		} else if asked != nil {
			w.lostAsked++
		}
		if diff := cmp.Diff(answered, got); diff != "" {
			t.Errorf("%s is not as a client was answered (-answer +file):\n%.2000s", name, diff)
		}
		w.answered[name] = got
	}
	w.asked, w.last = map[string]*corev1.ConfigMap{}, revision
	kept.Close()
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestKilled kills processes that write, again and again, and compares each time what is in the file with what clients
// were answered. Ten rounds are with the same file.
func TestKilled(t *testing.T) {
	t.Parallel()
	m := &messages{}
	var all witness
	var w *witness
	var path string
	for round := *seed; round < *seed+*rounds && !t.Failed(); round++ {
		if w == nil || (round-*seed)%10 == 0 {
			path = filepath.Join(t.TempDir(), "data")
			w = &witness{answered: map[string]*corev1.ConfigMap{}, asked: map[string]*corev1.ConfigMap{}}
		}
		before := *w
		w.heard(t, runKilled(t, path, round))
		w.compare(t, path, m)
		all.answers += w.answers - before.answers
		all.keptAsked += w.keptAsked - before.keptAsked
		all.lostAsked += w.lostAsked - before.lostAsked
		if t.Failed() {
			t.Errorf("round %d: run the test with -seed=%d -rounds=10", round, *seed+(round-*seed)/10*10)
		}
	}
	t.Logf("%d rounds from seed %d: %d answers are all kept; of writes without an answer %d are kept and %d are not; "+
		"%d files had a part of a record at their end", *rounds, *seed, all.answers, all.keptAsked, all.lostAsked,
		len(m.lines))
}

// runKilled runs a process until it is dead, and returns what it has said.
func runKilled(t *testing.T, path string, round uint64) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), killedFile+"="+path, fmt.Sprint(killedSeed, "=", round))
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	// A process that dies by itself may have done so by then.
	until := rand.New(rand.NewPCG(round, 0)).Int64N(1 << 20)
	var said bytes.Buffer
	if _, err := io.CopyN(&said, output, until); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	_ = command.Process.Kill() // it may be dead
	if _, err := io.Copy(&said, output); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); command.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process has ended with %v: %.2000s", err, said.Bytes())
	}
	return said.Bytes()
}

package cluster_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

// The variables of the environment of a process with a cluster: its data file, and a limit for the length of files.
const (
	killedFile  = "ESPALIER_TEST_KILLED_FILE"
	killedLimit = "ESPALIER_TEST_KILLED_LIMIT"
)

// runKilled runs a cluster until the process is killed. It ends the limit when it reads a line.
func runKilled(path string) {
	limit := syscall.Rlimit{}
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fail(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	before := limit
	env := &cluster.Environment{DataFile: path}
	_, err := env.Start()
	fail(err)
	if n, _ := fmt.Sscan(os.Getenv(killedLimit), &limit.Cur); n > 0 {
		fail(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	}
	fmt.Println(env.KubeConfigPath)
	lines := bufio.NewReader(os.Stdin)
	for {
		if _, err := lines.ReadString('\n'); err != nil {
			select {}
		}
		fail(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))
		fmt.Println("the limit has ended")
	}
}

// process is one with a cluster.
type process struct {
	*exec.Cmd
	client client.Client
	input  io.Writer
	output *bufio.Reader
}

func startProcess(t *testing.T, path, limit string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(t.Context(), os.Args[0])}
	p.Env = append(os.Environ(), killedFile+"="+path, killedLimit+"="+limit)
	p.Stderr = os.Stderr
	output, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.input, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	p.output = bufio.NewReader(output)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	kubeConfig := p.line(t)
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(kubeConfig)) })
	config, err := clientcmd.BuildConfigFromFlags("", kubeConfig)
	if err != nil {
		t.Fatalf("the process has said %q: %v", kubeConfig, err)
	}
	config.QPS = -1
	p.client = newClient(t, config)
	return p
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	line, err := p.output.ReadString('\n')
	if err != nil {
		t.Fatalf("the process has said %q: %v", line, err)
	}
	return strings.TrimSpace(line)
}

func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// answers are the objects that a client was answered, and those whose last request had no answer.
type answers struct {
	live    map[string]*corev1.ConfigMap
	pending map[string]bool
}

// request creates, updates or deletes an object at random, and returns the error if there is no answer.
func (a *answers) request(t *testing.T, c client.Client, random *rand.Rand, name string) error {
	live, next := a.live[name], configMap(name)
	if live != nil {
		next = live.DeepCopy()
	}
	next.Data = map[string]string{"a": strings.Repeat("b", random.IntN(5000))}
	var err error
	switch {
	case live == nil:
		err = c.Create(t.Context(), next)
	case random.IntN(3) == 0:
		err, next = c.Delete(t.Context(), live.DeepCopy()), nil
	default:
		err = c.Update(t.Context(), next)
	}
	if err != nil {
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			t.Errorf("%s is refused: %v", name, err)
		}
		a.pending[name] = true
		return err
	}
	if a.live[name] = next; next == nil {
		delete(a.live, name)
	}
	return nil
}

// TestKilled kills a process with a cluster while clients write, and compares what the next one has with what the
// clients were answered.
func TestKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	all := map[string]*corev1.ConfigMap{}
	for round := range uint64(4) {
		p := startProcess(t, path, "")
		clients := make([]*answers, 4)
		enough, ended := make(chan struct{}), make(chan struct{})
		var left atomic.Int64
		left.Store(20 + rand.Int64N(300))
		var group sync.WaitGroup
		for i := range clients {
			a := &answers{live: map[string]*corev1.ConfigMap{}, pending: map[string]bool{}}
			clients[i] = a
			names := []string{fmt.Sprint("a", i), fmt.Sprint("b", i)}
			for _, name := range names {
				if all[name] != nil {
					a.live[name] = all[name]
				}
			}
			group.Go(func() {
				random := rand.New(rand.NewPCG(round, uint64(i)))
				for n := 0; a.request(t, p.client, random, names[n%len(names)]) == nil; n++ {
					if left.Add(-1) == 0 {
						close(enough)
					}
				}
			})
		}
		go func() {
			defer close(ended)
			group.Wait()
		}()
		select {
		case <-enough:
		case <-ended:
			t.Errorf("no client has an answer any more before the process is killed: %d more are wanted", left.Load())
		}
		p.kill()
		<-ended
		q := startProcess(t, path, "")
		got := &corev1.ConfigMapList{}
		if err := q.client.List(t.Context(), got, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		q.kill()
		clear(all)
		answered, now := map[string]*corev1.ConfigMap{}, map[string]*corev1.ConfigMap{}
		for i := range got.Items {
			obj := &got.Items[i]
			all[obj.Name], now[obj.Name] = obj, obj
		}
		for _, a := range clients {
			maps.Copy(answered, a.live)
			for name := range a.pending {
				delete(answered, name)
				delete(now, name)
			}
		}
		if diff := cmp.Diff(answered, now); diff != "" {
			t.Errorf("the objects are not those of the answers (-answers +now):\n%.3000s", diff)
		}
	}
}

// TestFullDisk has the data file not become longer. Writes fail then, and what was there stays.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	p := startProcess(t, path, "200000")
	kept := map[string]*corev1.ConfigMap{}
	create := func(name string) error {
		obj := configMap(name)
		obj.Data["b"] = strings.Repeat("b", 7000)
		err := p.client.Create(t.Context(), obj)
		if err == nil {
			kept[name] = obj
		}
		return err
	}
	var err error
	for n := 0; n < 100 && err == nil; n++ {
		err = create(fmt.Sprint("a", n))
	}
	if want := "append to " + path + ": write: file too large"; !apierrors.IsInternalError(err) ||
		!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "keep what is written to /configmaps/default/a") {
		t.Fatalf("the error is %v, want %q in an internal error", err, want)
	}
	list := func() {
		t.Helper()
		all := &corev1.ConfigMapList{}
		if err := p.client.List(t.Context(), all, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		got := map[string]*corev1.ConfigMap{}
		for i := range all.Items {
			got[all.Items[i].Name] = &all.Items[i]
		}
		if diff := cmp.Diff(kept, got); diff != "" {
			t.Errorf("there are other objects (-answers +now):\n%.3000s", diff)
		}
	}
	list()
	live := kept["a0"].DeepCopy()
	live.Data["c"] = strings.Repeat("c", 7000)
	if err := p.client.Update(t.Context(), live); !apierrors.IsInternalError(err) {
		t.Errorf("an update: the error is %v", err)
	}
	list()
	if _, err := fmt.Fprintln(p.input); err != nil {
		t.Fatal(err)
	}
	p.line(t)
	for n := range 10 {
		if err := create(fmt.Sprint("b", n)); err != nil {
			t.Errorf("with room again: %v", err)
		}
	}
	list()
	p.kill()
	p = startProcess(t, path, "")
	defer p.kill()
	list()
}

// Package controlplanetest gives the tests of a package one control plane to share, since starting one takes seconds.
//
//	var plane = controlplanetest.Shared{Options: controlplane.Options{GarbageCollection: true}}
//
//	func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		config, namespace := plane.Config(t), plane.Namespace(t)
//		...
//	}
//
// A test that asks for a control plane is skipped under "go test -short". It runs on the in-process server, or with
// REAL=true on kube-apiserver. A test that needs that calls [Real] first. How many tests ran on which server, and how
// many were skipped, is printed after the last test.
package controlplanetest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
)

// Shared is a control plane that starts when the first test asks for it, so that a run of other tests does not wait for
// it, and stops after the last test. The zero value is ready to use. Its methods are safe for concurrent use.
type Shared struct {
	// Options are read when the control plane starts.
	Options controlplane.Options
	// Real says why all tests on the control plane call for Real; none does if it is empty.
	Real string

	mu sync.Mutex
	// running is set while Main runs the tests.
	running bool
	started bool
	env     *controlplane.Environment
	err     error
}

// Main runs the tests of a package, stops the control plane, and returns the exit code. The code is not zero after a
// test that failed, a control plane that did not stop as it should, or a goroutine that outlived the tests. What is
// logged by klog is discarded, and so is what controller-runtime logs, unless the caller has set a logger before; m is
// a *testing.M.
func (s *Shared) Main(m interface{ Run() int }) int {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	s.mu.Lock()
	s.running = true
	s.mu.Unlock()

	code := m.Run()
	report(os.Stdout)
	if err := s.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	// After a failed test the leak is most likely a consequence.
	if code == 0 {
		// A metadata informer of controller-runtime filters its watch. The filter does not end if there is an event
		// when the informer stops.
		filter := goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop")
		if err := findLeaks(filter); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

func (s *Shared) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	if s.env == nil {
		return nil
	}
	return s.env.Stop()
}

// Environment returns the control plane. The test is skipped if tests are to be short. When there is no control plane
// the test fails at once, with an error that says what to do. When a process of the control plane ends by itself during
// the test, the test fails in the end.
func (s *Shared) Environment(t testing.TB) *controlplane.Environment {
	t.Helper()
	_, measures := t.(*testing.B)
	switch {
	case s.Real != "":
		Real(t, s.Real)
	case measures:
		Real(t, "it measures requests to kube-apiserver")
	default:
		SkipIfShort(t)
	}
	env, err := s.start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Err(); err != nil {
			t.Error(err)
		}
	})
	return env
}

// start starts the control plane, or returns what the first call has returned.
func (s *Shared) start() (*controlplane.Environment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return nil, fmt.Errorf("nothing would stop the control plane: call Main of %T in TestMain", s)
	}
	if !s.started {
		s.started = true
		// A test's context would end with that test, the control plane serves them all.
		s.env, s.err = controlplane.Start(context.Background(), s.Options)
	}
	return s.env, s.err
}

// Config returns a copy of the configuration of an administrator's client.
func (s *Shared) Config(t testing.TB) *rest.Config {
	t.Helper()
	return s.Environment(t).Config()
}

// Namespace creates a namespace for the test and returns its name, which begins with the name of the test. It is left
// behind: the control plane is thrown away soon, and a namespace takes seconds to go.
func (s *Shared) Namespace(t testing.TB) string {
	t.Helper()
	c, err := client.New(s.Config(t), client.Options{})
	if err != nil {
		t.Fatalf("no client to create a namespace with: %v", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: namespacePrefix(t.Name())}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatalf("could not create a namespace: %v", err)
	}
	return namespace.Name
}

// seen are the tests that asked for a control plane, by what became of them.
var seen struct {
	mu                     sync.Mutex
	short, inProcess, real map[string]bool
}

func see(tests *map[string]bool, t testing.TB) {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if *tests == nil {
		*tests = map[string]bool{}
	}
	(*tests)[t.Name()] = true
}

// SkipIfShort skips a test that needs a control plane if tests are to be short. It is for tests that start one of their
// own; the methods of [Shared] call it.
func SkipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		see(&seen.short, t)
		t.Skip("it needs a control plane")
	}
	if !controlplane.Real() {
		see(&seen.inProcess, t)
	}
}

// Real skips a test that needs kube-apiserver, etcd or kube-controller-manager unless REAL is true. The reason says
// what for, in a literal: the script hack/real makes the list of these tests from the calls.
func Real(t testing.TB, reason string) {
	t.Helper()
	if testing.Short() || controlplane.Real() {
		SkipIfShort(t)
		return
	}
	see(&seen.real, t)
	t.Skip("it needs REAL=true: " + reason)
}

// report prints how many tests ran on the in-process server, and how many were skipped. The script hack/summary adds
// the numbers of all packages up.
func report(out io.Writer) {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if n := len(seen.short); n > 0 {
		fmt.Fprintf(out, "%d tests need a control plane and were skipped; run make test\n", n)
	}
	if ran, skipped := len(seen.inProcess), len(seen.real); ran+skipped > 0 {
		fmt.Fprintf(out, "%d tests ran on the in-process server, %d need kube-apiserver and were skipped; "+
			"REAL=true runs all on kube-apiserver\n", ran, skipped)
	}
}

// maxPrefix leaves room for what the API server appends to make a name of at most 63 characters.
const maxPrefix = 57

var notInNames = regexp.MustCompile("[^a-z0-9]")

// namespacePrefix turns the name of a test into what a namespace's name may begin with.
func namespacePrefix(test string) string {
	prefix := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(test), "-"), "-")
	prefix = strings.TrimRight(prefix[:min(len(prefix), maxPrefix)], "-")
	return cmp.Or(prefix, "test") + "-"
}

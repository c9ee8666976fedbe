package controlplanetest_test

import (
	"flag"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

// run is a testing.M that does what a test binary would do.
type run func() int

func (r run) Run() int { return r() }

func TestSharedStartsWhenAskedFor(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	var plane controlplanetest.Shared
	if code := plane.Main(run(func() int { return 0 })); code != 0 {
		t.Errorf("the exit code is %d although nobody wanted a control plane", code)
	}
	if code := plane.Main(run(func() int { return 3 })); code != 3 {
		t.Errorf("the exit code is %d, want that of the tests", code)
	}
}

func TestSharedFailsTheTestWithoutAControlPlane(t *testing.T) {
	setShort(t, "false")
	t.Setenv("REAL", "true")
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	var plane controlplanetest.Shared
	plane.Main(run(func() int {
		for range 2 {
			failure := failureOf(t, func(tb testing.TB) { plane.Config(tb) })
			if !strings.Contains(failure, "make controlplane") {
				t.Errorf("the failure is %q, want one that names make controlplane", failure)
			}
		}
		return 0
	}))
}

func TestSharedSkipsShortTests(t *testing.T) {
	controlplanetest.Report(io.Discard) // forgets other tests
	setShort(t, "true")
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	var plane controlplanetest.Shared
	for _, name := range []string{"one", "two", "two"} {
		t.Run(name, func(t *testing.T) {
			outcome := failureOf(t, func(tb testing.TB) { plane.Namespace(tb) })
			if outcome != "skipped: it needs a control plane" {
				t.Errorf(`the outcome is %q, want "skipped: it needs a control plane"`, outcome)
			}
		})
	}
	var out strings.Builder
	controlplanetest.Report(&out)
	controlplanetest.Report(&out)
	if want := "3 tests need a control plane and were skipped; run make test\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestRealSkipsTestsOnTheInProcessServer(t *testing.T) {
	setShort(t, "false")
	t.Setenv("REAL", "")
	realAlone := controlplanetest.Shared{Real: "it looks into etcd"}
	for name, ask := range map[string]func(testing.TB){
		"one": func(tb testing.TB) { controlplanetest.Real(tb, "it looks into etcd") },
		"two": func(tb testing.TB) { realAlone.Config(tb) },
		"any": controlplanetest.SkipIfShort,
	} {
		t.Run(name, func(t *testing.T) {
			want := map[bool]string{false: "skipped: it needs REAL=true: it looks into etcd"}[name == "any"]
			if outcome := failureOf(t, ask); outcome != want {
				t.Errorf("the outcome is %q, want %q", outcome, want)
			}
		})
	}
	var out strings.Builder
	controlplanetest.Report(&out)
	want := "1 tests ran on the in-process server, 2 need kube-apiserver and were skipped; " +
		"REAL=true runs all on kube-apiserver\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	t.Setenv("REAL", "true")
	if outcome := failureOf(t, func(tb testing.TB) { controlplanetest.Real(tb, "it looks into etcd") }); outcome != "" {
		t.Errorf("with REAL=true the outcome is %q, want the test to run", outcome)
	}
	controlplanetest.Report(&out)
	if out.String() != want {
		t.Errorf("printed %q, want nothing with REAL=true", strings.TrimPrefix(out.String(), want))
	}
}

// setShort sets the flag -short for the test.
func setShort(t *testing.T, short string) {
	t.Helper()
	before := fmt.Sprint(testing.Short())
	if err := flag.Set("test.short", short); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := flag.Set("test.short", before); err != nil {
			t.Error(err)
		}
	})
}

func TestSharedNeedsMain(t *testing.T) {
	setShort(t, "false")
	var plane controlplanetest.Shared
	failure := failureOf(t, func(tb testing.TB) { plane.Namespace(tb) })
	if !strings.Contains(failure, "call Main of *controlplanetest.Shared in TestMain") {
		t.Errorf("the failure is %q, want one that asks for Main in TestMain", failure)
	}
}

func TestSharedNoticesALeak(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	defer controlplanetest.LeakAtOnce()()
	var plane controlplanetest.Shared
	code := plane.Main(run(func() int {
		go func() { <-stop }()
		return 0
	}))
	if code == 0 {
		t.Error("the exit code with a goroutine that outlives the tests is 0, want another")
	}
}

func TestNamespaceNamesAreLegal(t *testing.T) {
	for _, test := range []string{
		"TestPlain", "TestTable/with spaces_and/ünïcode", "Test" + strings.Repeat("Long", 30), "Test" + strings.Repeat("/", 80) + "x",
		"/", "Benchmark-8",
	} {
		name := controlplanetest.NamespacePrefix(test) + "x7k2p"
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			t.Errorf("the name of %s is %s, want a DNS label: %v", test, name, problems)
		}
	}
}

// failureOf returns what a test that does f would fail with, or why it would be skipped.
func failureOf(t *testing.T, f func(testing.TB)) string {
	t.Helper()
	recorded := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(recorded)
	}()
	<-done
	return recorded.failure
}

// recorder is a test whose failure is recorded.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Fatal(args ...any) {
	r.failure = fmt.Sprint(args...)
	runtime.Goexit()
}

func (r *recorder) Skip(args ...any) {
	r.failure = "skipped: " + fmt.Sprint(args...)
	runtime.Goexit()
}

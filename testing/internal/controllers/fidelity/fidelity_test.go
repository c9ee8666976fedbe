package fidelity_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

var update = flag.Bool("update", false, "write testdata")

func file(scenario string) string { return filepath.Join("testdata", scenario+".txt") }

func read(t *testing.T, scenario string) []string {
	t.Helper()
	text, err := os.ReadFile(file(scenario))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// newPlay returns a play in a namespace of its own.
func newPlay(t *testing.T, config *rest.Config, scenario string) *play {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &play{T: t, Client: c, namespace: "play-" + scenario}
	p.mask = newMask(p.namespace)
	p.must(p.Create(p.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}))
	return p
}

// TestRealCluster plays the scenarios with a real control plane.
func TestRealCluster(t *testing.T) {
	for scenario, run := range scenarios {
		t.Run(scenario, func(t *testing.T) {
			config := plane.Config(t)
			t.Parallel()
			p := newPlay(t, config, scenario)
			quiet := 3 * time.Second
			if scenario == "namespace" {
				// The controller looks again after a time that doubles.
				quiet = 20 * time.Second
			}
			p.settle = func() { p.settled(quiet) }
			if !*update {
				p.wanted = read(t, scenario)
			}
			run(p)
			if *update {
				p.must(os.MkdirAll("testdata", 0o755))
				p.must(os.WriteFile(file(scenario), []byte(strings.Join(p.record, "\n")+"\n"), 0o644))
				return
			}
			if diff := cmp.Diff(read(t, scenario), p.record); diff != "" {
				t.Errorf("the record is not current, run again with -update (-recorded, +real):\n%s", diff)
			}
		})
	}
}

// TestStandIns plays the scenarios with the stand-ins, and compares.
func TestStandIns(t *testing.T) {
	for scenario, run := range scenarios {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			recorded := read(t, scenario)
			synctest.Test(t, func(t *testing.T) {
				kept := storage.New(storage.Options{})
				defer kept.Close()
				s, err := server.Start(context.Background(), server.Options{Storage: kept.Decorator()})
				if err != nil {
					t.Fatal(err)
				}
				defer time.Sleep(2 * time.Minute)
				defer s.Stop()
				config := &rest.Config{Host: server.Host, Transport: server.RoundTripper(s.Handler()), QPS: -1}
				running, err := controllers.Start(t.Context(), config, controllers.Options{
					Without: []string{"kube-scheduler", "kubelet"},
					Failed:  func(err error) { t.Error(err) },
				})
				if err != nil {
					t.Fatal(err)
				}
				defer running.Stop()
				p := newPlay(t, config, scenario)
				p.settle = func() { time.Sleep(5 * time.Second) }
				run(p)
				compare(t, scenario, recorded, p.record)
			})
		})
	}
}

// compare fails the test at differences that are not known, and at known ones that are not there.
func compare(t *testing.T, scenario string, real, standIn []string) {
	t.Helper()
	used := map[int]bool{}
	for _, difference := range differences(real, standIn) {
		i := slices.IndexFunc(known, func(k knownDifference) bool {
			return slices.Contains(k.scenarios, scenario) && k.pattern.MatchString(difference)
		})
		if i < 0 {
			t.Errorf("(-real, +stand-ins) %s", difference)
			continue
		}
		used[i] = true
	}
	for i, k := range known {
		if slices.Contains(k.scenarios, scenario) && !used[i] {
			t.Errorf("the difference %s is not there any more: %s", k.pattern, k.why)
		}
	}
}

// differences returns the lines that only one of two records has: with "-" the real one, with "+" the other one. Lines
// of an object that only one has are not told.
func differences(real, standIn []string) []string {
	var all []string
	if first, second := steps(real), steps(standIn); !slices.Equal(first, second) {
		return []string{fmt.Sprintf("the steps are %q and %q", first, second)}
	}
	second := sections(standIn)
	for name, first := range sections(real) {
		tell := func(sign string, of, other map[string]bool) {
			for line := range of {
				object := ofObject.FindString(line)
				if !other[line] && (line == object || other[object]) {
					all = append(all, name+": "+sign+line)
				}
			}
		}
		tell("-", first, second[name])
		tell("+", second[name], first)
	}
	return all
}

// ofObject is the object that a line is about.
var ofObject = regexp.MustCompile(`^[^ ]+ [^ ]+( #[0-9]+)?`)

// steps returns the names of the steps of a record.
func steps(record []string) []string {
	return slices.DeleteFunc(slices.Clone(record), func(line string) bool { return !strings.HasPrefix(line, "== ") })
}

// sections returns the lines of each step of a record.
func sections(record []string) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	name := ""
	for _, line := range record {
		if step, ok := strings.CutPrefix(line, "== "); ok {
			name = step
			all[name] = map[string]bool{}
		} else {
			all[name][line] = true
		}
	}
	return all
}

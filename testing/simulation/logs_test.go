package simulation

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/testing/internal/transport"
)

// TestLibraryErrors has two simulations log errors as libraries do.
func TestLibraryErrors(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &World{network: transport.New(transport.Options{})}
				remove := bubbles.add(w)
				klog.Infof("starting %s", name)
				klog.Errorf("of %s", name)
				var done sync.WaitGroup
				done.Go(func() { klog.Background().Error(errors.New("no"), "by "+name, "name", "a") })
				done.Wait()
				remove()
				klog.Error("after the end")
				var noted []string
				for _, e := range w.network.Log().Entries {
					noted = append(noted, e.Note)
				}
				if want := []string{
					"libraries error: of " + name, "libraries error: by " + name + ": a: no",
				}; !slices.Equal(noted, want) {
					t.Errorf("got %q, want %q", noted, want)
				}
			})
		})
	}
}

// TestErrorSink logs where a manager's logger of the user logs, too.
func TestErrorSink(t *testing.T) {
	t.Parallel()
	var logged, noted []string
	theirs := funcr.New(func(prefix, args string) { logged = append(logged, prefix+": "+args) }, funcr.Options{})
	log := theirs.WithSink(errorSink{
		elsewhere: theirs.GetSink(), note: func(text string) { noted = append(noted, text) },
	}).WithName("app").WithValues("namespace", "shop")
	log.Info("it works")
	log.V(1).Info("more")
	log.Error(errors.New("no"), "failed", "name", "one")
	if want := []string{"failed: shop/one: no"}; !slices.Equal(noted, want) {
		t.Errorf("noted %q, want %q", noted, want)
	}
	if len(logged) != 2 || !strings.HasPrefix(logged[0], "app: ") || !strings.Contains(logged[1], `"error"="no"`) {
		t.Errorf("logged %q", logged)
	}
}

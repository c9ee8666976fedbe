package sharded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scene is a namespace with the Widgets of a ring.
type scene struct {
	testing.TB
	client.Client
	namespace string
	history   *history
	// widgets are the fields of the Widgets that are to be there, by their names.
	widgets map[string]map[string]string
	made    int
}

// newScene starts a sharder, and returns a namespace without a ring. A cluster has one sharder, so tests do not run in
// parallel.
func newScene(t testing.TB, startSharder func(testing.TB, *rest.Config)) *scene {
	t.Helper()
	c, err := client.New(plane.Config(t), client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{TB: t, Client: c, namespace: plane.Namespace(t), widgets: map[string]map[string]string{}}
	s.history = record(t, s.namespace)
	startSharder(t, plane.Config(t))
	return s
}

// replica returns a replica of a ring in the namespace.
func (s *scene) replica(ring, name string, leaseSeconds int) replica {
	return replica{Ring: ring, Name: name, Namespace: s.namespace, LeaseSeconds: leaseSeconds}
}

// ring makes the ring of a replica, until the test ends.
func (s *scene) ring(r replica) (remove func()) {
	s.Helper()
	obj, err := sharder.Ring{Name: r.Ring, Spec: r.spec()}.Object()
	if err == nil {
		err = s.Client.Create(s.Context(), obj)
	}
	if err != nil {
		s.Fatal(err)
	}
	remove = func() {
		s.Helper()
		if err := s.Client.Delete(context.Background(), obj); client.IgnoreNotFound(err) != nil {
			s.Error(err)
		}
	}
	s.Cleanup(remove)
	return remove
}

// fields draws those of a Widget.
func fields() map[string]string {
	return map[string]string{"color": fmt.Sprint(rand.IntN(1000)), "parts": fmt.Sprint(rand.IntN(4))}
}

// create creates a Widget.
func (s *scene) create(fields map[string]string) {
	s.Helper()
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("w-%d", s.made)}}
	w.Spec.Fields = fields
	if err := s.Client.Create(s.Context(), w); err != nil {
		s.Fatal(err)
	}
	s.widgets[w.Name] = fields
	s.made++
}

// act creates, changes or deletes a Widget.
func (s *scene) act() {
	s.Helper()
	switch name := fmt.Sprintf("w-%d", rand.IntN(s.made)); {
	case s.widgets[name] == nil:
		s.create(fields())
	case rand.IntN(4) == 0:
		s.delete(name)
	default:
		s.change(name, fields())
	}
}

// change changes the fields of a Widget.
func (s *scene) change(name string, fields map[string]string) {
	s.Helper()
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"fields": fields}})
	if err == nil {
		err = s.Client.Patch(s.Context(), w, client.RawPatch(types.MergePatchType, patch))
	}
	if err != nil {
		s.Fatalf("change %s: %v", name, err)
	}
	s.widgets[name] = fields
}

// delete deletes a Widget.
func (s *scene) delete(name string) {
	s.Helper()
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	if err := s.Client.Delete(s.Context(), w); err != nil {
		s.Fatalf("delete %s: %v", name, err)
	}
	delete(s.widgets, name)
}

// settle waits until there is what the Widgets are to have, and nothing else.
func (s *scene) settle(when string) {
	s.Helper()
	want := wanted(s.widgets)
	controlplanetest.Eventually(s, when, func(context.Context) error {
		changes, err := s.history.all()
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, described(changes)); diff != "" {
			return errors.New("there is something else (-want +got):\n" + diff)
		}
		return nil
	})
}

// revision returns that of the last change.
func (s *scene) revision() uint64 {
	s.Helper()
	changes := s.history.complete(s, s.Client)
	return changes[len(changes)-1].revision
}

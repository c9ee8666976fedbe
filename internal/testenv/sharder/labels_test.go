package sharder_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"
	"github.com/espalier-dev/espalier/internal/testenv/sharder/sharderstest"
)

var update = flag.Bool("update", false, "writes what the sharder does to testdata, after waiting for it to rest")

// TestLabels has shards come and go, and compares the labels after each event with those of testdata. If the variable
// ESPALIER_SHARDER has the path of the sharder itself, its labels are compared, too: the stand-in and the sharder make
// the same of the same events.
func TestLabels(t *testing.T) {
	for name, begin := range map[string]func(testing.TB, *rest.Config){
		"stand-in": sharderstest.StandIn, "sharder": sharderstest.Original,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "sharder" && os.Getenv(sharderstest.Variable) == "" {
				t.Skip("it needs the path of the sharder in " + sharderstest.Variable)
			}
			controlplanetest.SkipIfShort(t)
			env, err := controlplane.Start(t.Context(), controlplane.Options{
				CRDs: []*apiextensionsv1.CustomResourceDefinition{sharder.Definition()},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := env.Stop(); err != nil {
					t.Error(err)
				}
			})
			s := newScene(t, env.Config())
			begin(t, env.Config())
			s.play()
		})
	}
}

const (
	ring   = "maps"
	golden = "testdata/labels.txt"
	// settling is longer than the sharder waits before it tries again what failed.
	settling = 7 * time.Second
)

// scene is a cluster in which shards come and go.
type scene struct {
	*testing.T
	client.Client
	// wanted are the labels after each event, by the event.
	wanted map[string]string
	told   strings.Builder
}

func newScene(t *testing.T, config *rest.Config) *scene {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(golden)
	if err != nil && !*update {
		t.Fatal(err)
	}
	s := &scene{T: t, Client: c, wanted: map[string]string{}}
	for section := range strings.SplitSeq(string(content), "== ") {
		event, labels, _ := strings.Cut(section, "\n")
		s.wanted[event] = labels
	}
	return s
}

// play tells what happens.
func (s *scene) play() {
	for _, namespace := range []string{"team-1", "team-2", metav1.NamespaceSystem} {
		err := s.Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		if client.IgnoreAlreadyExists(err) != nil {
			s.Fatal(err)
		}
	}
	s.lease("shard-0", held, 0)
	s.lease("shard-1", held, 0)
	s.make(s.ring())
	s.awaitWebhook()
	s.make(mapOf("team-1", "made-first"))
	s.then("a main object is made, and two shards are ready")

	s.makeAll()
	s.refuse("a main object with generateName is refused",
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team-1", GenerateName: "some-"}})
	s.then("objects of each kind are made")

	s.lease("shard-2", held, 0)
	s.then("a third shard joins: main objects are asked for, and controlled ones moved")

	s.giveBack()
	s.then("the shards give back what they were asked for")

	s.lease("shard-0", held, time.Hour+time.Second)
	s.make(mapOf("team-2", "made-while-expired"))
	s.then("a Lease expires: nothing is moved")

	s.lease("shard-0", held, 2*time.Hour+time.Second)
	s.then("it has expired for its duration: the sharder takes it, and its objects are moved")

	s.lease("shard-1", "", 0)
	s.then("a shard releases its Lease: its objects are moved")

	s.lease("shard-0", held, 0)
	s.then("a dead shard is back")

	s.giveBack()
	s.lease("shard-1", "", 2*time.Hour)
	s.then("the shards give back, and a Lease is dead for more than a minute: it is deleted")

	s.lease("shard-0", "", 0)
	s.then("all but one shard have released their Leases")

	s.lease("shard-2", "", 0)
	s.then("no shard is left: labels stay")

	s.make(mapOf("team-1", "made-without-shards"))
	s.then("an object is made meanwhile: it has no label")

	s.lease("shard-3", held, 0)
	s.then("a new shard joins, and takes all")

	if *update {
		if err := os.WriteFile(golden, []byte(s.told.String()), 0o600); err != nil {
			s.Fatal(err)
		}
	}
}

// then waits until the labels are those after an event.
func (s *scene) then(event string) {
	s.Helper()
	if *update {
		s.told.WriteString("== " + event + "\n" + s.settled())
		return
	}
	var got string
	wanted := s.wanted[event]
	controlplanetest.Eventually(s, event, func(ctx context.Context) error {
		got = s.labels(ctx)
		if diff := cmp.Diff(wanted, got); diff != "" {
			return errors.New("the labels differ (-wanted +got):\n" + diff)
		}
		return nil
	})
	if os.Getenv(sharderstest.Variable) == "" {
		return
	}
	if diff := cmp.Diff(wanted, s.settled()); diff != "" {
		s.Errorf("%s: the labels do not stay (-wanted +got):\n%s", event, diff)
	}
}

// settled returns the labels when they have not changed for a while.
func (s *scene) settled() string {
	s.Helper()
	last, since := s.labels(s.Context()), time.Now()
	for time.Since(since) < settling {
		time.Sleep(100 * time.Millisecond)
		if now := s.labels(s.Context()); now != last {
			last, since = now, time.Now()
		}
	}
	return last
}

// kinds are lists of what has labels.
func kinds() []client.ObjectList {
	return []client.ObjectList{
		&coordinationv1.LeaseList{}, &corev1.ConfigMapList{}, &corev1.SecretList{},
		&rbacv1.ClusterRoleList{}, &rbacv1.RoleList{},
	}
}

// labels returns a line for each object.
func (s *scene) labels(ctx context.Context) string {
	var lines strings.Builder
	for _, list := range kinds() {
		if err := s.List(ctx, list, client.HasLabels{inScene}); err != nil {
			return err.Error()
		}
		for _, obj := range objects(list) {
			fmt.Fprintf(&lines, "%s: %s\n", named(obj), described(obj))
		}
	}
	return lines.String()
}

// described says what the sharder made of an object.
func described(obj client.Object) string {
	labels := obj.GetLabels()
	if lease, ok := obj.(*coordinationv1.Lease); ok {
		return fmt.Sprintf("%s, held by %q", labels[sharder.StateLabel], *lease.Spec.HolderIdentity)
	}
	text := labels[sharder.ShardLabel(ring)]
	if text == "" {
		text = "no shard"
	}
	if _, asked := labels[sharder.DrainLabel(ring)]; asked {
		text += ", asked for"
	}
	return text
}

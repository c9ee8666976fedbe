package foreign_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/component/clusters"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// balance listens on an address whose connections go to the servers in turn.
func balance(t *testing.T, servers ...*rest.Config) (host string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	track := func(c net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		open = append(open, c)
	}
	all.Go(func() {
		for i := 0; ; i++ {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			track(in)
			target, err := url.Parse(servers[i%len(servers)].Host)
			if err != nil {
				panic(err)
			}
			out, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", target.Host)
			if err != nil {
				_ = in.Close()
				continue
			}
			track(out)
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				all.Go(func() {
					_, _ = io.Copy(way[0], way[1])
					_, _ = way[0].Close(), way[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return "https://" + listener.Addr().String()
}

// lag makes a server lag behind until the test ends: it is paused for longer than a second again and again.
func lag(t *testing.T, second *controlplane.SecondAPIServer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			if err := second.Pause(); err != nil {
				t.Error(err)
				return
			}
			sleep(ctx, time.Duration(400+i*270%800)*time.Millisecond)
			if err := second.Resume(); err != nil {
				t.Error(err)
				return
			}
			sleep(ctx, 120*time.Millisecond)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// startSecond starts another API server, and says so by a Lease: the Lease of both would have the same name.
func startSecond(t *testing.T) *controlplane.SecondAPIServer {
	t.Helper()
	second, err := plane.Environment(t).StartSecondAPIServer()
	if err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "apiserver-second",
			Labels: map[string]string{"apiserver.kubernetes.io/identity": "kube-apiserver"}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new("apiserver-second"), LeaseDurationSeconds: new(int32(3600)),
			RenewTime: new(metav1.NowMicro())},
	}
	create(t, lease)
	t.Cleanup(func() {
		if err := live(t).Delete(context.Background(), lease); err != nil {
			t.Errorf("could not clean up: %v", err)
		}
		if err := second.Stop(); err != nil {
			t.Errorf("could not stop the second API server: %v", err)
		}
	})
	return second
}

// Of two API servers behind a load balancer, one lags behind for as long as a second. Others create instances through
// both, as fast as they can, and delete them again, so that a check seldom finds one. No instance is deleted but by its
// creator.
func TestLaggingAPIServerFaults(t *testing.T) {
	controlplanetest.Real(t, "there have to be two API servers on one etcd")
	second := startSecond(t)
	direct := []client.WithWatch{live(t), newClient(t, second.Config())}
	config := second.ConfigOf(balance(t, plane.Config(t), second.Config()))
	lag(t, second)

	rounds, enough := 6, int64(1)
	if os.Getenv("ESPALIER_FAULTS") == "all" {
		rounds, enough = 400, 5000
	}
	var accepted, lost, removed atomic.Int64
	var group sync.WaitGroup
	next := make(chan int)
	for range 6 {
		group.Go(func() {
			for round := range next {
				crd := install(t, crdOf(fmt.Sprintf("Lag%d", round)))
				removed.Add(raceServers(t, crd, config, direct, &accepted, &lost))
			}
		})
	}
	for round := 0; round < rounds && (round < 6 || accepted.Load() < enough); round++ {
		next <- round
	}
	close(next)
	group.Wait()
	t.Logf("%d accepted, %d lost, %d types removed", accepted.Load(), lost.Load(), removed.Load())
	if lost.Load() > 0 {
		t.Errorf("%d of %d instances were lost, want none", lost.Load(), accepted.Load())
	}
	if accepted.Load() < enough {
		t.Errorf("%d instances were accepted, want at least %d", accepted.Load(), enough)
	}
}

// raceServers removes a type while others create instances. It returns 1 if the type was removed.
func raceServers(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, config *rest.Config,
	direct []client.WithWatch, accepted, lost *atomic.Int64) (removed int64) {
	t.Helper()
	namespace := plane.Namespace(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	start, many := make(chan struct{}), make(chan struct{})
	var racers sync.WaitGroup
	var made atomic.Int64
	for w := range 12 {
		racers.Go(func() {
			<-start
			c := direct[w%2]
			for i := 0; ctx.Err() == nil; i++ {
				object := instance(crd, namespace, fmt.Sprintf("r-%d-%d", w, i), "")
				// A request that is broken off may have succeeded.
				if c.Create(context.WithoutCancel(ctx), object) != nil {
					continue
				}
				accepted.Add(1)
				if made.Add(1) == 100 {
					close(many)
				}
				if err := c.Delete(context.WithoutCancel(ctx), object); apierrors.IsNotFound(err) {
					lost.Add(1)
				} else if err != nil {
					t.Errorf("could not delete an instance: %v", err)
				}
			}
		})
	}
	cluster, err := (&clusters.Pool{Home: config}).Get(t.Context(), clusters.Identity{})
	if err != nil {
		t.Error(err)
		return 0
	}
	g := newGuard(t, config)
	g.Margin, g.Fresh = 0, cluster.FreshClient
	var begin sync.Once
	g.Client = interceptor.NewClient(g.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch,
			opts ...client.PatchOption) error {
			begin.Do(func() {
				close(start)
				// Many are created by the time of the fence.
				select {
				case <-many:
				case <-ctx.Done():
				}
			})
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	use, err := deleteOne(t.Context(), g, keyOf(crd), stored(t, crd).UID)
	begin.Do(func() { close(start) })
	switch {
	case err != nil:
		t.Errorf("%s: the error is %v, want none", crd.Spec.Names.Kind, err)
	case use.State == plan.ForeignNone:
		removed = 1
		assertGone(t, crd)
	case use.State == plan.ForeignUnknown:
		t.Errorf("%s: the use is %+v, want a known state", crd.Spec.Names.Kind, use)
	}
	cancel()
	racers.Wait()
	return removed
}

// The head of a request is sent before the fence, and its body after it. The API server validates the instance by the
// rules that were there when the request began.
func TestCreationsWhoseBodyIsSlow(t *testing.T) {
	t.Parallel()
	const late = 50
	crd := install(t, crdOf("Sloth"))
	namespace := plane.Namespace(t)
	cluster, err := (&clusters.Pool{Home: plane.Config(t)}).Get(t.Context(), clusters.Identity{})
	if err != nil {
		t.Fatal(err)
	}
	send := func(name string, began func(), body <-chan struct{}) error {
		text := fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Sloth","metadata":{"name":"%s"}}`, smithy, name)
		reader := &slowReader{Reader: strings.NewReader(text), wait: body}
		address := fmt.Sprintf("%s/apis/%s/v1/namespaces/%s/sloths", cluster.Config.Host, smithy, namespace)
		trace := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteHeaders: began})
		request, err := http.NewRequestWithContext(trace, http.MethodPost, strings.Replace(address, "//apis", "/apis", 1), reader)
		if err != nil {
			return err
		}
		request.ContentLength = int64(len(text))
		request.Header.Set("Content-Type", "application/json")
		answer, err := cluster.HTTPClient.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusCreated {
			content, _ := io.ReadAll(answer.Body)
			return fmt.Errorf("%s: %s", answer.Status, content)
		}
		return nil
	}
	var created atomic.Int64
	var requests sync.WaitGroup
	bodies := make(chan struct{})
	sendBodies := sync.OnceFunc(func() { close(bodies) })
	var begin sync.Once
	g := newGuard(t, plane.Config(t))
	g.Margin = 0
	g.Client = interceptor.NewClient(g.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch,
			opts ...client.PatchOption) error {
			begin.Do(func() {
				var heads sync.WaitGroup
				heads.Add(late)
				for i := range late {
					requests.Go(func() {
						if err := send(fmt.Sprintf("slow-%d", i), sync.OnceFunc(heads.Done), bodies); err != nil {
							t.Logf("%d: %v", i, err)
						} else {
							created.Add(1)
						}
					})
				}
				heads.Wait()
				// A few round trips, for the API server to have begun with them.
				for range 5 {
					if err := c.List(ctx, listOf(crd)); err != nil {
						t.Error(err)
					}
				}
			})
			err := c.Patch(ctx, obj, patch, opts...)
			if tried := (&client.PatchOptions{}).ApplyOptions(opts).DryRun; err == nil && len(tried) == 0 {
				sendBodies()
			}
			return err
		},
	})
	use, err := deleteOne(t.Context(), g, keyOf(crd), stored(t, crd).UID)
	sendBodies()
	requests.Wait()
	if err != nil {
		t.Fatal(err)
	}
	there := listOf(crd)
	if err := live(t).List(t.Context(), there); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d were created, %d are there: %+v", created.Load(), late, len(there.Items), use)
	if int64(len(there.Items)) != created.Load() {
		t.Errorf("%d of %d instances were lost, want none", created.Load()-int64(len(there.Items)), created.Load())
	}
	if created.Load() == 0 {
		t.Error("no instance was created, want one at least, or the test shows nothing")
	}
}

// slowReader waits before the first byte.
type slowReader struct {
	io.Reader
	wait <-chan struct{}
}

func (r *slowReader) Read(p []byte) (int, error) {
	<-r.wait
	return r.Reader.Read(p)
}

// An API server that is behind refuses an instance late, and writes until then what was created before. The margin is
// for that, so it begins with the answer.
func TestTheMarginBeginsWithTheAnswer(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Late"))
	var answered, looked time.Time
	g := newGuard(t, plane.Config(t))
	g.Margin = time.Second
	g.Client = interceptor.NewClient(g.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			err := c.Create(ctx, obj, opts...)
			if apierrors.IsInvalid(err) {
				// It is longer than the margin of a new type.
				sleep(ctx, 4*time.Second)
				answered = time.Now()
			}
			return err
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			looked = time.Now()
			return c.List(ctx, list, opts...)
		},
	})
	use, err := deleteOne(t.Context(), g, keyOf(crd), stored(t, crd).UID)
	if err != nil || use.State != plan.ForeignNone {
		t.Fatalf("the use is %+v and the error %v, want none", use, err)
	}
	if margin := looked.Sub(answered); answered.IsZero() || margin < g.Margin {
		t.Errorf("instances are looked for %v after the answer, want at least %v", margin, g.Margin)
	}
}

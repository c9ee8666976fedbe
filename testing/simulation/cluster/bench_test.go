package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

// startBoth starts a cluster in the process, and etcd with kube-apiserver as envtest does. It returns how long each
// took until it answered for the first time.
func startBoth(b *testing.B) (configs [2]*rest.Config, took [2]time.Duration, stop func()) {
	b.Helper()
	b.Setenv("REAL", "true")
	env := &cluster.Environment{Workloads: true}
	var control *controlplane.Environment
	for i, start := range []func() (*rest.Config, error){
		env.Start,
		func() (_ *rest.Config, err error) {
			if control, err = controlplane.Start(context.Background(), controlplane.Options{}); err != nil {
				return nil, err
			}
			return control.Config(), nil
		},
	} {
		began := time.Now()
		config, err := start()
		if err != nil {
			b.Fatal(err)
		}
		if err := newClient(b, config).List(b.Context(), &corev1.NamespaceList{}); err != nil {
			b.Fatal(err)
		}
		configs[i], took[i] = config, time.Since(began)
	}
	return configs, took, func() {
		for _, stop := range []func() error{env.Stop, control.Stop} {
			if err := stop(); err != nil {
				b.Error(err)
			}
		}
	}
}

// report reports two values of an operation and their ratio, of which at most 1 is wanted.
func report(b *testing.B, unit string, sums [2]float64) {
	values := [2]float64{sums[0] / float64(b.N), sums[1] / float64(b.N)}
	b.ReportMetric(values[0], "in-process-"+unit)
	b.ReportMetric(values[1], "etcd-"+unit)
	b.ReportMetric(values[0]/values[1], unit+"-ratio")
	b.ReportMetric(1, unit+"-ratio-target")
}

// BenchmarkStart compares the time from the start to the first answer, and the memory that is resident with 1,000
// objects: of this process, with its clients and its tests, and of the processes that it has started.
func BenchmarkStart(b *testing.B) {
	var times, memory [2]float64
	for b.Loop() {
		configs, took, stop := startBoth(b)
		for i, config := range configs {
			fill(b, newClient(b, config))
			times[i] += float64(took[i].Milliseconds())
		}
		own := strconv.Itoa(os.Getpid())
		for pid, parent := range parents(b) {
			if pid == own {
				memory[0] += resident(b, pid)
			} else if parent == own {
				memory[1] += resident(b, pid)
			}
		}
		stop()
	}
	report(b, "ms", times)
	report(b, "MiB", memory)
}

// watchers is how many clients watch.
const watchers = 100

// BenchmarkRequests compares requests of one client over TLS, each of which is made to both clusters in turn.
func BenchmarkRequests(b *testing.B) {
	configs, _, stop := startBoth(b)
	b.Cleanup(stop)
	var clients [2]client.WithWatch
	for i, config := range configs {
		clients[i] = newClient(b, config)
		fill(b, clients[i])
	}
	n := 0
	live := configMap("live")
	for name, request := range map[string]func(context.Context, client.WithWatch) error{
		"get": func(ctx context.Context, c client.WithWatch) error {
			return c.Get(ctx, client.ObjectKeyFromObject(live), &corev1.ConfigMap{})
		},
		"list 1000": func(ctx context.Context, c client.WithWatch) error {
			return c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(metav1.NamespacePublic))
		},
		"create": func(ctx context.Context, c client.WithWatch) error {
			n++
			return c.Create(ctx, configMap(fmt.Sprint("a", n)))
		},
		"apply": func(ctx context.Context, c client.WithWatch) error {
			n++
			return c.Apply(ctx, v1.ConfigMap("live", live.Namespace).WithData(map[string]string{"n": fmt.Sprint(n)}),
				client.FieldOwner("bench"), client.ForceOwnership)
		},
	} {
		b.Run(name, func(b *testing.B) { compare(b, clients, request) })
	}
	b.Run(fmt.Sprint("create seen by ", watchers), func(b *testing.B) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		events := map[client.WithWatch]chan struct{}{}
		for _, c := range clients {
			events[c] = make(chan struct{}, watchers)
			for range watchers {
				follow(ctx, b, c, events[c])
			}
		}
		compare(b, clients, func(ctx context.Context, c client.WithWatch) error {
			n++
			obj := configMap(fmt.Sprint("seen", n))
			obj.Namespace = metav1.NamespaceSystem
			if err := c.Create(ctx, obj); err != nil {
				return err
			}
			for range watchers {
				select {
				case <-events[c]:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
	})
}

// compare makes a request to the two clusters in turn.
func compare(b *testing.B, clients [2]client.WithWatch, request func(context.Context, client.WithWatch) error) {
	var took [2]float64
	for b.Loop() {
		for i, c := range clients {
			began := time.Now()
			if err := request(b.Context(), c); err != nil {
				b.Fatal(err)
			}
			took[i] += float64(time.Since(began).Microseconds())
		}
	}
	report(b, "µs", took)
}

// fill creates 1,000 ConfigMaps, and one that is live.
func fill(b *testing.B, c client.Client) {
	b.Helper()
	objects := []*corev1.ConfigMap{configMap("live")}
	for i := range 1000 {
		obj := configMap(fmt.Sprint("listed", i))
		obj.Namespace = metav1.NamespacePublic
		objects = append(objects, obj)
	}
	for _, obj := range objects {
		if err := c.Create(b.Context(), obj); err != nil {
			b.Fatal(err)
		}
	}
}

// follow sends each event of the ConfigMaps in a namespace, until the context is done.
func follow(ctx context.Context, b *testing.B, c client.WithWatch, events chan<- struct{}) {
	b.Helper()
	list := &corev1.ConfigMapList{}
	if err := c.List(ctx, list, client.InNamespace(metav1.NamespaceSystem)); err != nil {
		b.Fatal(err)
	}
	w, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(metav1.NamespaceSystem),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		for range w.ResultChan() {
			select {
			case events <- struct{}{}:
			case <-ctx.Done():
			}
		}
	}()
}

// parents returns the parent of each process.
func parents(b *testing.B) map[string]string {
	b.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil || len(files) == 0 {
		b.Skip("this machine does not say which processes run")
	}
	all := map[string]string{}
	for _, file := range files {
		all[filepath.Base(filepath.Dir(file))] = field(file, "PPid:")
	}
	return all
}

// resident returns the memory of a process in MiB.
func resident(b *testing.B, pid string) float64 {
	b.Helper()
	kib, err := strconv.ParseFloat(strings.TrimSuffix(field("/proc/"+pid+"/status", "VmRSS:"), " kB"), 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}

// field returns the value of a field in a file of /proc, empty if the process has ended.
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, name); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

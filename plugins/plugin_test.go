package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/plugins"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// typesUID is how the tests write a UID.
type typesUID = types.UID

// syncBuilder is a builder of text for several goroutines.
type syncBuilder struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *syncBuilder) WriteString(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.WriteString(text)
}

func (b *syncBuilder) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// servePlugin is the main function of the test binary as a plugin.
func servePlugin(mode string) {
	switch mode {
	case "exits":
		os.Exit(3)
	case "raw":
		serveRaw()
		return
	case "never ends":
		serveRaw(grpc.UnknownServiceHandler(neverEnds))
		return
	case "never starts":
		fmt.Fprintln(os.Stderr, "it never starts")
		hang()
	case "another protocol":
		fmt.Println("1|2|unix|/tmp/x|grpc")
		hang()
	case "another address":
		fmt.Println("1|1|tcp|127.0.0.1:80|grpc")
		hang()
	case "a certificate":
		fmt.Println("1|1|unix|" + os.Getenv("PLUGIN_UNIX_SOCKET_DIR") + "/x|grpc|" + strings.Repeat("A", 1000))
		hang()
	case "a long line":
		for {
			fmt.Print(strings.Repeat("x", 1<<16))
		}
	}
	plugins.Serve(testPlugin(mode, &calls{}))
}

// hang waits for a signal that nobody sends.
func hang() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	<-signals
}

// calls counts calls.
type calls struct{ atomic.Int64 }

// testPlugin is a plugin that does what the spec of the owner asks for.
func testPlugin(mode string, called *calls) plugins.Plugin {
	versions := []string{"16", "15"}
	if strings.HasPrefix(mode, "version ") {
		versions = []string{strings.TrimPrefix(mode, "version ")}
	}
	if mode == "empty" {
		versions = []string{"99.9"}
	}
	return plugins.Plugin{Category: "Database", Types: []plugins.Type{
		{Name: "Postgres", Versions: versions, Dependents: func(
			ctx context.Context, r plugins.Request,
		) ([]*plugins.Dependent, error) {
			called.Add(1)
			if file, counts := strings.CutPrefix(mode, countsIn); counts {
				countIn(file)
			}
			return dependents(ctx, mode, r)
		}},
	}}
}

// countsIn begins the mode of a plugin that adds a byte to a file for each call.
const countsIn = "counts in "

func countIn(file string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(".")
	}
	if err != nil {
		panic(err) // the call fails with it
	}
	_ = f.Close()
}

// request has what the tests ask of the plugin.
type request struct {
	plugins.Request
	mode   string
	fields map[string]string
}

func dependents(_ context.Context, mode string, r plugins.Request) ([]*plugins.Dependent, error) {
	var spec struct{ Fields map[string]string }
	if err := r.Owner.Decode(&spec); err != nil || mode == "empty" {
		return nil, err
	}
	asked := request{Request: r, mode: mode, fields: spec.Fields}
	do, known := deeds[spec.Fields["do"]]
	if !known {
		return nil, plugins.Invalid("there is no deed " + spec.Fields["do"])
	}
	return do(asked)
}

// configMap is the object that the owner gets as a rule.
func (r request) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: r.Owner.Name + "-config"},
		Data:       map[string]string{"mode": r.mode, "value": r.fields["value"], "version": r.Version},
	}
}

// calledOften counts the calls of one process.
var calledOften atomic.Int64

// one returns one dependent.
func one(object client.Object) ([]*plugins.Dependent, error) {
	return []*plugins.Dependent{plugins.Owns("config", object)}, nil
}

// deeds are what an owner can ask for, by the field do of its spec.
var deeds = map[string]func(r request) ([]*plugins.Dependent, error){
	"":           func(r request) ([]*plugins.Dependent, error) { return one(r.configMap()) },
	"deployment": deployment,
	"nothing":    func(request) ([]*plugins.Dependent, error) { return nil, nil },
	"wait": func(request) ([]*plugins.Dependent, error) {
		return nil, espalier.NotReadyAfter(time.Hour, "NoDisk", "there is no disk")
	},
	"panic": func(request) ([]*plugins.Dependent, error) { panic("at the disco") },
	"die": func(request) ([]*plugins.Dependent, error) {
		go func() { panic("in another goroutine") }()
		time.Sleep(time.Hour)
		return nil, nil
	},
	"hang": func(request) ([]*plugins.Dependent, error) {
		time.Sleep(time.Hour)
		return nil, nil
	},
	"slow": func(r request) ([]*plugins.Dependent, error) {
		time.Sleep(500 * time.Millisecond)
		return one(r.configMap())
	},
	"exit": func(request) ([]*plugins.Dependent, error) {
		os.Exit(4)
		return nil, nil
	},
	"fail": func(request) ([]*plugins.Dependent, error) { return nil, errors.New("the disk is full") },
	"flood": func(r request) ([]*plugins.Dependent, error) {
		for range 64 {
			go func() {
				for {
					_, _ = fmt.Fprintln(os.Stdout, strings.Repeat("o", 1000))
					_, _ = fmt.Fprintln(os.Stderr, strings.Repeat("e", 1000))
				}
			}()
		}
		return one(r.configMap())
	},
	"other namespace": func(r request) ([]*plugins.Dependent, error) {
		object := r.configMap()
		object.Namespace = "other"
		return one(object)
	},
	"cluster role": func(r request) ([]*plugins.Dependent, error) {
		return one(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "admin-of-all"}})
	},
	"huge": func(r request) ([]*plugins.Dependent, error) {
		object := r.configMap()
		object.Data["value"] = strings.Repeat("x", 5<<20)
		return one(object)
	},
	"very many": func(r request) ([]*plugins.Dependent, error) {
		// It costs the plugin little to encode it.
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": r.Owner.Name + "-config"},
			"data": map[string]any{"value": strings.Repeat("x", 100)},
		}}
		many := make([]*plugins.Dependent, 0, 30_000)
		for i := range cap(many) {
			many = append(many, plugins.Owns(fmt.Sprint("config-", i), object))
		}
		return many, nil
	},
	"a thousand": func(r request) ([]*plugins.Dependent, error) {
		var many []*plugins.Dependent
		for i := range 1_000 {
			object := r.configMap()
			object.Name += fmt.Sprint(i)
			many = append(many, plugins.Owns(fmt.Sprint("config-", i), object))
		}
		return many, nil
	},
	"five": func(r request) ([]*plugins.Dependent, error) {
		var all []*plugins.Dependent
		for i, part := range fiveParts(r.Owner.Name, r.fields["value"]) {
			all = append(all, plugins.Owns(fmt.Sprint("part-", i), part))
		}
		return all, nil
	},
	"that of tool": func(r request) ([]*plugins.Dependent, error) {
		object := r.configMap()
		object.Name = "tool-config"
		return one(object)
	},
	"secret of others": func(request) ([]*plugins.Dependent, error) {
		object := &corev1.Secret{StringData: map[string]string{"x": "y"}}
		object.Name = "token"
		return one(object)
	},
	"read secret of others": func(request) ([]*plugins.Dependent, error) {
		return []*plugins.Dependent{
			plugins.Owns("token", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "token"}}).ReadOnly().
				Yields("token", "data", "token"),
		}, nil
	},
	"owner reference": func(r request) ([]*plugins.Dependent, error) {
		object := r.configMap()
		object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "x", UID: "y"}}
		return one(object)
	},
	"label": func(r request) ([]*plugins.Dependent, error) {
		object := r.configMap()
		object.Labels = map[string]string{"espalier.dev/item": "config"}
		return one(object)
	},
	"changes": func(r request) ([]*plugins.Dependent, error) {
		object := r.configMap()
		object.Data["count"] = fmt.Sprint(calledOften.Add(1))
		return []*plugins.Dependent{
			plugins.Owns("config", object).Yields("version", "metadata", "resourceVersion"),
		}, nil
	},
	"environment": func(r request) ([]*plugins.Dependent, error) {
		object := r.configMap()
		object.Data["environment"] = strings.Join(os.Environ(), "\n")
		return one(object)
	},
	"read a file": func(r request) ([]*plugins.Dependent, error) {
		text, err := os.ReadFile(r.fields["value"])
		if err != nil {
			return nil, err
		}
		object := r.configMap()
		object.Data["text"] = string(text)
		return one(object)
	},
	"pid": func(r request) ([]*plugins.Dependent, error) {
		object := r.configMap()
		object.Data["pid"] = fmt.Sprint(os.Getpid())
		return one(object)
	},
	"fork":      func(r request) ([]*plugins.Dependent, error) { return fork(r, false) },
	"fork away": func(r request) ([]*plugins.Dependent, error) { return fork(r, true) },
	"memory": func(r request) ([]*plugins.Dependent, error) {
		var held [][]byte
		for range 1 << 10 {
			block := make([]byte, 16<<20)
			for i := range block {
				block[i] = byte(i)
			}
			held = append(held, block)
		}
		object := r.configMap()
		object.Data["held"] = fmt.Sprint(len(held))
		return one(object)
	},
	"yield": func(r request) ([]*plugins.Dependent, error) {
		source := r.configMap()
		copied := r.configMap()
		copied.Name = r.Owner.Name + "-copy"
		second := plugins.Owns("copy", copied).Needs("value")
		value, known := r.Values["value"]
		if copied.Data["value"] = "copy of " + value; !known {
			second.Pending()
		}
		return []*plugins.Dependent{plugins.Owns("source", source).Yields("value", "data", "value"), second}, nil
	},
	"pod": func(r request) ([]*plugins.Dependent, error) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: r.Owner.Name + "-pod"}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "x"}}
		return []*plugins.Dependent{
			plugins.Owns("pod", pod).CreateOnly().
				ReadyWhenField("Running", "status", "phase").NotReadyReason("PodStarts"),
			plugins.Owns("config", r.configMap()).After("pod"),
		}, nil
	},
	"unowned": func(r request) ([]*plugins.Dependent, error) {
		return []*plugins.Dependent{plugins.Owns("config", r.configMap()).Unowned()}, nil
	},
	"read": func(r request) ([]*plugins.Dependent, error) {
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}
		return []*plugins.Dependent{
			plugins.Owns("settings", settings).ReadOnly().Yields("color", "data", "color"),
			plugins.Owns("config", r.configMap()).After("settings"),
		}, nil
	},
	"both": func(r request) ([]*plugins.Dependent, error) {
		object := r.configMap()
		object.Name = r.Owner.Name + "-second"
		return []*plugins.Dependent{plugins.Owns("config", r.configMap()), plugins.Owns("second", object)}, nil
	},
}

// fiveParts are five objects of some size for an owner.
func fiveParts(owner, value string) []*corev1.ConfigMap {
	parts := make([]*corev1.ConfigMap, 5)
	for i := range parts {
		parts[i] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint(owner, "-part-", i), Labels: map[string]string{"app.kubernetes.io/instance": owner},
		}, Data: map[string]string{"value": value, "part": fmt.Sprint(i)}}
		for j := range 5 {
			parts[i].Data[fmt.Sprint("setting-", j)] = strings.Repeat("x", 40)
		}
	}
	return parts
}

// fork starts another process, and tells its ID. The process has left the group of this one by then if it goes away.
func fork(r request, away bool) ([]*plugins.Dependent, error) {
	path, err := exec.LookPath("/usr/bin/sleep")
	if err != nil {
		return nil, err
	}
	command := exec.Command(path, "3600")
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: away}
	command.Env = []string{"PATH=/usr/bin:/bin"}
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Start(); err != nil {
		return nil, err
	}
	object := r.configMap()
	object.Data["pid"] = fmt.Sprint(command.Process.Pid)
	return one(object)
}

package plugins_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestCapability(t *testing.T) {
	called := &calls{}
	w := worldOf(t, &plugins.Host{InProcess: []plugins.Plugin{testPlugin("local", called)}})
	w.ask("gadget", "value=x")
	w.until("gadget", "Ready")
	object := &corev1.ConfigMap{}
	has := w.has(object, "gadget-config")
	if !has || object.Data["value"] != "x" || !metav1.IsControlledBy(object, w.widget("gadget")) {
		t.Errorf("the object is %+v, want one with the value that is controlled by the resource", object)
	}
	before := called.Load()
	for range 3 {
		if result, err := w.once("gadget"); err != nil || result.RequeueAfter != 0 {
			t.Errorf("a resource at rest has the result %v and the error %v, want none", result, err)
		}
	}
	if now := called.Load(); now != before {
		t.Errorf("a resource at rest has asked the plugin %d times, want none", now-before)
	}
	w.ask("gadget", "value=y")
	w.until("gadget", "Ready")
	if w.has(object, "gadget-config"); object.Data["value"] != "y" {
		t.Errorf("the object has %v, want the new value", object.Data)
	}
	w.ask("gadget", "type=none")
	w.until("gadget", "NotDesired")
	if w.has(object, "gadget-config") {
		t.Error("the object is there while nothing is asked for, want it deleted")
	}
}

func TestProgram(t *testing.T) {
	_, host := withPlugin(t, "program")
	w := worldOf(t, host)
	w.ask("gadget", "value=x")
	w.until("gadget", "Ready")
	object := &corev1.ConfigMap{}
	if !w.has(object, "gadget-config") || object.Data["mode"] != "program" {
		t.Errorf("the object is %+v, want that of the program", object)
	}
}

// A value that an object yields has the plugin asked again, and the object that needs it is left alone until then.
func TestYields(t *testing.T) {
	called := &calls{}
	host := &plugins.Host{InProcess: []plugins.Plugin{testPlugin("local", called)}}
	w := worldOf(t, host)
	w.ask("gadget", "do=yield", "value=x")
	w.until("gadget", "Ready")
	object := &corev1.ConfigMap{}
	if !w.has(object, "gadget-copy") || object.Data["value"] != "copy of x" {
		t.Errorf("the object has %v, want the value of the other one", object.Data)
	}
	// A new process of the operator does not know the value, and leaves the object alone until it does.
	version := object.ResourceVersion
	w.root = w.newRoot(capability(host))
	before := called.Load()
	w.until("gadget", "Ready")
	if w.has(object, "gadget-copy"); object.ResourceVersion != version {
		t.Error("the object was written after a restart, want it left alone")
	}
	if asked := called.Load() - before; asked != 2 {
		t.Errorf("the plugin was asked %d times after a restart, want twice: without the value and with it", asked)
	}
	w.ask("gadget", "do=yield", "value=y")
	w.until("gadget", "Ready")
	if w.has(object, "gadget-copy"); object.Data["value"] != "copy of y" {
		t.Errorf("the object has %v, want the new value of the other one", object.Data)
	}
}

// A dependent waits for those that it is after, by the rule of health of the plugin.
func TestAfter(t *testing.T) {
	w := worldOf(t, &plugins.Host{InProcess: []plugins.Plugin{testPlugin("local", &calls{})}})
	w.ask("gadget", "do=pod")
	found := w.until("gadget", "PodStarts")
	want := `pod:Pod: Pod default/gadget-pod: status.phase is "Pending", and not "Running" (2 of 2 items are not ready)`
	if found.Message != want {
		t.Errorf("the condition says %q, want %q", found.Message, want)
	}
	if w.has(&corev1.ConfigMap{}, "gadget-config") {
		t.Error("the object is there before the one that it is after is ready, want it to wait")
	}
	pod := &corev1.Pod{}
	w.has(pod, "gadget-pod")
	pod.Status.Phase = corev1.PodRunning
	if err := w.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.until("gadget", "Ready")
	if !w.has(&corev1.ConfigMap{}, "gadget-config") {
		t.Error("the object is not there after the one that it is after is ready, want it")
	}
}

// An object of somebody else is read, and waited for.
func TestReadOnly(t *testing.T) {
	w := worldOf(t, &plugins.Host{InProcess: []plugins.Plugin{testPlugin("local", &calls{})}})
	w.ask("gadget", "do=read")
	w.until("gadget", "NotFound")
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	if err := w.Create(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	w.until("gadget", "Ready")
	w.ask("gadget", "do=nothing")
	w.until("gadget", "Ready")
	if !w.has(settings, "settings") || len(settings.Labels) > 0 || w.has(&corev1.ConfigMap{}, "gadget-config") {
		t.Errorf("the object of somebody else is %+v, want it as it was, and that of the plugin gone", settings)
	}
}

// What a plugin gives no more is deleted. So is all of it with the resource, also without a plugin.
func TestDependentsGo(t *testing.T) {
	f, host := withPlugin(t, "program")
	w := worldOf(t, host)
	w.ask("gadget", "do=both")
	w.until("gadget", "Ready")
	object := &corev1.ConfigMap{}
	if !w.has(object, "gadget-second") {
		t.Fatal("the second object is not there, want it")
	}
	w.ask("gadget", "do=")
	w.until("gadget", "Ready")
	if w.has(object, "gadget-second") {
		t.Error("the second object is there, want it deleted")
	}
	f.write(nil)
	w.until("gadget", plugins.ReasonNoPlugin)
	w.root = w.newRoot(capability(host))
	w.ask("gadget", "type=none")
	w.until("gadget", "NotDesired")
	if w.has(object, "gadget-config") {
		t.Error("the object is there although nothing is asked for, want it deleted without a plugin")
	}
}

// An object without an owner is one of the resource all the same, and changes to one with an owner are made by a new
// one.
func TestUnowned(t *testing.T) {
	w := worldOf(t, &plugins.Host{InProcess: []plugins.Plugin{testPlugin("local", &calls{})}})
	w.ask("gadget", "do=unowned", "value=x")
	w.until("gadget", "Ready")
	object := &corev1.ConfigMap{}
	if !w.has(object, "gadget-config") || len(object.OwnerReferences) > 0 {
		t.Errorf("the object is %+v, want one without an owner", object)
	}
	w.ask("gadget", "do=unowned", "value=y")
	w.until("gadget", "Ready")
	if w.has(object, "gadget-config"); object.Data["value"] != "y" {
		t.Errorf("the object has %v, want the new value", object.Data)
	}
	w.ask("gadget", "do=nothing")
	w.until("gadget", "Ready")
	if w.has(object, "gadget-config") {
		t.Error("the object is there, want it deleted: the plugin does not give it any more")
	}
}

func TestCapabilitiesThatAreNotValid(t *testing.T) {
	host := &plugins.Host{}
	node := func(category, typ string) *plugins.Node[*resources.Widget] {
		return plugins.Capability[*resources.Widget](host, category, typ)
	}
	noKind := &unstructured.Unstructured{}
	for want, node := range map[string]*plugins.Node[*resources.Widget]{
		"must have a Host":                   plugins.Capability[*resources.Widget](nil, "a", "b"),
		"must have a category":               node("", "b"),
		"must have a type, or a function":    node("a", ""),
		"must report a condition":            node("a", "b"),
		"must say which kinds":               node("a", "b").Reports("X"),
		"must have the apiVersion and":       node("a", "b").Reports("X").Creates(noKind),
		"must not have nil as the object of": node("a", "b").Reports("X").Creates(nil),
	} {
		if err := node.Validate(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the node is valid or not: %v, want the error %s", err, want)
		}
	}
}

// The printed tree and the rules show what plugins may do.
func TestDescription(t *testing.T) {
	tree := reconcilers.Describe(espalier.For(reconcilers.Config{}, capability(&plugins.Host{})))
	want := `ResourceReconciler "Widget" Widget
└─ Sequence
   └─ Capability "database-postgres" database/postgres
`
	if got := tree.String(); !strings.HasPrefix(got, want) {
		t.Errorf("the tree is\n%s\nwant it to begin with\n%s", got, want)
	}
}

// What the objects of one type have yielded is not sent to the plugin of another type.
func TestValuesAreForOneType(t *testing.T) {
	var got []map[string]string
	answers := func(_ context.Context, r plugins.Request) ([]*plugins.Dependent, error) {
		got = append(got, r.Values)
		object := &corev1.ConfigMap{Data: map[string]string{"key": "secret of " + r.Type}}
		object.Name = r.Owner.Name + "-" + r.Type
		return []*plugins.Dependent{plugins.Owns("config", object).Yields("value", "data", "key")}, nil
	}
	w := worldOf(t, &plugins.Host{InProcess: []plugins.Plugin{{Category: "database", Types: []plugins.Type{
		{Name: "postgres", Dependents: answers}, {Name: "mysql", Dependents: answers},
	}}}})
	w.until("gadget", "Ready")
	w.ask("gadget", "type=mysql")
	w.until("gadget", "Ready")
	want := []map[string]string{nil, {"value": "secret of postgres"}, nil, {"value": "secret of mysql"}}
	if !cmp.Equal(got, want) {
		t.Errorf("the plugin has got the values %v, want %v", got, want)
	}
}

// A host that is not added to the manager is what the condition of a new resource says.
func TestHostThatIsNotStarted(t *testing.T) {
	host := &plugins.Host{}
	w := worldOf(t, &plugins.Host{})
	w.root = w.newRoot(capability(host))
	found := w.until("gadget", plugins.ReasonAsking)
	if want := "the Host has to be added to the manager"; !strings.Contains(found.Message, want) {
		t.Errorf("the condition says %q, want %q", found.Message, want)
	}
}

// Many owners for which a plugin hangs hold up the worker for few of them only. The time is virtual.
func TestManyThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := worldOf(t, &plugins.Host{
			InProcess: []plugins.Plugin{testPlugin("local", &calls{})}, Limits: plugins.Limits{Calls: 4},
		}, widget("tool"))
		w.ask("tool", "value=x")
		w.until("tool", "Ready")
		names := make([]string, 50)
		for i := range names {
			names[i] = fmt.Sprint("many-", i)
			if err := w.Create(t.Context(), widget(names[i])); err != nil {
				t.Fatal(err)
			}
			w.ask(names[i], "do=hang")
		}
		start := time.Now()
		for _, name := range names {
			if _, err := w.once(name); err != nil {
				t.Fatal(err)
			}
		}
		if took, want := time.Since(start), 4*200*time.Millisecond; took != want {
			t.Errorf("%d requests took %s, want %s: only four of them wait", len(names), took, want)
		}
		if found := w.until("many-49", plugins.ReasonAsking); found.Status != metav1.ConditionUnknown {
			t.Errorf("the condition is %s, want Unknown", found.Status)
		}
		// The plugin answers in the end, and nobody has to wake the resources.
		time.Sleep(2 * time.Hour)
		w.until("many-49", "Ready")
	})
}

// A test of a tree needs no host that runs, if all plugins are in the process.
func TestHostThatDoesNotRun(t *testing.T) {
	for name, test := range map[string]struct {
		host *plugins.Host
		asks string
		want metav1.Condition
	}{
		"in the process": {
			&plugins.Host{InProcess: []plugins.Plugin{testPlugin("local", &calls{})}}, "",
			metav1.Condition{Reason: "Ready"},
		},
		"another type": {
			&plugins.Host{InProcess: []plugins.Plugin{testPlugin("local", &calls{})}}, "type=mysql",
			metav1.Condition{Reason: "NoPlugin", Message: "no plugin provides database/mysql"},
		},
		"another version": {
			&plugins.Host{InProcess: []plugins.Plugin{testPlugin("local", &calls{})}}, "version=17",
			metav1.Condition{
				Reason: "NoPlugin", Message: "no plugin provides database/postgres 17: there are the versions 16, 15",
			},
		},
		"a sidecar": {
			&plugins.Host{Sidecars: map[string]string{"/run/x": bound}}, "",
			metav1.Condition{
				Reason: "Asking", Message: "the plugins are not started yet: the Host has to be added to the manager",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.host)
			w.ask("gadget", test.asks)
			found := w.until("gadget", test.want.Reason)
			if found.Message != test.want.Message {
				t.Errorf("the condition says %q, want %q", found.Message, test.want.Message)
			}
		})
	}
}

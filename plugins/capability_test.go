package plugins_test

import (
	"testing"

	"github.com/espalier-dev/espalier/plugins"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCapability(t *testing.T) {
	called := &calls{}
	w := worldOf(t, &plugins.Host{InProcess: []plugins.Plugin{testPlugin("local", called)}})
	w.ask("gadget", "value=x")
	w.until("gadget", "Ready")
	object := &corev1.ConfigMap{}
	if !w.has(object, "gadget-config") || object.Data["value"] != "x" || !metav1.IsControlledBy(object, w.widget("gadget")) {
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

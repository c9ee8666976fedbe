package helm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator/helm"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

// hookJob returns a Job that completes at once, or fails after a second.
func hookJob(name, annotations string) string {
	return `
apiVersion: batch/v1
kind: Job
metadata:
  name: ` + name + `
  annotations: {` + annotations + `}
spec:
  {{- if eq .Values.fails "` + name + `" }}
  activeDeadlineSeconds: 1
  {{- else }}
  completions: 0
  {{- end }}
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: example.com/tool}]
---`
}

func hooksChart() files {
	return files{
		"values.yaml": "fails: none\nvalue: first\n",
		"templates/jobs.yaml": hookJob("purged", `helm.sh/hook: pre-install, helm.sh/hook-delete-policy: hook-succeeded`) +
			hookJob("before", `helm.sh/hook: pre-install`) +
			hookJob("after", `helm.sh/hook: "post-install,post-upgrade"`) +
			hookJob("upgrade", `helm.sh/hook: pre-upgrade`),
		"templates/map.yaml": configMap("plain", "  value: {{ .Values.value }}\n"),
	}
}

// uidOf returns the UID of an object, or nothing if it does not exist.
func (w *takeOverWorld) uidOf(what string) types.UID {
	w.Helper()
	object, err := w.read(w.Context(), what)
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	return object.GetUID()
}

// says waits until the condition of the component contains a text.
func (w *takeOverWorld) says(text string) {
	w.Helper()
	controlplanetest.Eventually(w, "the condition does not say "+text, func(ctx context.Context) error {
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(w.assembly), w.assembly); err != nil {
			return err
		}
		said := fmt.Sprint(w.assembly.Status.Conditions)
		if w.assembly.Status.ObservedGeneration != w.assembly.Generation || !strings.Contains(said, text) {
			return errors.New(said)
		}
		return nil
	})
}

// TestHooksOnAPIServer: hooks of the installation run once, and those of upgrades in each revision. A hook is removed
// after its success if it asks for that.
func TestHooksOnAPIServer(t *testing.T) {
	t.Parallel()
	w := startChart(t, plane.Namespace(t), hooksChart().folder(), helm.Options{})
	w.deploy("")
	w.ready()
	if uid := w.uidOf("batch/v1 Job purged"); uid != "" {
		t.Errorf("the hook that succeeded is there with the UID %s, want it gone", uid)
	}
	if uid := w.uidOf("batch/v1 Job upgrade"); uid != "" {
		t.Errorf("the hook of an upgrade runs in an installation with the UID %s, want none", uid)
	}
	before, after := w.uidOf("batch/v1 Job before"), w.uidOf("batch/v1 Job after")
	if before == "" || after == "" {
		t.Fatalf("the UIDs of the hooks are %q and %q, want both there", before, after)
	}
	last := types.UID("")
	for _, value := range []string{"second", "third"} {
		w.change("value: " + value)
		w.ready()
		if w.uidOf("batch/v1 Job before") != before || w.uidOf("batch/v1 Job purged") != "" {
			t.Errorf("%s: a hook of the installation has run again, want those of before", value)
		}
		uid := w.uidOf("batch/v1 Job upgrade")
		if uid == "" || uid == last {
			t.Errorf("%s: the UID of the hook of upgrades is %q, want another than %q", value, uid, last)
		}
		last = uid
		if again := w.uidOf("batch/v1 Job after"); again == after {
			t.Errorf("%s: the last hook has the UID %s, want another", value, again)
		} else {
			after = again
		}
	}
}

// TestHookThatFails: a hook that fails stops the roll-out. One of an installation does not run again; without it, the
// component goes on. One of an upgrade runs again in the next revision.
func TestHookThatFails(t *testing.T) {
	t.Parallel()
	w := startChart(t, plane.Namespace(t), hooksChart().folder(), helm.Options{})
	w.deploy("fails: before")
	w.says("Job " + w.namespace + "/before")
	if uid := w.uidOf("v1 ConfigMap plain"); uid != "" {
		t.Errorf("the roll-out made the ConfigMap %s, want none after the failed hook", uid)
	}
	failed, err := w.read(t.Context(), "batch/v1 Job before")
	if err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(w, "the hook does not fail", func(ctx context.Context) error {
		if failed, err = w.read(ctx, "batch/v1 Job before"); err != nil {
			return err
		}
		if text := fmt.Sprint(failed.Object["status"]); !strings.Contains(text, "DeadlineExceeded") {
			return errors.New(text)
		}
		return nil
	})
	w.change("fails: none")
	w.says("Job " + w.namespace + "/before")
	if err := w.client.Delete(t.Context(), failed, client.PropagationPolicy("Background")); err != nil {
		t.Fatal(err)
	}
	w.ready()
	if uid := w.uidOf("batch/v1 Job before"); uid != "" {
		t.Errorf("the hook of the installation runs again with the UID %s, want none", uid)
	}
	w.change("fails: upgrade")
	w.says("Job " + w.namespace + "/upgrade")
	w.change("fails: nothing")
	w.ready()
}

// TestChartUpgrade: a new operator with another chart is an upgrade of the components that are there, with the hooks of
// upgrades, once. The same chart in a new operator is none.
func TestChartUpgrade(t *testing.T) {
	t.Parallel()
	namespace := plane.Namespace(t)
	facts := func(version string) string {
		return "  facts: 'install:{{ .Release.IsInstall }} revision:{{ .Release.Revision }} version:" + version + "'\n"
	}
	first := hooksChart().and(files{"templates/map.yaml": configMap("plain", facts("1.0.0"))})
	second := hooksChart().and(files{"templates/map.yaml": configMap("plain", facts("2.0.0"))})
	w := startChart(t, namespace, first.folder(), helm.Options{})
	w.deploy("")
	w.ready()
	both := w.uidOf("batch/v1 Job after")
	upgrade, last := types.UID(""), both
	for _, step := range []struct {
		chart files
		want  string
	}{
		{first, "install:true revision:1 version:1.0.0"},
		{second, "install:false revision:2 version:2.0.0"},
		{second, "install:false revision:2 version:2.0.0"},
		{first, "install:false revision:3 version:1.0.0"},
	} {
		w.stop()
		assembly := w.assembly
		w = startChart(t, namespace, step.chart.folder(), helm.Options{})
		w.assembly = assembly
		controlplanetest.Eventually(w, "the facts of the release differ", func(ctx context.Context) error {
			object, err := w.read(ctx, "v1 ConfigMap plain")
			if err != nil {
				return err
			}
			if got := fmt.Sprint(object.Object["data"]); got != "map[facts:"+step.want+"]" || w.made.rendered.Load() == 0 {
				return fmt.Errorf("got %s, want %s", got, step.want)
			}
			return nil
		})
		w.ready()
		again := strings.Contains(step.want, "install:false") && (upgrade == "" || step.chart["templates/map.yaml"] == first["templates/map.yaml"])
		if uid := w.uidOf("batch/v1 Job upgrade"); (uid != upgrade) != again {
			t.Errorf("%s: the UID of the hook of upgrades was %q and is %q, want another: %t", step.want, upgrade, uid, again)
		} else {
			upgrade = uid
		}
		if uid := w.uidOf("batch/v1 Job after"); (uid != last) != again {
			t.Errorf("%s: the UID of the hook of both was %q and is %q, want another: %t", step.want, last, uid, again)
		} else {
			last = uid
		}
	}
}

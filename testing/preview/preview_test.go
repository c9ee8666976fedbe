package preview_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/edit"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/testing/preview"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var errOops = errors.New("oops")

// noted is a test that notes how it fails.
type noted struct {
	testing.TB
	failures, logs []string
}

func (n *noted) Helper() {}
func (n *noted) Errorf(format string, args ...any) {
	n.failures = append(n.failures, fmt.Sprintf(format, args...))
}
func (n *noted) Logf(format string, args ...any) {
	n.logs = append(n.logs, fmt.Sprintf(format, args...))
}

func (n *noted) mustHave(t *testing.T, wanted ...string) {
	t.Helper()
	if len(n.failures) != len(wanted) {
		t.Fatalf("there are %d failures, not %d:\n%s", len(n.failures), len(wanted), strings.Join(n.failures, "\n"))
	}
	for i, want := range wanted {
		if !strings.Contains(n.failures[i], want) {
			t.Errorf("the failure is\n%s\nwithout\n%s", n.failures[i], want)
		}
	}
}

type config = preview.Config[string]

// run returns how a test with this config fails.
func run(c config) *noted {
	n := &noted{}
	preview.Golden(n, c)
	return n
}

func configMap(value string) ([]client.Object, error) {
	return []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Data: map[string]string{"a": value},
	}}, nil
}

// TestGolden is not parallel: it sets the flag.
func TestGolden(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "preview")
	cases := map[string]string{"one": "1", "more/two": "2"}
	c := config{Dir: dir, Render: configMap, Cases: cases}
	run(c).mustHave(t, "case more/two: there is no golden file "+dir, "case one: there is no golden file "+dir)

	update := func(c config) *noted {
		defer preview.SetUpdate(true)()
		return run(c)
	}
	update(c).mustHave(t)
	run(c).mustHave(t)
	if n := update(c); len(n.logs) > 0 {
		t.Errorf("what is the same is written again: %v", n.logs)
	}
	data, err := os.ReadFile(filepath.Join(dir, "more", "two.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := `# Written by a test with the flag -preview.update.
apiVersion: v1
data:
  a: "2"
kind: ConfigMap
metadata:
  name: web
  namespace: shop
`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("the file differs (-wanted +got):\n%s", diff)
	}

	c.Cases = map[string]string{"one": "3"}
	foreign := filepath.Join(dir, "foreign.yaml")
	if err := os.WriteFile(foreign, []byte("a: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(c).mustHave(t,
		"case one: the objects are not as in "+filepath.Join(dir, "one.yaml")+": the flag -preview.update writes it "+
			"anew (-file +objects):\n@@ -1,6 +1,6 @@\n apiVersion: v1\n data:\n-  a: \"1\"\n+  a: \"3\"\n",
		"the golden file "+filepath.Join(dir, "more", "two.yaml")+" has no case")
	update(c).mustHave(t)
	run(c).mustHave(t)
	c.Cases["foreign"] = "4"
	run(c).mustHave(t, "foreign.yaml is no golden file")
	update(c).mustHave(t, "foreign.yaml is no golden file")
	if data, err := os.ReadFile(foreign); err != nil || string(data) != "a: b\n" {
		t.Errorf("a file of somebody else is now %q: %v", data, err)
	}
}

func TestGoldenFails(t *testing.T) {
	t.Parallel()
	calls := 0
	valid := map[string]string{"one": "1"}
	for want, c := range map[string]config{
		"Dir is required":    {Render: configMap, Cases: valid},
		"Render is required": {Dir: "testdata", Cases: valid},
		"Cases are required": {Dir: "testdata", Render: configMap},
		`the name of the case "../a" cannot be that of a file`: {
			Dir: "testdata", Render: configMap, Cases: map[string]string{"../a": ""},
		},
		`the name of the case "" cannot be that of a file`: {
			Dir: "testdata", Render: configMap, Cases: map[string]string{"": ""},
		},
		"case one: render: oops": {
			Dir: "testdata/none", Cases: valid, Render: func(string) ([]client.Object, error) { return nil, errOops },
		},
		"case one: object 0, nil: there is no object": {
			Dir: "testdata/none", Cases: valid, Render: func(string) ([]client.Object, error) {
				return []client.Object{(*corev1.Pod)(nil)}, nil
			},
		},
		"case one: object 0, Unstructured: ": {
			Dir: "testdata/none", Cases: valid, Render: func(string) ([]client.Object, error) {
				return []client.Object{&unstructured.Unstructured{}}, nil
			},
		},
		"case one: object 0, ConfigMap shop/web: no kind is registered": {
			Dir: "testdata/none", Cases: valid, Render: configMap, Scheme: runtime.NewScheme(),
		},
		"case one: another call of Render returns something else": {
			Dir: "testdata/none", Cases: valid, Render: func(string) ([]client.Object, error) {
				calls++
				return configMap(fmt.Sprint(calls))
			},
		},
	} {
		run(c).mustHave(t, want)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	pods := 0
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s"},
		Data:       map[string][]byte{"password": []byte("hunter2"), "empty": nil},
		StringData: map[string]string{"token": "hunter3"},
	}
	untyped := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"creationTimestamp": nil},
		"data": map[string]any{"password": "aHVudGVyMg=="}, "stringData": "hunter4",
	}}
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "spec": map[string]any{"count": pods, "zero": nil,
			"list": []any{untyped.Object}},
		"status": map[string]any{"ready": true},
	}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	got, err := preview.Text([]client.Object{secret, untyped, widget, deployment}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: v1
data:
  empty: (not shown)
  password: (not shown)
kind: Secret
metadata:
  name: s
stringData:
  token: (not shown)
---
apiVersion: v1
data:
  password: (not shown)
kind: Secret
metadata: {}
stringData: (not shown)
---
apiVersion: example.com/v1
kind: Widget
spec:
  count: 0
  list:
  - apiVersion: v1
    data:
      password: (not shown)
    kind: Secret
    metadata: {}
    stringData: (not shown)
  zero: null
status:
  ready: true
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector: null
  strategy: {}
  template:
    metadata: {}
    spec:
      containers: null
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the text differs (-wanted +got):\n%s", diff)
	}
	if string(secret.Data["password"]) != "hunter2" || deployment.Kind != "" {
		t.Error("the objects were changed")
	}
	if got, err := preview.Text(nil, nil); err != nil || got != "# No objects.\n" {
		t.Errorf("no objects are %q: %v", got, err)
	}
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	add := func(text string) func(*string) { return func(v *string) { *v += text } }
	got := preview.Matrix("base",
		preview.Axis[string]{"v1": add(" 1"), "v2": add(" 2")}, preview.Axis[string]{"on": add(" on"), "off": nil})
	want := map[string]string{"v1/on": "base 1 on", "v1/off": "base 1", "v2/on": "base 2 on", "v2/off": "base 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the cases differ (-wanted +got):\n%s", diff)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	change := func(*corev1.ConfigMap) error { return nil }
	for name, tc := range map[string]struct {
		cases map[string]string
		want  []string
	}{
		"all are made": {map[string]string{"a": "1.0.0", "b": "2.0.0"}, nil},
		"one is not": {map[string]string{"a": "2.0.0", "b": "2.1.0"},
			[]string{`the change "old" is made in no case`}},
		"not known": {
			map[string]string{"a": "1.0.0", "b": "latest"},
			[]string{`case b: gate of change "old": version "latest" is invalid`,
				`the change "new" is made in no case`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &noted{}
			preview.Changes(n, tc.cases, func(version string) []edit.Change[*corev1.ConfigMap] {
				return []edit.Change[*corev1.ConfigMap]{
					{Name: "old", Gate: gate.Version(version, "< 2"), Edit: change},
					{Name: "always", Edit: change},
					{Name: "new", Gate: gate.Version(version, ">= 2"), Edit: change},
				}
			})
			n.mustHave(t, tc.want...)
		})
	}
}

func TestGenerated(t *testing.T) {
	t.Parallel()
	render := preview.Generated[generator.UnstructurableMap](t.Context(), generator.GeneratorFunc(func(
		_ context.Context, namespace, name string, parameters generator.Unstructurable,
	) ([]client.Object, error) {
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name + fmt.Sprint(parameters.ToUnstructured()["suffix"]),
		}}}, nil
	}), "shop", "web")
	objects, err := render(generator.UnstructurableMap{"suffix": "-a"})
	if err != nil || len(objects) != 1 || objects[0].GetName() != "web-a" {
		t.Errorf("the objects are %v: %v", objects, err)
	}
}

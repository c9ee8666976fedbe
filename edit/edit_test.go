package edit_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/edit"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// parts are what the edits change.
type parts struct {
	Pods   *corev1.PodTemplateSpec
	Config *corev1.ConfigMap
}

func newParts() *parts {
	p := &parts{
		Pods: &corev1.PodTemplateSpec{},
		Config: &corev1.ConfigMap{
			Data:       map[string]string{"k1": "a: 1\nb: {c: 2}\n", "k2": "# kept\nx: y"},
			BinaryData: map[string][]byte{"k0": {1}},
		},
	}
	p.Pods.Spec.Containers = []corev1.Container{
		{Name: "n0", Env: []corev1.EnvVar{{Name: "n0"}, {Name: "n1"}, {Name: "n2"}}}, {Name: "n1"}, {Name: "n2"},
	}
	p.Pods.Spec.InitContainers = slices.Clone(p.Pods.Spec.Containers)
	return p
}

func (p *parts) deepCopy() *parts {
	return &parts{Pods: p.Pods.DeepCopy(), Config: p.Config.DeepCopy()}
}

// shallow returns parts that share all maps and lists with p.
func (p *parts) shallow() *parts {
	pods, config := *p.Pods, *p.Config
	return &parts{&pods, &config}
}

// variables returns a function that gives a container the variable n.
func variables(n, v string) func(*corev1.Container) error {
	return func(c *corev1.Container) error {
		return edit.EnsureEnv(c, corev1.EnvVar{Name: n, Value: v}, corev1.EnvVar{Name: "last"})
	}
}

// edits are all edits; n and v choose a key and a value.
var edits = []func(p *parts, n, v string) error{
	func(p *parts, n, v string) error { return edit.Container(p.Pods, n, variables("n1", v)) },
	func(p *parts, n, v string) error {
		return edit.InitContainer(p.Pods, n, func(c *corev1.Container) error { c.Image = v; return nil })
	},
	func(p *parts, n, v string) error { return edit.EachContainer(p.Pods, variables(n, v)) },
	func(p *parts, n, v string) error { return edit.EachInitContainer(p.Pods, variables(n, v)) },
	func(p *parts, n, v string) error {
		return edit.MergeYAML(p.Config, "k"+n[1:], "a: "+v+"\nb: {c: null, d: 1}")
	},
}

// FuzzEdits applies edits: each of them twice does what it does once, changes nothing that is shared, has no key twice,
// and keeps the order of what it does not touch.
func FuzzEdits(f *testing.F) {
	for i := range edits {
		f.Add([]byte{byte(i), 0, 0, byte(i), 1, 1, byte(i), 3, 2})
	}
	f.Add([]byte{2, 4, 0, 0, 4, 0, 2, 4, 1, 4, 0, 1, 4, 2, 2})
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		program := make([]byte, 30)
		for i := range program {
			program[i] = byte(random.Uint32())
		}
		f.Add(program)
	}
	names, values := []string{"n0", "n1", "n2", "n3", "n4"}, []string{"delete", "get", "x"}
	f.Fuzz(func(t *testing.T, program []byte) {
		p := newParts()
		for len(program) >= 3 {
			change := edits[int(program[0])%len(edits)]
			n, v := names[int(program[1])%len(names)], values[int(program[2])%len(values)]
			program = program[3:]
			before, shared := p.deepCopy(), p.shallow()
			err := change(p, n, v)
			if diff := difference(before, shared); diff != "" {
				t.Fatalf("an edit changes what another object shares (-before +after), want it unchanged:\n%s", diff)
			}
			once := p.deepCopy()
			if err != nil {
				once = before
			}
			if again := change(p, n, v); (again == nil) != (err == nil) {
				t.Fatalf("the first error is %v and the second %v, want both or none", err, again)
			}
			if diff := difference(once, p); diff != "" {
				t.Fatalf("an edit does more when it is called twice, or fails halfway, want the same (-once +twice):\n%s",
					diff)
			}
			p.check(t)
		}
	})
}

// difference is fast if there is none.
func difference(before, after *parts) string {
	if reflect.DeepEqual(before, after) {
		return ""
	}
	return cmp.Diff(before, after)
}

// check looks for duplicates.
func (p *parts) check(t *testing.T) {
	t.Helper()
	lists := map[string][]string{}
	add := func(list, key string) { lists[list] = append(lists[list], key) }
	for _, c := range p.Pods.Spec.Containers {
		add("containers", c.Name)
		for _, e := range c.Env {
			add("env of "+c.Name, e.Name)
		}
	}
	for _, c := range p.Pods.Spec.InitContainers {
		add("init containers", c.Name)
	}
	for key := range p.Config.Data {
		add("data", key)
	}
	for key := range p.Config.BinaryData {
		add("data", key)
	}
	for name, keys := range lists {
		slices.Sort(keys)
		if len(slices.Compact(slices.Clone(keys))) != len(keys) {
			t.Fatalf("%s has duplicates: %v, want each once", name, keys)
		}
	}
}

func TestEnsureEnvKeepsTheOrder(t *testing.T) {
	t.Parallel()
	container := corev1.Container{Env: []corev1.EnvVar{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "b"}}}
	for _, name := range []string{"b", "d", "a"} {
		if err := edit.EnsureEnv(&container, corev1.EnvVar{Name: name, Value: "new"}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, e := range container.Env {
		got = append(got, e.Name+e.Value)
	}
	if want := []string{"anew", "bnew", "c", "dnew"}; !slices.Equal(got, want) {
		t.Errorf("the variables are %v, not %v", got, want)
	}
}

func TestMergeYAML(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ has, document, want, err string }{
		"empty":          {"", "a: 1", "a: 1\n", ""},
		"empty by empty": {"", "", "{}\n", ""},
		"same":           {"# comment\nb: 1\na: 2", "a: 2", "# comment\nb: 1\na: 2", ""},
		"deep": {"a: {b: {c: 1, d: [1, 2]}}", "a: {b: {d: [3]}}",
			"a:\n  b:\n    c: 1\n    d:\n    - 3\n", ""},
		"null":           {"a: {b: 1}", "a: null\nc: null", "{}\n", ""},
		"null is left":   {"a: null", "b: 1", "a: null\nb: 1\n", ""},
		"map for scalar": {"a: 1", "a: {b: null, c: 1}", "a:\n  c: 1\n", ""},
		"numbers":        {"big: 9007199254740993", "small: 0.1", "big: 9007199254740993\nsmall: 0.1\n", ""},
		"JSON":           {`{"a":1}`, "b: x", "a: 1\nb: x\n", ""},
		"list":           {"- a", "b: 1", "", `the value of the key "k": it is no map in YAML`},
		"no YAML":        {"a: 1", "{", "", `the document to merge into the key "k": it is no map in YAML`},
		"duplicate keys": {"a: 1", "b: 1\nb: 2", "", "it is no map in YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := &corev1.ConfigMap{Data: map[string]string{"k": tc.has}}
			err := edit.MergeYAML(config, "k", tc.document)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || config.Data["k"] != tc.has {
					t.Errorf("the error is %v and the value %q, want %s and %q", err, config.Data["k"], tc.err, tc.has)
				}
				return
			}
			if err != nil || config.Data["k"] != tc.want {
				t.Errorf("the value is %q, not %q: %v", config.Data["k"], tc.want, err)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	pods, container := &corev1.PodTemplateSpec{}, &corev1.Container{}
	pods.Spec.Containers = []corev1.Container{{Name: "a"}}
	fails := func(*corev1.Container) error { return errOops }
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"Container":              {edit.Container(nil, "a", fails), "the pod template is nil"},
		"Container missing":      {edit.Container(pods, "b", fails), `there is no container "b"`},
		"Container nil function": {edit.Container(pods, "a", nil), errNoFunctionText},
		"Container fails":        {edit.Container(pods, "a", fails), `container "a": oops`},
		"InitContainer":          {edit.InitContainer(nil, "a", fails), "the pod template is nil"},
		"InitContainer missing":  {edit.InitContainer(pods, "a", fails), `there is no init container "a"`},
		"EachContainer":          {edit.EachContainer(nil, fails), "the pod template is nil"},
		"EachContainer function": {edit.EachContainer(pods, nil), errNoFunctionText},
		"EachInitContainer":      {edit.EachInitContainer(nil, fails), "the pod template is nil"},
		"EnsureEnv":              {edit.EnsureEnv(nil), "the container is nil"},
		"EnsureEnv name":         {edit.EnsureEnv(container, corev1.EnvVar{}), "an environment variable has no name"},
		"MergeYAML":              {edit.MergeYAML(nil, "a", "a: 1"), "the ConfigMap is nil"},
		"MergeYAML key":          {edit.MergeYAML(&corev1.ConfigMap{}, "", "a: 1"), "a key is empty"},
	} {
		if tc.err == nil || tc.err.Error() != tc.want {
			t.Errorf("%s: the error is %v, not %s", name, tc.err, tc.want)
		}
	}
}

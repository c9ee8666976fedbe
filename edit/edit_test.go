package edit_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/edit"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// parts are what the edits change.
type parts struct {
	Pods    *corev1.PodTemplateSpec
	Service *corev1.Service
	Config  *corev1.ConfigMap
	Secret  *corev1.Secret
	Role    *rbacv1.Role
	Binding *rbacv1.ClusterRoleBinding
}

func newParts() *parts {
	labels := map[string]string{"a": "1", "b": "2"}
	p := &parts{
		Pods: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: labels}},
		Service: &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
			{Name: "n0", Port: 80}, {Name: "n1", Port: 81}, {Name: "n2", Port: 82},
		}}},
		Config: &corev1.ConfigMap{
			Data:       map[string]string{"k1": "a: 1\nb: {c: 2}\n", "k2": "# kept\nx: y"},
			BinaryData: map[string][]byte{"k0": {1}},
		},
		Secret:  &corev1.Secret{Data: map[string][]byte{"k1": {1}}, StringData: map[string]string{"k0": "text"}},
		Role:    &rbacv1.Role{Rules: []rbacv1.PolicyRule{rule("get", "list"), rule("delete")}},
		Binding: &rbacv1.ClusterRoleBinding{Subjects: []rbacv1.Subject{subject("n1"), subject("n2")}},
	}
	p.Pods.Spec.Containers = []corev1.Container{
		{Name: "n0", Env: []corev1.EnvVar{{Name: "n0"}, {Name: "n1"}, {Name: "n2"}}}, {Name: "n1"}, {Name: "n2"},
	}
	p.Pods.Spec.InitContainers = slices.Clone(p.Pods.Spec.Containers)
	p.Pods.Spec.Volumes = []corev1.Volume{{Name: "n0"}, {Name: "n1"}, {Name: "n2"}}
	p.Pods.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
		{Name: "n1", MountPath: "/n0"}, {Name: "n1", MountPath: "/n1"},
	}
	return p
}

func (p *parts) deepCopy() *parts {
	return &parts{
		Pods: p.Pods.DeepCopy(), Service: p.Service.DeepCopy(), Config: p.Config.DeepCopy(),
		Secret: p.Secret.DeepCopy(), Role: p.Role.DeepCopy(), Binding: p.Binding.DeepCopy(),
	}
}

// shallow returns parts that share all maps and lists with p.
func (p *parts) shallow() *parts {
	pods, service, config, secret, role, binding := *p.Pods, *p.Service, *p.Config, *p.Secret, *p.Role, *p.Binding
	return &parts{&pods, &service, &config, &secret, &role, &binding}
}

func rule(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: verbs}
}

func subject(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.UserKind, Name: name}
}

// each calls an edit of containers with the container n0.
func (p *parts) first(edits func(*corev1.Container) error) error {
	return edit.Container(p.Pods, "n0", edits)
}

// edits are all edits; n and v choose a key and a value.
var edits = []func(p *parts, n, v string) error{
	func(p *parts, n, v string) error {
		return edit.EnsureContainer(p.Pods, corev1.Container{Name: n, Image: v})
	},
	func(p *parts, n, v string) error {
		return edit.EnsureInitContainer(p.Pods, corev1.Container{Name: n, Image: v})
	},
	func(p *parts, n, _ string) error { return edit.RemoveContainer(p.Pods, n) },
	func(p *parts, n, _ string) error { return edit.RemoveInitContainer(p.Pods, n) },
	func(p *parts, n, v string) error {
		return edit.InitContainer(p.Pods, n, func(c *corev1.Container) error { c.Image = v; return nil })
	},
	func(p *parts, n, v string) error {
		return edit.EachContainer(p.Pods, func(c *corev1.Container) error {
			return edit.EnsureEnv(c, corev1.EnvVar{Name: n, Value: v}, corev1.EnvVar{Name: "last"})
		})
	},
	func(p *parts, n, v string) error {
		return edit.EachInitContainer(p.Pods, func(c *corev1.Container) error { return edit.RemoveEnv(c, n, v) })
	},
	func(p *parts, n, v string) error {
		return edit.EnsureVolume(p.Pods, corev1.Volume{Name: n, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: v},
		}})
	},
	func(p *parts, n, _ string) error { return edit.RemoveVolume(p.Pods, n) },
	func(p *parts, n, v string) error {
		return p.first(func(c *corev1.Container) error {
			return edit.EnsureVolumeMount(c, corev1.VolumeMount{Name: v, MountPath: "/" + n})
		})
	},
	func(p *parts, n, _ string) error {
		return p.first(func(c *corev1.Container) error { return edit.RemoveVolumeMount(c, "/"+n) })
	},
	func(p *parts, n, v string) error { return edit.Labels(p.Pods, map[string]string{n: v}) },
	func(p *parts, n, _ string) error { return edit.RemoveLabel(p.Pods, n, "a") },
	func(p *parts, n, v string) error { return edit.Annotations(p.Service, map[string]string{n: v}) },
	func(p *parts, n, _ string) error { return edit.RemoveAnnotation(p.Pods, n, "b") },
	func(p *parts, n, v string) error {
		return edit.EnsureServicePort(p.Service, corev1.ServicePort{Name: n, Port: 80 + int32(len(v))})
	},
	func(p *parts, n, _ string) error { return edit.RemoveServicePort(p.Service, n) },
	func(p *parts, n, v string) error { return edit.EnsureData(p.Config, map[string]string{n: v}) },
	func(p *parts, n, _ string) error { return edit.RemoveData(p.Config, n) },
	func(p *parts, n, v string) error {
		return edit.MergeYAML(p.Config, "k"+n[1:], "a: "+v+"\nb: {c: null, d: 1}")
	},
	func(p *parts, n, v string) error {
		return edit.EnsureSecretData(p.Secret, map[string][]byte{"k" + n[1:]: []byte(v)})
	},
	func(p *parts, n, _ string) error { return edit.RemoveSecretData(p.Secret, "k"+n[1:]) },
	func(p *parts, _, v string) error { return edit.EnsureRule(p.Role, rule("list", v, "get", "get")) },
	func(p *parts, _, v string) error { return edit.RemoveRule(p.Role, rule(v, "list", "get")) },
	func(p *parts, n, _ string) error { return edit.EnsureSubject(p.Binding, subject(n)) },
	func(p *parts, n, _ string) error { return edit.RemoveSubject(p.Binding, subject(n)) },
}

// FuzzEdits applies edits: each of them twice does what it does once, changes nothing that is shared, has no key twice,
// and keeps the order of what it does not touch.
func FuzzEdits(f *testing.F) {
	for i := range edits {
		f.Add([]byte{byte(i), 0, 0, byte(i), 1, 1, byte(i), 3, 2})
	}
	f.Add([]byte{0, 4, 0, 2, 4, 0, 15, 4, 1, 15, 0, 2, 22, 0, 0, 23, 0, 0, 23, 0, 2, 19, 0, 1, 19, 2, 2})
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
		for _, m := range c.VolumeMounts {
			add("mounts of "+c.Name, m.MountPath)
		}
	}
	for _, c := range p.Pods.Spec.InitContainers {
		add("init containers", c.Name)
	}
	for _, v := range p.Pods.Spec.Volumes {
		add("volumes", v.Name)
	}
	for _, port := range p.Service.Spec.Ports {
		add("names of ports", port.Name)
		add("ports", fmt.Sprint(port.Port))
	}
	for _, r := range p.Role.Rules {
		add("rules", strings.Join(slices.Compact(slices.Sorted(slices.Values(r.Verbs))), ","))
	}
	for _, s := range p.Binding.Subjects {
		add("subjects", s.Name)
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

func TestOrderStays(t *testing.T) {
	t.Parallel()
	p := newParts()
	for _, name := range []string{"n1", "n4", "n0"} {
		if err := edit.EnsureContainer(p.Pods, corev1.Container{Name: name, Image: "new"}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, c := range p.Pods.Spec.Containers {
		got = append(got, c.Name+c.Image)
	}
	if want := []string{"n0new", "n1new", "n2", "n4new"}; !slices.Equal(got, want) {
		t.Errorf("the containers are %v, not %v", got, want)
	}
}

func TestEnsureServicePort(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		has, want []corev1.ServicePort
		port      corev1.ServicePort
	}{
		"none": {nil, []corev1.ServicePort{{Name: "a", Port: 1}}, corev1.ServicePort{Name: "a", Port: 1}},
		"name": {
			[]corev1.ServicePort{{Name: "a", Port: 1}, {Name: "b", Port: 2}},
			[]corev1.ServicePort{{Name: "a", Port: 3}, {Name: "b", Port: 2}}, corev1.ServicePort{Name: "a", Port: 3},
		},
		"number": {
			[]corev1.ServicePort{{Port: 1, Protocol: "UDP"}, {Port: 1, Protocol: "TCP"}},
			[]corev1.ServicePort{{Port: 1, Protocol: "UDP"}, {Name: "a", Port: 1}},
			corev1.ServicePort{Name: "a", Port: 1},
		},
		"name and number of two": {
			[]corev1.ServicePort{{Name: "b", Port: 2}, {Name: "c", Port: 3}, {Name: "a", Port: 1}},
			[]corev1.ServicePort{{Name: "c", Port: 3}, {Name: "a", Port: 2}}, corev1.ServicePort{Name: "a", Port: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := &corev1.Service{Spec: corev1.ServiceSpec{Ports: tc.has}}
			if err := edit.EnsureServicePort(service, tc.port); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, service.Spec.Ports); diff != "" {
				t.Errorf("the ports differ (-wanted +got):\n%s", diff)
			}
		})
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

func TestRules(t *testing.T) {
	t.Parallel()
	role := &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{rule("get", "list")}}
	for _, r := range []rbacv1.PolicyRule{rule("list", "get"), rule("get"), rule("get")} {
		if err := edit.EnsureRule(role, r); err != nil {
			t.Fatal(err)
		}
	}
	if len(role.Rules) != 2 {
		t.Errorf("the rules are %v, want two", role.Rules)
	}
	if err := edit.RemoveRule(role, rule("get")); err != nil || len(role.Rules) != 1 {
		t.Errorf("the rules are %v (%v), want one", role.Rules, err)
	}
	binding := &rbacv1.RoleBinding{Subjects: []rbacv1.Subject{
		{Kind: rbacv1.UserKind, Name: "u", APIGroup: rbacv1.GroupName},
		{Kind: rbacv1.ServiceAccountKind, Name: "u", Namespace: "a"},
	}}
	for _, s := range []rbacv1.Subject{
		{Kind: rbacv1.UserKind, Name: "u"}, {Kind: rbacv1.ServiceAccountKind, Name: "u", Namespace: "b"},
	} {
		if err := edit.EnsureSubject(binding, s); err != nil {
			t.Fatal(err)
		}
	}
	if len(binding.Subjects) != 3 {
		t.Errorf("the subjects are %v, want three", binding.Subjects)
	}
	if err := edit.RemoveSubject(binding, subject("u")); err != nil || len(binding.Subjects) != 2 {
		t.Errorf("the subjects are %v (%v), want two", binding.Subjects, err)
	}
}

func TestSecretDataReplacesText(t *testing.T) {
	t.Parallel()
	value := []byte("new")
	secret := &corev1.Secret{StringData: map[string]string{"k": "old"}}
	if err := edit.EnsureSecretData(secret, map[string][]byte{"k": value}); err != nil {
		t.Fatal(err)
	}
	value[0] = 'x'
	if string(secret.Data["k"]) != "new" || len(secret.StringData) > 0 {
		t.Errorf(`the value is %q and the text %v, want "new" and none`, secret.Data["k"], secret.StringData)
	}
}

func TestMetadataOfUnstructured(t *testing.T) {
	t.Parallel()
	u := &unstructured.Unstructured{}
	if err := edit.Labels(u, map[string]string{"a": "b"}); err != nil || u.GetLabels()["a"] != "b" {
		t.Errorf("the labels are %v (%v), want a=b", u.GetLabels(), err)
	}
	u.Object = map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": int64(1)}}}
	err := edit.Labels(u, map[string]string{"b": "c"})
	if want := "the field metadata.labels has something else than texts"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %q", err, want)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	pods, container, c := &corev1.PodTemplateSpec{}, &corev1.Container{}, corev1.Container{Name: "a"}
	pods.Spec.Containers = []corev1.Container{c}
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
		"EnsureContainer":        {edit.EnsureContainer(nil, c), "the pod template is nil"},
		"EnsureContainer name":   {edit.EnsureContainer(pods, *container), "the container has no name"},
		"EnsureInitContainer":    {edit.EnsureInitContainer(nil, c), "the pod template is nil"},
		"init container name":    {edit.EnsureInitContainer(pods, *container), "the init container has no name"},
		"RemoveContainer":        {edit.RemoveContainer(nil, "a"), "the pod template is nil"},
		"RemoveInitContainer":    {edit.RemoveInitContainer(nil, "a"), "the pod template is nil"},
		"EnsureEnv":              {edit.EnsureEnv(nil), "the container is nil"},
		"EnsureEnv name":         {edit.EnsureEnv(container, corev1.EnvVar{}), "an environment variable has no name"},
		"RemoveEnv":              {edit.RemoveEnv(nil, "a"), "the container is nil"},
		"EnsureVolume":           {edit.EnsureVolume(nil, corev1.Volume{Name: "a"}), "the pod template is nil"},
		"EnsureVolume name":      {edit.EnsureVolume(pods, corev1.Volume{}), "the volume has no name"},
		"RemoveVolume":           {edit.RemoveVolume(nil, "a"), "the pod template is nil"},
		"EnsureVolumeMount":      {edit.EnsureVolumeMount(nil, corev1.VolumeMount{}), "the container is nil"},
		"EnsureVolumeMount path": {
			edit.EnsureVolumeMount(container, corev1.VolumeMount{Name: "v"}),
			`the mount "v" at "" needs the name of a volume and a path`,
		},
		"RemoveVolumeMount": {edit.RemoveVolumeMount(nil, "a"), "the container is nil"},
		"Labels":            {edit.Labels(nil, nil), "the object is nil"},
		"Labels typed nil":  {edit.Labels((*corev1.Pod)(nil), nil), "the object is nil"},
		"RemoveLabel":       {edit.RemoveLabel(nil, "a"), "the object is nil"},
		"Annotations":       {edit.Annotations(nil, nil), "the object is nil"},
		"RemoveAnnotation":  {edit.RemoveAnnotation((*corev1.Pod)(nil)), "the object is nil"},
		"EnsureServicePort": {edit.EnsureServicePort(nil, corev1.ServicePort{Port: 1}), "the Service is nil"},
		"EnsureServicePort 0": {edit.EnsureServicePort(&corev1.Service{}, corev1.ServicePort{}),
			"the port of the Service has no number"},
		"RemoveServicePort": {edit.RemoveServicePort(nil, "a"), "the Service is nil"},
		"EnsureData":        {edit.EnsureData(nil, nil), "the ConfigMap is nil"},
		"EnsureData key":    {edit.EnsureData(&corev1.ConfigMap{}, map[string]string{"": "a"}), "a key is empty"},
		"RemoveData":        {edit.RemoveData(nil, "a"), "the ConfigMap is nil"},
		"MergeYAML":         {edit.MergeYAML(nil, "a", "a: 1"), "the ConfigMap is nil"},
		"MergeYAML key":     {edit.MergeYAML(&corev1.ConfigMap{}, "", "a: 1"), "a key is empty"},
		"EnsureSecretData":  {edit.EnsureSecretData(nil, nil), "the Secret is nil"},
		"EnsureSecretData key": {edit.EnsureSecretData(&corev1.Secret{}, map[string][]byte{"": {1}}),
			"a key is empty"},
		"RemoveSecretData":   {edit.RemoveSecretData(nil, "a"), "the Secret is nil"},
		"EnsureRule":         {edit.EnsureRule((*rbacv1.Role)(nil), rule("get")), "the role is nil"},
		"EnsureRule cluster": {edit.EnsureRule((*rbacv1.ClusterRole)(nil), rule("get")), "the role is nil"},
		"EnsureRule verbs":   {edit.EnsureRule(&rbacv1.Role{}, rule()), "the rule has no verbs"},
		"RemoveRule":         {edit.RemoveRule((*rbacv1.Role)(nil), rule()), "the role is nil"},
		"EnsureSubject":      {edit.EnsureSubject((*rbacv1.RoleBinding)(nil), subject("a")), "the binding is nil"},
		"EnsureSubject cluster": {edit.EnsureSubject((*rbacv1.ClusterRoleBinding)(nil), subject("a")),
			"the binding is nil"},
		"EnsureSubject name": {edit.EnsureSubject(&rbacv1.RoleBinding{}, subject("")),
			"the subject needs a kind and a name"},
		"RemoveSubject": {edit.RemoveSubject((*rbacv1.RoleBinding)(nil), subject("a")), "the binding is nil"},
	} {
		if tc.err == nil || tc.err.Error() != tc.want {
			t.Errorf("%s: the error is %v, not %s", name, tc.err, tc.want)
		}
	}
}

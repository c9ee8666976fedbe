package answer_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/plugins/internal/answer"
	"github.com/espalier-dev/espalier/plugins/internal/protocol"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	configMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	role      = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}
	nowhere   = schema.GroupVersionKind{Version: "v1", Kind: "Node"}
)

func rules() answer.Rules {
	return answer.Rules{
		Namespace: "default", MaxDependents: 3,
		Creates:       []schema.GroupVersionKind{configMap, role, nowhere},
		Reads:         []schema.GroupVersionKind{configMap},
		ClusterScoped: func(kind schema.GroupVersionKind) bool { return kind == nowhere },
	}
}

// dependent returns one whose object is a config map of its name.
func dependent(name string, changes ...func(d *protocol.Dependent)) *protocol.Dependent {
	d := &protocol.Dependent{
		Name: name, ApiVersion: "v1", Kind: "ConfigMap",
		Object: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}`),
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

// object gives a dependent an object.
func object(text string) func(d *protocol.Dependent) {
	return func(d *protocol.Dependent) { d.Object = []byte(text) }
}

// metadata gives a dependent an object with metadata.
func metadata(text string) func(d *protocol.Dependent) {
	return object(`{"apiVersion":"v1","kind":"ConfigMap","metadata":` + text + `}`)
}

func TestAnswersThatAreRefused(t *testing.T) {
	path := func(fields ...string) *protocol.Path { return &protocol.Path{Path: fields} }
	yields := func(name string, path ...string) func(d *protocol.Dependent) {
		return func(d *protocol.Dependent) {
			d.Yields = append(d.Yields, &protocol.Yield{Name: name, Path: path})
		}
	}
	health := func(h *protocol.Health) func(d *protocol.Dependent) {
		return func(d *protocol.Dependent) { d.Health = h }
	}
	ready := &protocol.Health_Condition{Condition: "Ready"}
	for want, items := range map[string][]*protocol.Dependent{
		"there are 4 dependents, and at most 3": {
			dependent("a"), dependent("b"), dependent("c"), dependent("d"),
		},
		`the dependent 0 has the name ""`:    {dependent("")},
		`the dependent 0 has the name "A"`:   {dependent("A")},
		`the dependent 0 has the name "a/b"`: {dependent("a/b")},
		`the dependent 0 has the name "aaaa`: {dependent(strings.Repeat("a", 64))},
		`the dependent "a" is given twice`:   {dependent("a"), dependent("a")},
		`is "Secret" of "v1", which the operator does not`: {
			dependent("a", func(d *protocol.Dependent) { d.Kind = "Secret" }),
		},
		`not allow plugins to read`: {dependent("a", func(d *protocol.Dependent) {
			d.ReadOnly, d.ApiVersion, d.Kind = true, "rbac.authorization.k8s.io/v1", "Role"
		})},
		`is Node of v1, which has no namespace`: {dependent("a", func(d *protocol.Dependent) { d.Kind = "Node" })},
		`is only read, so it must not be`: {dependent("a", func(d *protocol.Dependent) {
			d.ReadOnly, d.Unowned = true, true
		})},
		`so it must not be ignore_absent`: {dependent("a", func(d *protocol.Dependent) { d.IgnoreAbsent = true })},
		`both create_only and recreates`: {dependent("a", func(d *protocol.Dependent) {
			d.CreateOnly, d.Recreates = true, true
		})},
		`unchecked and have a rule`: {dependent("a", func(d *protocol.Dependent) {
			d.Unchecked, d.Health = true, &protocol.Health{Rule: ready}
		})},
		`independent and wait for others`: {dependent("a"), dependent("b", func(d *protocol.Dependent) {
			d.Independent, d.After = true, []string{"a"}
		})},
		`is after "b", which is no dependent before it`: {dependent("a", func(d *protocol.Dependent) {
			d.After = []string{"b"}
		}), dependent("b")},
		`is after "a", which is`: {dependent("a", func(d *protocol.Dependent) { d.After = []string{"a"} })},
		`needs "v", which no dependent before it yields`: {
			dependent("a", yields("v", "x"), func(d *protocol.Dependent) { d.Needs = []string{"v"} }),
		},
		`yields a value with the name "V"`:     {dependent("a", yields("V", "x"))},
		`yields "v", which is yielded already`: {dependent("a", yields("v", "x")), dependent("b", yields("v", "x"))},
		`yields "v", whose path must have`:     {dependent("a", yields("v"))},
		`yields "w", whose path must have`:     {dependent("a", yields("w", "x", ""))},
		`a rule of health without a condition`: {dependent("a", health(&protocol.Health{}))},
		`has the attribute "a b"`: {dependent("a", health(&protocol.Health{
			Rule: ready, Attributes: map[string]*protocol.Path{"a b": path("x")},
		}))},
		`has the attribute "p", whose path`: {dependent("a", health(&protocol.Health{
			Rule: ready, Attributes: map[string]*protocol.Path{"p": nil},
		}))},
		`has no object, and needs no value`:   {dependent("a", object(""))},
		`has an object that is not JSON`:      {dependent("a", object("{"))},
		`has more than one object`:            {dependent("a", object(`{"kind":"ConfigMap"} {}`))},
		`has an object without a kind`:        {dependent("a", object(`{}`))},
		`has an object without a kind, or`:    {dependent("a", object(`[]`))},
		`has a list, and must have one`:       {dependent("a", object(`{"apiVersion":"v1","kind":"List","items":[]}`))},
		`has an object of another kind, "/v1`: {dependent("a", object(`{"apiVersion":"v1","kind":"Secret"}`))},
		`has an object that is too large`:     {dependent("a", object(strings.Repeat("[", 1<<19)))},
		`has an object without metadata`:      {dependent("a", object(`{"apiVersion":"v1","kind":"ConfigMap"}`))},
		`has an object with a status`: {dependent("a", object(
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"status":{}}`))},
		`object whose metadata.name is no text`: {dependent("a", metadata(`{"name":1}`))},
		`with the name "": a lowercase`:         {dependent("a", metadata(`{}`))},
		`with the name "../x"`:                  {dependent("a", metadata(`{"name":"../x"}`))},
		`in the namespace "other", and the owner`: {
			dependent("a", metadata(`{"name":"a","namespace":"other"}`)),
		},
		`with "ownerReferences" in metadata`: {
			dependent("a", metadata(`{"name":"a","ownerReferences":[]}`)),
		},
		`with "finalizers" in metadata`: {
			dependent("a", metadata(`{"name":"a","finalizers":["x/y"]}`)),
		},
		`with "generateName" in metadata`: {
			dependent("a", metadata(`{"name":"a","generateName":"x"}`)),
		},
		`with "uid" in metadata`:        {dependent("a", metadata(`{"name":"a","uid":"x"}`))},
		`metadata.labels are not texts`: {dependent("a", metadata(`{"name":"a","labels":[]}`))},
		`metadata.annotations are not texts`: {
			dependent("a", metadata(`{"name":"a","annotations":{"x":1}}`)),
		},
		`with "espalier.dev/node" in metadata.labels`: {
			dependent("a", metadata(`{"name":"a","labels":{"espalier.dev/node":"x"}}`)),
		},
		`with "x.espalier.dev/y" in metadata.annotat`: {
			dependent("a", metadata(`{"name":"a","annotations":{"x.espalier.dev/y":""}}`)),
		},
		`has the same object as "a": ConfigMap x`: {
			dependent("a", metadata(`{"name":"x"}`)), dependent("b", metadata(`{"name":"x"}`)),
		},
		`reads in another namespace: in the namespace "other"`: nil,
	} {
		if items == nil {
			items = []*protocol.Dependent{dependent("a", metadata(`{"name":"a","namespace":"other"}`),
				func(d *protocol.Dependent) { d.ReadOnly = true })}
			_, want, _ = strings.Cut(want, ": ")
		}
		if _, err := answer.Check(items, rules()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %s", err, want)
		} else if len(err.Error()) > 400 {
			t.Errorf("the error has %d bytes, want few: %v", len(err.Error()), err)
		}
	}
}

// An error does not have the content of an object, which may be a Secret.
func TestRefusalsHaveNoContent(t *testing.T) {
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"password":"hunter2"}`,
		`{"apiVersion":"v1","kind":"ConfigMap","data":{"password":"hunter2"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"x":["hunter2"]}}}`,
	} {
		if _, err := answer.Check([]*protocol.Dependent{dependent("a", object(text))}, rules()); err == nil ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error is %v, want one without the content", err)
		}
	}
}

func TestAnswers(t *testing.T) {
	found, err := answer.Check([]*protocol.Dependent{
		dependent("a", metadata(`{"name":"a","labels":{"x":"y"}}`), func(d *protocol.Dependent) {
			d.Yields = []*protocol.Yield{{Name: "v", Path: []string{"data", "v"}}}
		}),
		dependent("b", object(""), func(d *protocol.Dependent) { d.Needs = []string{"v"} }),
		dependent("c", metadata(`{"name":"c","finalizers":["ignored"]}`), func(d *protocol.Dependent) {
			d.ReadOnly = true
		}),
	}, rules())
	if err != nil {
		t.Fatalf("the answer is refused: %v, want it allowed", err)
	}
	if a := found[0].Object; a.GetNamespace() != "default" || a.GetLabels()["x"] != "y" {
		t.Errorf("the object is %v, want it in the namespace of the owner, with its label", a)
	}
	if found[1].Object != nil {
		t.Errorf("the object is %v, want none", found[1].Object)
	}
	text, err := json.Marshal(found[2].Object)
	want := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"}}`
	if err != nil || string(text) != want {
		t.Errorf("the object that is read is %s, want %s: only its name counts", text, want)
	}
}

// The key of a dependent says all that is needed to delete it.
func TestKeys(t *testing.T) {
	for key, d := range map[string]answer.Dependent{
		"a:ConfigMap":                              {Name: "a", Kind: configMap},
		"a:ConfigMap:unowned":                      {Name: "a", Kind: configMap, Unowned: true},
		"b:Role.rbac.authorization.k8s.io":         {Name: "b", Kind: role},
		"unowned:ConfigMap":                        {Name: "unowned", Kind: configMap},
		"b:Role.rbac.authorization.k8s.io:unowned": {Name: "b", Kind: role, Unowned: true},
	} {
		if got := d.Key(); got != key {
			t.Errorf("the key of %v is %s, want %s", d, got, key)
		}
		got := answer.ByKey(key)
		if got.Name != d.Name || got.Kind.GroupKind() != d.Kind.GroupKind() || got.Unowned != d.Unowned {
			t.Errorf("the key %s stands for %v, want %v", key, got, d)
		}
	}
}

// No answer has the host panic, and what is allowed keeps the rules.
func FuzzCheck(f *testing.F) {
	f.Add("a", "v1", "ConfigMap", []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`), "v", true)
	f.Add("a", "v1", "ConfigMap", []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":null,"items":0}`), "", false)
	f.Add("", "", "", []byte(nil), "a:b", true)
	f.Fuzz(func(t *testing.T, name, apiVersion, kind string, object []byte, value string, readOnly bool) {
		items := []*protocol.Dependent{{
			Name: name, ApiVersion: apiVersion, Kind: kind, Object: object, ReadOnly: readOnly,
			Yields: []*protocol.Yield{{Name: value, Path: []string{value}}},
			Health: &protocol.Health{Rule: &protocol.Health_Field{Field: &protocol.Field{Path: []string{value}}}},
		}, nil}
		found, err := answer.Check(items[:1], rules())
		_, _ = answer.Check(items, rules())
		_ = answer.ByKey(name)
		if err != nil {
			return
		}
		d := found[0]
		if d.Object == nil || d.Object.GetNamespace() != "default" || len(d.Object.GetOwnerReferences()) > 0 {
			t.Errorf("the object %v is allowed, want it refused", d.Object)
		}
		if got := answer.ByKey(d.Key()); got.Name != d.Name {
			t.Errorf("the key %s stands for %v, want %v", d.Key(), got, d)
		}
		_ = d.Health.Of(d.Object)
		_, _ = answer.At(d.Object, d.Yields[0].Path)
	})
}

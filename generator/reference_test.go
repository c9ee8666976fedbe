package generator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/testing/fake"
)

// referring is a resource whose spec has references wherever they may be.
type referring[Spec any] struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec Spec `json:"spec"`
}

func (r *referring[Spec]) DeepCopyObject() runtime.Object { return r }

func resourceOf[Spec any](spec Spec) *referring[Spec] {
	return &referring[Spec]{ObjectMeta: metav1.ObjectMeta{Namespace: "plots", Name: "garden"}, Spec: spec}
}

type (
	configRef  = generator.ConfigMapReference
	configKey  = generator.ConfigMapKeyReference
	secretRef  = generator.SecretReference
	secretKey  = generator.SecretKeyReference
	valuesFrom = generator.ValuesReference
)

// ownReference counts its calls.
type ownReference struct {
	Name           string `json:"name"`
	err            error  `json:"-"`
	panics         bool   `json:"-"`
	loads, sayings int    `json:"-"`
}

func (r *ownReference) Load(_ context.Context, local client.Client, resource client.Object) error {
	if r.loads++; r.panics {
		panic(r.Name)
	}
	if local == nil || resource.GetName() != "garden" {
		return errors.New("called with something else")
	}
	return r.err
}

func (r *ownReference) Identity() string {
	r.sayings++
	return "own " + r.Name
}

type embedded struct {
	Promoted secretKey `json:"promoted"`
}

type node struct {
	Next   *node     `json:"next,omitempty"`
	Secret secretKey `json:"secret"`
}

type everywhere struct {
	embedded `json:",inline"`
	Struct   struct {
		Ref configRef `json:"ref"`
	} `json:"struct"`
	Pointer  *secretRef             `json:"pointer,omitempty"`
	Slice    []configKey            `json:"slice"`
	Array    [2]*secretKey          `json:"array"`
	Map      map[string]secretKey   `json:"map"`
	Pointers map[int]*configRef     `json:"pointers"`
	Nested   map[string][]secretKey `json:"nested"`
	List     *node                  `json:"list,omitempty"`
	Own      *ownReference          `json:"own,omitempty"`
	Values   []valuesFrom           `json:"values"`
	NoTag    configRef
	Passed   *secretKey `json:"passed,omitempty" reference:"-"`
	Tagged   *secretKey `json:"tagged,omitempty" fallbackKeys:"config,token"`
	Raw      runtime.RawExtension
	Bytes    []byte
	Any      any
	Time     metav1.Time
	hidden   secretKey
}

func storeOf(objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithObjects(objects...).Build()
}

func configOf(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plots", Name: name, UID: "uid-c"}, Data: data}
}

func secretOf(name string, data map[string]string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "plots", Name: name, UID: "uid-s"}, Data: map[string][]byte{}}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	return secret
}

func TestReferencesAreFoundEverywhere(t *testing.T) {
	store := storeOf(configOf("c", map[string]string{"k": "v", "value": "w"}),
		secretOf("s", map[string]string{"k": "secret", "value": "other", "token": "t"}))
	list := &node{Secret: secretKey{Name: "s"}, Next: &node{Secret: secretKey{Name: "s"}}}
	list.Next.Next = list // a cycle
	r := resourceOf(everywhere{
		embedded: embedded{secretKey{Name: "s"}},
		Pointer:  &secretRef{Name: "s"},
		Slice:    []configKey{{Name: "c", Key: "k"}, {}, {Name: "c"}},
		Array:    [2]*secretKey{nil, {Name: "s", Key: "k"}},
		Map:      map[string]secretKey{"b": {Name: "s", Key: "k"}, "a.b": {Name: "s"}},
		Pointers: map[int]*configRef{7: {Name: "c"}, 8: nil},
		Nested:   map[string][]secretKey{"n": {{Name: "s"}}},
		List:     list,
		Own:      &ownReference{Name: "mine"},
		Values:   []valuesFrom{{Kind: "Secret", Name: "s", Key: "k", TargetPath: "p"}},
		Passed:   &secretKey{Name: "missing"},
		Tagged:   &secretKey{Name: "s"},
		Any:      &secretKey{Name: "missing"},
		Bytes:    make([]byte, 10),
		hidden:   secretKey{Name: "missing"},
	})
	r.Spec.Struct.Ref.Name = "c"
	identities, err := generator.ReferenceSource{Client: store}.Load(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, path := range slices.Sorted(maps.Keys(identities)) {
		fmt.Fprintln(&text, path, identities[path])
	}
	want := strings.Join([]string{
		`refs:spec.array[1] S`, `refs:spec.list.next.secret S`, `refs:spec.list.secret S`, `refs:spec.map["a.b"] S`,
		`refs:spec.map["b"] S`, `refs:spec.nested["n"][0] S`, `refs:spec.own own mine`, `refs:spec.pointer S`,
		`refs:spec.pointers[7] ALL`, `refs:spec.promoted S`, `refs:spec.slice[0] K`, `refs:spec.slice[2] VALUE`,
		`refs:spec.struct.ref ALL`, `refs:spec.tagged S`, `refs:spec.values[0] Secret/s/k/p/S`, "",
	}, "\n")
	secret := &corev1.Secret{}
	if err := store.Get(t.Context(), client.ObjectKey{Namespace: "plots", Name: "s"}, secret); err != nil {
		t.Fatal(err)
	}
	got := strings.NewReplacer("uid-s/"+secret.ResourceVersion, "S", identities[`refs:spec.slice[0]`], "K", identities[`refs:spec.slice[2]`], "VALUE",
		identities[`refs:spec.struct.ref`], "ALL").Replace(text.String())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	value := func(value any, err error) string { return fmt.Sprintf("%s %v", value, err) }
	elsewhere := r.Spec.Map["b"]
	for what, got := range map[string][2]string{
		"a promoted field":     {value(r.Spec.Promoted.Value()), "other <nil>"},
		"a pointer":            {value(r.Spec.Pointer.Data()), "map[k:secret token:t value:other] <nil>"},
		"an element":           {value(r.Spec.Slice[0].Value()), "v <nil>"},
		"one without a name":   {value(r.Spec.Slice[1].Value()), " the reference is not loaded"},
		"a default key":        {value(r.Spec.Slice[2].Value()), "w <nil>"},
		"a value of a map":     {value(elsewhere.Value()), "secret <nil>"},
		"a pointer in a map":   {value(r.Spec.Pointers[7].Data()), "map[k:v value:w] <nil>"},
		"an element in a map":  {value(r.Spec.Nested["n"][0].Value()), "other <nil>"},
		"a cycle":              {value(r.Spec.List.Next.Secret.Value()), "other <nil>"},
		"values":               {value(r.Spec.Values[0].Values()), "map[p:secret] <nil>"},
		"keys of the tag":      {value(r.Spec.Tagged.Value()), "t <nil>"},
		"one that is left out": {value(r.Spec.Passed.Value()), " the reference is not loaded"},
		"nil":                  {value((*secretKey)(nil).Value()), " there is no reference"},
		"nil, another":         {value((*configRef)(nil).Data()), "map[] there is no reference"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: got %q, want %q", what, got[0], got[1])
		}
	}
	if r.Spec.Own.loads != 1 || r.Spec.Own.sayings != 1 {
		t.Errorf("a reference was called %d and %d times, want once each", r.Spec.Own.loads, r.Spec.Own.sayings)
	}
}

// No identity is made of the content of a Secret. That of a ConfigMap is, and only of the value that is meant.
func TestIdentitiesOfReferences(t *testing.T) {
	type spec struct {
		Config configRef
		Key    configKey
		Secret secretKey
	}
	identities := func(config, other, secret, uid, version string) []string {
		read := func(_ context.Context, object client.Object) (*generator.Referenced, error) {
			switch o := object.(type) {
			case *corev1.ConfigMap:
				o.Data = map[string]string{"value": config, "other": other}
			case *corev1.Secret:
				o.UID, o.ResourceVersion, o.Data = types.UID(uid), version, map[string][]byte{"value": []byte(secret)}
			}
			return generator.NewReferenced(object)
		}
		r := resourceOf(spec{configRef{Name: "c"}, configKey{Name: "c"}, secretKey{Name: "s"}})
		got, err := generator.ReferenceSource{Read: read}.Load(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return []string{got["refs:spec.Config"], got["refs:spec.Key"], got["refs:spec.Secret"]}
	}
	before := identities("a", "b", "c", "u", "1")
	for what, tc := range map[string]struct {
		got     []string
		changes [3]bool
	}{
		"nothing":         {identities("a", "b", "c", "u", "1"), [3]bool{}},
		"the value":       {identities("A", "b", "c", "u", "1"), [3]bool{true, true, false}},
		"another value":   {identities("a", "B", "c", "u", "1"), [3]bool{true, false, false}},
		"only the secret": {identities("a", "b", "C", "u", "1"), [3]bool{}},
		"version":         {identities("a", "b", "c", "u", "2"), [3]bool{false, false, true}},
		"UID":             {identities("a", "b", "c", "x", "1"), [3]bool{false, false, true}},
	} {
		for i, changes := range tc.changes {
			if (tc.got[i] != before[i]) != changes {
				t.Errorf("%s: identity %d was %s and is %s, want another: %t", what, i, before[i], tc.got[i], changes)
			}
		}
	}
}

func TestReferencesThatCannotBeLoaded(t *testing.T) {
	type spec struct {
		Secret *secretKey            `json:"secret,omitempty"`
		Config *configRef            `json:"config,omitempty"`
		Map    map[string]*configKey `json:"map,omitempty"`
		Own    []*ownReference       `json:"own,omitempty"`
		Values []valuesFrom          `json:"values,omitempty"`
	}
	store := storeOf(configOf("c", map[string]string{"k": "v"}), secretOf("s", map[string]string{"k": "confidential"}))
	for name, tc := range map[string]struct {
		spec      spec
		want      string
		retriable bool
	}{
		"no Secret":          {spec{Secret: &secretKey{Name: "none"}}, `spec.secret: the Secret "none" does not exist`, true},
		"no ConfigMap":       {spec{Config: &configRef{Name: "none"}}, `spec.config: the ConfigMap "none" does not exist`, true},
		"no key":             {spec{Secret: &secretKey{Name: "s", Key: "x"}}, `spec.secret: the Secret "s" has no key "x"`, true},
		"no default key":     {spec{Secret: &secretKey{Name: "s"}}, `spec.secret: the Secret "s" has none of the keys value, value.yaml, value.yml`, true},
		"no key of values":   {spec{Values: []valuesFrom{{Kind: "ConfigMap", Name: "c"}}}, `spec.values[0]: the ConfigMap "c" has no key "values.yaml"`, true},
		"a key in a map":     {spec{Map: map[string]*configKey{"a": {Name: "c", Key: "x"}}}, `spec.map["a"]: the ConfigMap "c" has no key "x"`, true},
		"a faulty name":      {spec{Secret: &secretKey{Name: "../s"}}, `spec.secret: name: is not a name of a Secret: "../s"`, false},
		"a faulty key":       {spec{Secret: &secretKey{Name: "s", Key: "a/b"}}, `spec.secret: key: is not a key of a Secret: "a/b"`, false},
		"a faulty kind":      {spec{Values: []valuesFrom{{Kind: "Pod", Name: "c"}}}, `spec.values[0]: kind: is neither ConfigMap nor Secret: "Pod"`, false},
		"may not be read":    {spec{Secret: &secretKey{Name: "guarded"}}, `spec.secret: unable to read the Secret "guarded": secrets "guarded" is forbidden: no`, false},
		"one of the author":  {spec{Own: []*ownReference{nil, {err: errors.New("failed")}}}, `spec.own[1]: failed`, false},
		"one that panics":    {spec{Own: []*ownReference{{Name: "confidential", panics: true}}}, `spec.own[0]: Load panicked`, false},
		"all errors, joined": {spec{Secret: &secretKey{Name: "../s"}, Config: &configRef{Name: "none"}, Own: []*ownReference{{}}}, "spec.secret: name: is not a name of a Secret: \"../s\"\nspec.config: the ConfigMap \"none\" does not exist", true},
	} {
		t.Run(name, func(t *testing.T) {
			source := generator.ReferenceSource{Client: store, Read: func(ctx context.Context, object client.Object) (*generator.Referenced, error) {
				if object.GetName() == "guarded" {
					return nil, apierrs.NewForbidden(schema.GroupResource{Resource: "secrets"}, "guarded", errors.New("no"))
				}
				if err := store.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
					return nil, err
				}
				return generator.NewReferenced(object)
			}}
			_, err := source.Load(t.Context(), resourceOf(tc.spec))
			var retriable *generator.RetriableError
			if errorText(err) != tc.want || errors.As(err, &retriable) != tc.retriable {
				t.Errorf("the error is %v, retriable: %t, want %q, %t", err, retriable != nil, tc.want, tc.retriable)
			}
			if tc.retriable && *retriable.RetryAfter() != 10*time.Second {
				t.Errorf("it is tried again after %v, want 10s", *retriable.RetryAfter())
			}
			if tc.spec.Secret != nil {
				if _, err := tc.spec.Secret.Value(); err == nil || !strings.HasSuffix(errorText(err), strings.TrimPrefix(strings.Split(tc.want, "\n")[0], "spec.secret: ")) {
					t.Errorf("the reference says %v, want what the load says: %s", err, tc.want)
				}
			}
		})
	}
	clusterScoped := resourceOf(spec{Secret: &secretKey{Name: "s"}})
	clusterScoped.Namespace = ""
	if _, err := (generator.ReferenceSource{Client: store}).Load(t.Context(), clusterScoped); errorText(err) !=
		`spec.secret: the resource is in no namespace in which the Secret "s" could be` {
		t.Errorf("the error without a namespace is %v, want that the resource is in none", err)
	}
}

// A spec that contains itself ends with an error.
func TestReferencesAreNotLookedForWithoutEnd(t *testing.T) {
	type tree struct {
		Ref      secretKey
		Children []tree
	}
	loop := tree{Children: make([]tree, 2)}
	loop.Children[0], loop.Children[1] = loop, loop
	_, err := generator.ReferenceSource{Client: storeOf()}.Load(t.Context(), resourceOf(loop))
	if err == nil || strings.Count(err.Error(), "\n") > 0 || !strings.HasSuffix(err.Error(), ": is nested too deeply, or contains itself") {
		t.Errorf("the error is %v, want one line that ends with what is nested too deeply", err)
	}
}

func TestWhereReferencesCanBe(t *testing.T) {
	kinds := func(resource any) string {
		var names []string
		for _, kind := range generator.ReferencedKinds(resource) {
			names = append(names, kind.String())
		}
		return fmt.Sprintf("%v %v", generator.HasReferences(resource), strings.Join(names, " "))
	}
	for name, tc := range map[string]struct {
		resource any
		want     string
	}{
		"a kubeconfig and settings": {&garden{}, "false "},
		"a text":                    {resourceOf(""), "false "},
		"anything":                  {resourceOf(map[string]any{}), "false "},
		"a large type":              {resourceOf(corev1.PodSpec{}), "false "},
		"a nil resource":            {(*referring[secretKey])(nil), "true /v1, Kind=Secret"},
		"in a map":                  {resourceOf(map[string][]*configKey{}), "true /v1, Kind=ConfigMap"},
		"both":                      {resourceOf(everywhere{}), "true /v1, Kind=ConfigMap /v1, Kind=Secret"},
		"values":                    {resourceOf(generator.ValuesFromSpec{}), "true /v1, Kind=ConfigMap /v1, Kind=Secret"},
		"one of the author":         {resourceOf(ownReference{}), "true "},
		"nothing":                   {nil, "false "},
		"no resource":               {7, "false "},
		"no pointer":                {*resourceOf(secretKey{}), "false "},
	} {
		if got := kinds(tc.resource); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// What was loaded is neither written nor shown, and copies have it too.
func TestLoadedReferencesAreNotShown(t *testing.T) {
	store := storeOf(configOf("c", map[string]string{"value": "confidential"}), secretOf("s", map[string]string{"value": "confidential"}))
	r := resourceOf(struct {
		Config    configRef
		ConfigKey configKey
		Secret    secretRef
		SecretKey secretKey
		Values    valuesFrom
	}{configRef{Name: "c"}, configKey{Name: "c"}, secretRef{Name: "s"}, secretKey{Name: "s"}, valuesFrom{Kind: "Secret", Name: "s", Key: "value", TargetPath: "a"}})
	bare := r.Spec
	if _, err := (generator.ReferenceSource{Client: store}).Load(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r.Spec)
	if err != nil {
		t.Fatal(err)
	}
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&r.Spec)
	if err != nil || len(converted["SecretKey"].(map[string]any)) != 1 {
		t.Errorf("the spec is converted to %v (%v), want the name alone", converted, err)
	}
	for _, shown := range []string{string(text), fmt.Sprint(converted), fmt.Sprintf("%v %+v %#v", r.Spec, r.Spec, &r.Spec), fmt.Sprintf("%v %#v", r.Spec.SecretKey, r.Spec.SecretKey)} {
		if strings.Contains(shown, "confidential") || strings.Contains(shown, fmt.Sprint([]byte("confidential"))) {
			t.Errorf("the value is shown, want it hidden: %s", shown)
		}
	}
	if diff := cmp.Diff(bare, r.Spec); diff != "" {
		t.Errorf("the spec counts as another one, want it to be the same (-bare +loaded):\n%s", diff)
	}
	copied := r.Spec.Secret.DeepCopy()
	data, err := copied.Data()
	if err != nil || string(data["value"]) != "confidential" {
		t.Fatalf("a copy has %v (%v), want the value confidential", data, err)
	}
	data["value"][0], data["other"] = 'X', nil
	if again, _ := r.Spec.Secret.Data(); string(again["value"]) != "confidential" || len(again) != 1 {
		t.Error("the data can be changed, want them as they were")
	}
	if value, err := r.Spec.SecretKey.DeepCopy().Value(); err != nil || string(value) != "confidential" {
		t.Errorf("a copy has %s (%v), want confidential", value, err)
	}
	content, err := generator.NewReferenced(secretOf("s", map[string]string{"value": "confidential"}))
	if shown := fmt.Sprintf("%v %+v %#v %s", content, content, content, err); strings.Contains(shown, "confidential") {
		t.Errorf("the value is shown, want it hidden: %s", shown)
	}
	if _, err := generator.NewReferenced(&corev1.Pod{}); err == nil {
		t.Error("a Pod has content, want an error")
	}
}

// A spec without references costs nothing.
func TestSpecWithoutReferencesIsNotWalked(t *testing.T) {
	r := resourceOf(generator.ClientSpec{KubeConfig: &generator.KubeConfigSpec{SecretRef: secretKey{Name: "far"}}})
	source := generator.ReferenceSource{}
	if n := testing.AllocsPerRun(100, func() {
		if identities, err := source.Load(t.Context(), r); identities != nil || err != nil {
			t.Errorf("the identities are %v (%v), want none", identities, err)
		}
	}); n > 0 {
		t.Errorf("there are %v allocations, want none", n)
	}
}

// The content of a large field costs nothing, and no path is written for what is no reference.
func TestReferencesAreFoundCheaply(t *testing.T) {
	type spec struct {
		Raw    []byte
		Names  []string
		Extras map[string]string
		Things []struct {
			Name string
			Ref  *secretKey
		}
	}
	count := func(n int) float64 {
		r := resourceOf(spec{Raw: make([]byte, 1000*n), Names: make([]string, n), Things: make([]struct {
			Name string
			Ref  *secretKey
		}, n)})
		return testing.AllocsPerRun(10, func() {
			if _, err := (generator.ReferenceSource{}).Load(context.Background(), r); err != nil {
				t.Error(err)
			}
		})
	}
	if few, many := count(10), count(1000); many > few {
		t.Errorf("there are %v allocations for more, want at most %v", many, few)
	}
}

func TestValues(t *testing.T) {
	values := func(kind, text, path string) *valuesFrom {
		v := &valuesFrom{Kind: kind, Name: "v", TargetPath: path}
		read := func(_ context.Context, object client.Object) (*generator.Referenced, error) {
			switch o := object.(type) {
			case *corev1.ConfigMap:
				o.Data = map[string]string{"values.yaml": text}
			case *corev1.Secret:
				o.Data = map[string][]byte{"values.yaml": []byte(text)}
			}
			return generator.NewReferenced(object)
		}
		r := resourceOf([]*valuesFrom{v})
		if _, err := (generator.ReferenceSource{Read: read}).Load(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		return v
	}
	const tooLarge = `the key "values.yaml" of the KIND "v" is too large: aliases give a document more than 262144 values or 8388608 bytes`
	for name, tc := range map[string]struct {
		text, path string
		want       map[string]any
		err        string
	}{
		"a map":             {"a: {b: 1, c: 1.5, d: null}\ne: [true]\n", "", map[string]any{"a": map[string]any{"b": int64(1), "c": 1.5, "d": nil}, "e": []any{true}}, ""},
		"JSON":              {`{"a": "b"}`, "", map[string]any{"a": "b"}, ""},
		"nothing":           {"", "", map[string]any{}, ""},
		"a comment":         {"# a\n", "", map[string]any{}, ""},
		"a text at a path":  {"5\n", "auth.password", map[string]any{"auth": map[string]any{"password": "5\n"}}, ""},
		"an escaped name":   {"x", `a\.b\\.c`, map[string]any{`a.b\`: map[string]any{"c": "x"}}, ""},
		"an empty name":     {"x", "a..b", nil, "targetPath: has an empty name"},
		"a text":            {"confidential", "", nil, `the key "values.yaml" of the KIND "v" is not a map in YAML`},
		"a list":            {"[confidential]", "", nil, `the key "values.yaml" of the KIND "v" is not a map in YAML`},
		"no YAML":           {"a: b: confidential", "", nil, `the key "values.yaml" of the KIND "v" is not a map in YAML`},
		"many documents":    {"a: 1\n---\nb: 2\n", "", map[string]any{"a": int64(1)}, ""},
		"what is too large": {"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n", "", nil, tooLarge},
		"a text that grows": {"a: &a " + strings.Repeat("A", 500_000) + "\nb: [" + strings.Repeat("*a,", 180_000) + "]\n", "", nil, tooLarge},
	} {
		for _, kind := range []string{"ConfigMap", "Secret"} {
			t.Run(name+" in a "+kind, func(t *testing.T) {
				got, err := values(kind, tc.text, tc.path).Values()
				if errorText(err) != strings.ReplaceAll(tc.err, "KIND", kind) || !reflect.DeepEqual(got, tc.want) {
					t.Errorf("the values are %v and the error %v, want %v and %q", got, err, tc.want, tc.err)
				}
			})
		}
	}
}

func FuzzValues(f *testing.F) {
	f.Add("a: b", "")
	f.Add("a: &a [*a]", "")
	f.Add("x", `a.b\.c`)
	f.Fuzz(func(t *testing.T, text, path string) {
		r := resourceOf([]*valuesFrom{{Kind: "Secret", Name: "v", TargetPath: path}})
		read := func(_ context.Context, object client.Object) (*generator.Referenced, error) {
			object.(*corev1.Secret).Data = map[string][]byte{"values.yaml": []byte(text)}
			return generator.NewReferenced(object)
		}
		if _, err := (generator.ReferenceSource{Read: read}).Load(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if values, err := r.Spec[0].Values(); (values == nil) == (err == nil) {
			t.Errorf("the values are %v and the error %v, want one of them", values, err)
		}
	})
}

// Later values override earlier ones, the parameters override them all, and what deletes a default of a chart stays.
func TestValuesAreMerged(t *testing.T) {
	store := storeOf(
		configOf("base", map[string]string{"values.yaml": "size: {width: 1, height: 1}\ncolor: red\nroof: {}\n"}),
		secretOf("over", map[string]string{"values.yaml": "size: {width: 2}\nroof: flat\ndoors: null\n", "password": "p"}))
	r := resourceOf(generator.ValuesFromSpec{ValuesFrom: []valuesFrom{
		{Kind: "ConfigMap", Name: "base"}, {Kind: "Secret", Name: "over"}, {Kind: "Secret", Name: "over", Key: "password", TargetPath: "auth.password"},
	}})
	if _, err := generator.ValuesOf(r); errorText(err) != "spec.valuesFrom[0]: the reference is not loaded" {
		t.Errorf("the error before they are loaded is %v, want that the reference is not loaded", err)
	}
	if _, err := (generator.ReferenceSource{Client: store}).Load(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	values, err := generator.ValuesOf(r)
	if err != nil {
		t.Fatal(err)
	}
	parameters := generator.WithValues(values, generator.UnstructurableMap{"size": map[string]any{"height": 5}, "color": nil})
	want := map[string]any{
		"size": map[string]any{"width": int64(2), "height": 5}, "color": nil, "roof": "flat", "doors": nil, "auth": map[string]any{"password": "p"},
	}
	for range 2 {
		got := parameters.ToUnstructured()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		scribble(got)
	}
	none := generator.UnstructurableMap{"a": 1}
	if values, err := generator.ValuesOf(&garden{}); values != nil || err != nil || !reflect.DeepEqual(generator.WithValues(values, none), none) {
		t.Errorf("the values of no reference are %v (%v), want none", values, err)
	}
}

// A test of a generator loads what the spec refers to, as a reconciler does.
func ExampleReferenceSource() {
	type Spec struct {
		Password generator.SecretKeyReference `json:"password"`
	}
	resource := resourceOf(Spec{Password: generator.SecretKeyReference{Name: "login", Key: "password"}})
	store := storeOf(secretOf("login", map[string]string{"password": "open sesame"}))

	_, err := generator.ReferenceSource{Client: store}.Load(context.Background(), resource)
	password, _ := resource.Spec.Password.Value()
	fmt.Println(len(password), err)

	resource.Spec.Password.Key = "pin"
	_, err = generator.ReferenceSource{Client: store}.Load(context.Background(), resource)
	fmt.Println(err)
	// Output:
	// 11 <nil>
	// spec.password: the Secret "login" has no key "pin"
}

// anotherReference has the methods of ownReference, so that a struct with both has none of them.
type anotherReference struct{}

func (*anotherReference) Load(context.Context, client.Client, client.Object) error { return nil }
func (*anotherReference) Identity() string                                         { return "" }

// A field that is not exported cannot be loaded, also if it is embedded.
func TestEmbeddedReferencesThatAreNotExported(t *testing.T) {
	resource := resourceOf(struct {
		ownReference
		anotherReference
		Other secretRef `json:"other"`
	}{Other: secretRef{Name: "missing"}})
	source := generator.ReferenceSource{Client: fake.NewFakeClient()}
	_, err := source.Load(t.Context(), resource)
	if err == nil || !strings.HasPrefix(err.Error(), "spec.other: ") || resource.Spec.loads != 0 {
		t.Errorf("there are %d loads and the error %v, want none and one of spec.other", resource.Spec.loads, err)
	}
}

package managedfields_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// dial is a custom resource whose author left out omitempty, and used what else Go's JSON has to offer.
type dial struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              gaugeSpec   `json:"spec"`
	Status            gaugeStatus `json:"status"`
}

type gaugeSpec struct {
	Count    int                  `json:"count"`
	Ratio    float64              `json:"ratio"`
	On       bool                 `json:"on"`
	Name     string               `json:"name"`
	Nested   gaugeLimits          `json:"nested"`
	Pointer  *int                 `json:"pointer"`
	Limits   *gaugeLimits         `json:"limits"`
	List     []gaugeLimits        `json:"list,omitempty"`
	Pointers []*gaugeLimits       `json:"pointers,omitempty"`
	Words    []string             `json:"words,omitempty"`
	Map      map[string]int       `json:"map,omitempty"`
	Numbers  map[int]string       `json:"numbers,omitempty"`
	Bytes    []byte               `json:"bytes,omitempty"`
	Array    [2]int               `json:"array"`
	Any      any                  `json:"any,omitempty"`
	Quoted   int                  `json:"quoted,string"`
	Big      uint64               `json:"big"`
	Amount   resource.Quantity    `json:"amount"`
	Port     intstr.IntOrString   `json:"port"`
	Time     metav1.Time          `json:"time"`
	Raw      runtime.RawExtension `json:"raw"`
	Wait     metav1.Duration      `json:"wait"`
	Untagged string
	Dashed   string `json:"-"`
	hidden   string
	gaugeLimits
	*gaugeExtra
	Loop *gaugeSpec `json:"loop"`
	Bad  chan int   `json:"bad"`
	Odd  float32    `json:"odd"`
}

type gaugeLimits struct {
	Low  int `json:"low"`
	High int `json:"high,omitempty"`
	// Name is hidden by that of the spec.
	Name string `json:"name"`
}

type gaugeExtra struct {
	Extra string `json:"extra"`
}

type gaugeStatus struct {
	Seen int `json:"seen"`
}

func (g *dial) DeepCopyObject() runtime.Object {
	c := *g
	return &c
}

func TestFromObject(t *testing.T) {
	scheme := resources.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "test.espalier.dev", Version: "v1", Kind: "Gauge"}, &dial{})
	requestTime := time.Date(2024, 5, 17, 8, 30, 0, 0, time.UTC)
	spec := func(change func(*gaugeSpec)) client.Object {
		g := &dial{ObjectMeta: metav1.ObjectMeta{Name: "g"}}
		change(&g.Spec)
		return g
	}
	const head = `"apiVersion":"test.espalier.dev/v1","kind":"Gauge","metadata":{"name":"g"}`
	for name, test := range map[string]struct {
		desired client.Object
		want    string
		err     string
	}{
		"nothing set": {desired: spec(func(*gaugeSpec) {}), want: `{` + head + `}`},
		"what the server says": {
			desired: &dial{
				ObjectMeta: metav1.ObjectMeta{
					Name: "g", Namespace: "n", ResourceVersion: "1", UID: "u", Generation: 2,
					CreationTimestamp: metav1.NewTime(requestTime), DeletionTimestamp: new(metav1.NewTime(requestTime)),
					DeletionGracePeriodSeconds: new(int64(1)), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
					Labels: map[string]string{"l": ""}, Finalizers: []string{},
				},
				Status: gaugeStatus{Seen: 1},
			},
			want: `{"apiVersion":"test.espalier.dev/v1","kind":"Gauge","metadata":{"name":"g","namespace":"n","labels":{"l":""},"finalizers":[]}}`,
		},
		"pointers to zero": {
			desired: spec(func(s *gaugeSpec) { s.Pointer, s.Limits = new(int), &gaugeLimits{} }),
			want:    `{` + head + `,"spec":{"pointer":0,"limits":{}}}`,
		},
		"empty, not nil": {
			desired: spec(func(s *gaugeSpec) {
				s.Words, s.Map, s.Bytes, s.List = []string{}, map[string]int{}, []byte{}, []gaugeLimits{}
			}),
			want: `{` + head + `,"spec":{"words":[],"map":{},"bytes":"","list":[]}}`,
		},
		"zeros in lists and maps": {
			desired: spec(func(s *gaugeSpec) {
				s.Words, s.Map = []string{"", "a"}, map[string]int{"a": 0}
				s.List = []gaugeLimits{{}, {High: 1}}
				s.Pointers = []*gaugeLimits{nil, {Low: 1}}
				s.Numbers = map[int]string{7: ""}
			}),
			want: `{` + head + `,"spec":{"words":["","a"],"map":{"a":0},"list":[{},{"high":1}],"pointers":[null,{"low":1}],"numbers":{"7":""}}}`,
		},
		"scalars": {
			desired: spec(func(s *gaugeSpec) {
				s.Count, s.Ratio, s.On, s.Name, s.Quoted, s.Big, s.Array, s.Odd = 1, 0.5, true, "n", 3, 4, [2]int{0, 1}, 2
				s.Untagged, s.Dashed, s.hidden = "u", "d", "h"
			}),
			want: `{` + head + `,"spec":{"count":1,"ratio":0.5,"on":true,"name":"n","quoted":"3","big":4,"array":[0,1],"odd":2,"Untagged":"u"}}`,
		},
		"embedded": {
			desired: spec(func(s *gaugeSpec) { s.Low, s.gaugeLimits.Name, s.gaugeExtra = 1, "inner", &gaugeExtra{Extra: "e"} }),
			// As in Go's JSON, an outer name hides an inner one.
			want: `{` + head + `,"spec":{"low":1,"extra":"e"}}`,
		},
		"types with a JSON of their own": {
			desired: spec(func(s *gaugeSpec) {
				s.Amount, s.Port, s.Time = resource.MustParse("1000m"), intstr.FromString("http"), metav1.NewTime(requestTime)
				s.Raw, s.Wait = runtime.RawExtension{Raw: []byte(`{"a":{"b":0}}`)}, metav1.Duration{Duration: 1e9}
				s.Any = map[string]any{"a": int32(1), "b": resource.MustParse("0")}
			}),
			want: `{` + head + `,"spec":{"amount":"1","port":"http","time":"2024-05-17T08:30:00Z","raw":{"a":{"b":0}},"wait":"1s","any":{"a":1,"b":"0"}}}`,
		},
		"null of its own": {desired: spec(func(s *gaugeSpec) { s.Raw.Raw = []byte("null") }), want: `{` + head + `}`},
		"holds itself": {
			desired: spec(func(s *gaugeSpec) { s.Loop = s }),
			err:     "nested too deeply: it has no form in JSON",
		},
		"a channel":  {desired: spec(func(s *gaugeSpec) { s.Bad = make(chan int) }), err: "spec: bad: json: unsupported type: chan int"},
		"no number":  {desired: spec(func(s *gaugeSpec) { s.Ratio = math.NaN() }), err: "spec: ratio: json: unsupported value: NaN"},
		"broken raw": {desired: spec(func(s *gaugeSpec) { s.Raw.Raw = []byte(`{`) }), err: "json: error calling MarshalJSON"},
		"a Deployment": {
			desired: &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "g"},
				Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name:           "main",
						Env:            []corev1.EnvVar{{Name: "EMPTY"}},
						ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}},
					}},
					Volumes:         []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
					SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(0))},
				}}},
			},
			want: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"g"},"spec":{"template":{"spec":{` +
				`"containers":[{"name":"main","env":[{"name":"EMPTY"}],"readinessProbe":{"httpGet":{"port":80}}}],` +
				`"volumes":[{"name":"v","emptyDir":{}}],"securityContext":{"runAsUser":0}}}}}`,
		},
		"unstructured": {
			desired: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"name": "g", "uid": "u", "selfLink": "s", "creationTimestamp": nil, "annotations": map[string]any{}},
				"spec":     map[string]any{"zero": int64(0), "off": false, "null": nil, "words": []any{}},
				"status":   map[string]any{"seen": int64(1)},
			}},
			want: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"g","annotations":{}},"spec":{"zero":0,"off":false,"null":null,"words":[]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.desired.DeepCopyObject()
			kind, err := apiutil.GVKForObject(test.desired, scheme)
			if err != nil {
				t.Fatal(err)
			}
			got, err := managedfields.FromObject(test.desired, kind)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("returned %v, want an error with %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := utiljson.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(managedfields.Configuration(want), got); diff != "" {
				t.Errorf("what is applied differs (-expected, +actual):\n%s", diff)
			}
			if u, ok := test.desired.(*unstructured.Unstructured); ok {
				if diff := cmp.Diff(before, runtime.Object(u)); diff != "" {
					t.Errorf("what is desired was changed (-was +is), want it unchanged:\n%s", diff)
				}
			}
		})
	}
}

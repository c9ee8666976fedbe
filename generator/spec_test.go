package generator_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/generator"
)

func TestSpecsWorkWhenNil(t *testing.T) {
	for _, spec := range []any{
		(*generator.PlacementSpec)(nil), (*generator.ClientSpec)(nil), (*generator.ImpersonationSpec)(nil), (*generator.SuspensionSpec)(nil),
		(*generator.RequeueSpec)(nil), (*generator.RetrySpec)(nil), (*generator.TimeoutSpec)(nil), (*generator.PolicySpec)(nil),
		(*generator.TypeSpec)(nil), (*generator.ReapplySpec)(nil),
	} {
		empty := reflect.New(reflect.TypeOf(spec).Elem())
		for _, v := range []reflect.Value{reflect.ValueOf(spec), empty} {
			called := 0
			for i := range v.NumMethod() {
				name := v.Type().Method(i).Name
				if strings.HasPrefix(name, "DeepCopy") {
					continue
				}
				called++
				if out := v.Method(i).Call(nil); !out[0].IsZero() {
					t.Errorf("%T.%s returns %v, want the zero value", spec, name, out[0])
				}
			}
			if called == 0 {
				t.Errorf("%T has no methods, want some", spec)
			}
		}
	}
}

func TestSecretKeyReferenceValue(t *testing.T) {
	for name, tc := range map[string]struct {
		reference *generator.SecretKeyReference
		keys      []string
		want, err string
	}{
		"key":               {&generator.SecretKeyReference{Name: "far", Key: "config"}, []string{"value", "config"}, "of config", ""},
		"key is not there":  {&generator.SecretKeyReference{Name: "far", Key: "config"}, []string{"value"}, "", `the Secret "far" has no key "config"`},
		"first fallback":    {&generator.SecretKeyReference{Name: "far"}, []string{"value.yml", "value.yaml", "value"}, "of value", ""},
		"second fallback":   {&generator.SecretKeyReference{Name: "far"}, []string{"value.yml", "value.yaml", "config"}, "of value.yaml", ""},
		"last fallback":     {&generator.SecretKeyReference{Name: "far"}, []string{"value.yml"}, "of value.yml", ""},
		"no fallback there": {&generator.SecretKeyReference{Name: "far"}, []string{"config"}, "", `the Secret "far" has none of the keys value, value.yaml, value.yml`},
		"no data":           {&generator.SecretKeyReference{Name: "far"}, nil, "", `the Secret "far" has none of the keys value, value.yaml, value.yml`},
		"no reference":      {nil, []string{"value"}, "", "there is no reference"},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for _, key := range tc.keys {
				data[key] = []byte("of " + key)
			}
			got, err := tc.reference.ValueIn(data)
			if string(got) != tc.want || errorText(err) != tc.err {
				t.Errorf("the value is %q and the error %v, want %q and %q", got, err, tc.want, tc.err)
			}
		})
	}
	if err := (*generator.SecretKeyReference)(nil).Validate(); err != nil {
		t.Errorf("no reference is not valid: %v", err)
	}
}

func TestDeepCopies(t *testing.T) {
	spec := gardenOf(t, `{"kubeConfig": {"secretRef": {"name": "far"}}, "requeueInterval": "1h", "additionalManagedTypes": [{"group": "a", "kind": "B"}]}`).Spec
	client, types, requeue := spec.ClientSpec.DeepCopy(), spec.TypeSpec.DeepCopy(), spec.RequeueSpec.DeepCopy()
	client.KubeConfig.SecretRef.Name, types.AdditionalManagedTypes[0].Kind, requeue.RequeueInterval.Duration = "x", "x", 0
	if spec.KubeConfig.SecretRef.Name != "far" || spec.AdditionalManagedTypes[0].Kind != "B" || spec.RequeueInterval.Duration == 0 {
		t.Error("a copy of a spec shares something with it, want nothing")
	}
}

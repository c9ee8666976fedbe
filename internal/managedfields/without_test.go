package managedfields_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/managedfields"

	"github.com/google/go-cmp/cmp"
)

func TestConfigurationWithout(t *testing.T) {
	const labels = `{metadata: {labels: {a.b: x, a: {b: y, c: z}}}}`
	const containers = `{c: [{name: a, image: "1"}, {name: 'b]=,"', image: "2", p: [{port: 80}, {port: 81, protocol: UDP, x: y}]}]}`
	for name, test := range map[string]struct {
		field, given, want string
	}{
		"a leaf":          {field: ".spec.replicas", given: `{spec: {replicas: 2, x: 1}}`, want: `{spec: {x: 1}}`},
		"an empty parent": {field: ".spec.sel.a", given: `{spec: {sel: {a: b}}, x: 1}`, want: `{x: 1}`},
		"a name of dots":  {field: ".metadata.labels.a.b", given: labels, want: `{metadata: {labels: {a.b: x, a: {c: z}}}}`},
		"another of dots": {field: ".metadata.labels.a.b", given: `{metadata: {labels: {a.b: x}}, x: 1}`, want: `{x: 1}`},
		"an item": {
			field: `.c[name="a"].image`, given: containers,
			want: `{c: [{name: a}, {name: 'b]=,"', image: "2", p: [{port: 80}, {port: 81, protocol: UDP, x: y}]}]}`,
		},
		"an odd name": {
			field: `.c[name="b]=,\""].image`, given: containers,
			want: `{c: [{name: a, image: "1"}, {name: 'b]=,"', p: [{port: 80}, {port: 81, protocol: UDP, x: y}]}]}`,
		},
		"two keys": {
			field: `.c[name="b]=,\""].p[port=81,protocol="UDP"].x`, given: containers,
			want: `{c: [{name: a, image: "1"}, {name: 'b]=,"', image: "2", p: [{port: 80}, {port: 81, protocol: UDP}]}]}`,
		},
		"a defaulted key": {
			field: `.c[name="b]=,\""].p[port=80,protocol="TCP"].port`, given: containers,
			want: `{c: [{name: a, image: "1"}, {name: 'b]=,"', image: "2", p: [{}, {port: 81, protocol: UDP, x: y}]}]}`,
		},
		"a whole list":     {field: `.set`, given: `{set: [x], x: 1}`, want: `{x: 1}`},
		"another name":     {field: ".spec.replica", given: `{spec: {replicas: 2}}`},
		"a longer name":    {field: ".spec.replicas.x", given: `{spec: {replicas: 2}}`},
		"an unknown key":   {field: `.c[x="y"].image`, given: containers},
		"another item":     {field: `.c[name="z"].image`, given: containers},
		"a broken key":     {field: `.c[name="a`, given: containers},
		"a key without":    {field: `.c[name]`, given: containers},
		"an unclosed key":  {field: `.c[port=80`, given: containers},
		"a set's member":   {field: `.set[="x"]`, given: `{set: [x]}`},
		"nothing":          {field: "", given: containers},
		"only a separator": {field: ".", given: containers},
	} {
		t.Run(name, func(t *testing.T) {
			given := fromYAML(t, test.given)
			got, ok := managedfields.Configuration(given).Without([]string{test.field})
			if ok != (test.want != "") {
				t.Fatalf("that something is found is %v, want %v", ok, !ok)
			}
			if diff := cmp.Diff(fromYAML(t, test.given), given); diff != "" {
				t.Errorf("what was given was changed (-was +is), want it unchanged:\n%s", diff)
			}
			if !ok {
				return
			}
			if diff := cmp.Diff(managedfields.Configuration(fromYAML(t, test.want)), got); diff != "" {
				t.Errorf("what is left differs (-expected, +actual):\n%s", diff)
			}
		})
	}
}

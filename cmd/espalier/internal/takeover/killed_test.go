package takeover_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/takeover"
)

// differs is what differs from component to component: times, and digests of manifests with a namespace.
var differs = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|[0-9a-f]{64}`)

// state returns all that there is of a component, in a form in which two components that are in the same state are
// equal: without times, UIDs and resource versions.
func (o *oldComponent) state(t *testing.T, c client.Client) string {
	t.Helper()
	live := &unstructured.Unstructured{}
	kind, err := c.GroupVersionKindFor(o.Assembly)
	if err != nil {
		t.Fatal(err)
	}
	live.SetGroupVersionKind(kind)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o.Assembly), live); err != nil {
		t.Fatal(err)
	}
	all := append([]*unstructured.Unstructured{live}, o.live(t, c)...)
	names := []string{o.Namespace, "NAMESPACE", o.hash, "OLDHASH"}
	for i, object := range all {
		names = append(names, string(object.GetUID()), fmt.Sprintf("UID-%d", i))
		entries := object.GetManagedFields()
		slices.SortFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
			return cmp.Compare(a.Manager+string(a.Operation)+a.Subresource, b.Manager+string(b.Operation)+b.Subresource)
		})
		object.SetManagedFields(entries)
		if hash := object.GetLabels()[newPrefix+"/owner-id"]; hash != "" {
			names = append(names, hash, "NEWHASH")
		}
		object.SetResourceVersion("")
		object.SetGeneration(0) // that of a Deployment counts changes of annotations
		if annotations := object.GetAnnotations(); annotations[takeover.Annotation] != "" {
			// What it says is tested by the rollback.
			annotations[takeover.Annotation] = "STATE"
			object.SetAnnotations(annotations)
		}
	}
	content, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return differs.ReplaceAllLiteralString(strings.NewReplacer(names...).Replace(string(content)), "…")
}

// TestKilledAtEachWrite kills the command at each of its writes, once before the write is done and once after. The next
// run finishes what the first one began.
func TestKilledAtEachWrite(t *testing.T) {
	for what, tc := range map[string]struct{ before, args []string }{
		"hand over": {nil, []string{}},
		"rollback":  {[]string{}, []string{"--rollback"}},
		"finalize":  {[]string{}, []string{"--finalize"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			begin := func() (*oldComponent, *door) {
				t.Helper()
				o, d := deploy(t, c), newDoor(t, plane.Config(t))
				if tc.before != nil {
					if out, err := d.run(t, o.Namespace, tc.before...); err != nil {
						t.Fatalf("the components are not handed over: %v\n%s", err, out)
					}
				}
				d.writes = 0
				return o, d
			}
			o, d := begin()
			if out, err := d.run(t, o.Namespace, tc.args...); err != nil {
				t.Fatalf("undisturbed, it fails: %v\n%s", err, out)
			}
			want, writes := o.state(t, c), d.writes
			if writes < 7 {
				t.Errorf("it makes %d writes, want at least one for each object and the component", writes)
			}
			for n := range writes {
				for _, after := range []bool{false, true} {
					o, d := begin()
					uids := o.uids(t, c)
					where := fmt.Sprintf("killed at write %d of %d, after it: %v", n+1, writes, after)
					d.killAt, d.after = n+1, after
					if out, err := d.run(t, o.Namespace, tc.args...); err == nil {
						t.Errorf("%s: the command succeeds, want an error; it prints %s", where, out)
					}
					d.killAt, d.dead = 0, false
					if out, err := d.run(t, o.Namespace, tc.args...); err != nil {
						t.Fatalf("%s: the next run fails: %v\n%s", where, err, out)
					}
					if diff := gocmp.Diff(want, o.state(t, c)); diff != "" {
						t.Fatalf("%s: the state is another than undisturbed (-undisturbed, +killed):\n%s", where, diff)
					}
					if after := o.uids(t, c); !maps.Equal(uids, after) {
						t.Errorf("%s: the objects are %v, want those that there were, %v", where, after, uids)
					}
				}
			}
		})
	}
}

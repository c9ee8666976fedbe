package observe_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/testing/fake"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// direct is an observer on an API server in memory.
type direct struct {
	*observe.Direct
	t         *testing.T
	client    client.Client
	component observe.Component
	reads     []string
	// faults are errors by request.
	faults map[string]error
}

func newDirect(t *testing.T, objects ...*unstructured.Unstructured) *direct {
	t.Helper()
	d := &direct{t: t, faults: map[string]error{}}
	d.component = observe.Component{
		Watcher: types.NamespacedName{Namespace: "default", Name: "shop"}, UID: "uid-1",
		OwnerID: ourID, Owner: ourOwner, Now: epoch,
	}
	// The mapper knows no other version of a type.
	builder := fake.NewClientBuilder().WithRESTMapper(meta.NewDefaultRESTMapper(nil)).WithReturnManagedFields()
	for _, object := range objects {
		object.SetResourceVersion("")
		builder = builder.WithObjects(object)
	}
	c := builder.Build()
	d.client = interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			return d.read(fmt.Sprintf("get %s %s", object.GetObjectKind().GroupVersionKind().Kind, key.Name), func() error {
				return c.Get(ctx, key, object, opts...)
			})
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			options := (&client.ListOptions{}).ApplyOptions(opts)
			return d.read(fmt.Sprintf("list %s %s", list.GetObjectKind().GroupVersionKind().Kind, options.Namespace), func() error {
				return c.List(ctx, list, opts...)
			})
		},
	})
	d.Direct = observe.NewDirect(d.client, prefix, manager, evaluate)
	return d
}

func (d *direct) read(request string, do func() error) error {
	d.reads = append(d.reads, request)
	if err := d.faults[request]; err != nil {
		return err
	}
	return do()
}

func (d *direct) observe(reads []string, interests ...observe.Interest) *observe.Observation {
	d.t.Helper()
	d.reads = nil
	got, err := d.Observe(d.t.Context(), d.component, interests)
	if err != nil {
		d.t.Fatal(err)
	}
	if diff := cmp.Diff(reads, d.reads); diff != "" {
		d.t.Errorf("the requests differ (-want +got): %s", diff)
	}
	return got
}

func TestDirectReads(t *testing.T) {
	a, lost, deploy := object(configMaps, "a", "1", ""), object(configMaps, "lost", "2", "", unlabelled), object(deployments, "d", "3", "", ready)
	delete(deploy.Object, "status")
	d := newDirect(t, a, lost, deploy)
	interests := []observe.Interest{
		interest(configMaps, "a"), interest(deployments, "d", wanting), interest(configMaps, "lost", recorded("2"), fresh),
		interest(configMaps, "new", fresh), interest(configMaps, "gone"),
	}
	got := d.observe([]string{"list ConfigMapList default", "list DeploymentList default", "get ConfigMap lost", "get ConfigMap gone"}, interests...)
	check := func(name string, i int, want plan.Observed) {
		t.Helper()
		o := got.Objects[interests[i].Key]
		if want.Presence == plan.Present {
			if o.Fields == "" {
				t.Errorf("%s: the object has no fields, want some", name)
			}
			o.Fields = ""
		}
		if diff := cmp.Diff(want, o); diff != "" {
			t.Errorf("%s: the object differs (-want +got): %s", name, diff)
		}
	}
	present := plan.Observed{Presence: plan.Present, UID: "1", ResourceVersion: "5", Generation: 1, Ownership: plan.Ours, Digest: "d1"}
	check("ours", 0, present)
	present.UID, present.ResourceVersion = "3", "7"
	present.Status, present.Message = apis.ObjectInProgress, "it is not ready"
	check("a deployment", 1, present)
	check("without label", 2, plan.Observed{Presence: plan.Present, UID: "2", ResourceVersion: "6", Generation: 1, Ownership: plan.Unlabelled,
		Claim: "was written by us", Digest: "d1"})
	check("new", 3, plan.Observed{Presence: plan.Absent})
	check("gone", 4, plan.Observed{Presence: plan.Absent})

	if entries := d.Managed(d.component, interests[0].Key); len(entries) != 1 || entries[0].Manager != manager || entries[0].FieldsV1 == nil {
		t.Errorf("the managed fields are %v, want one entry of %s", entries, manager)
	}
	d.Deleted(d.component, interests[0].Key, "other", true)
	if d.Managed(d.component, interests[0].Key) == nil {
		t.Error("the object was forgotten because another one went, want it known")
	}
	d.Deleted(d.component, interests[0].Key, "1", true)
	if d.Managed(d.component, interests[0].Key) != nil {
		t.Errorf("the managed fields of a deleted object are %v, want none", d.Managed(d.component, interests[0].Key))
	}
	wrote := d.Wrote(d.component, interests[0], object(configMaps, "a", "1", "2"))
	if wrote.Presence != plan.Present || d.Managed(d.component, interests[0].Key) == nil {
		t.Errorf("the written object shows %+v, want it present and its managed fields known", wrote)
	}
	d.Pause(d.component)()
	d.Release(d.component)
	if d.Managed(d.component, interests[0].Key) != nil {
		t.Errorf("the managed fields after the release are %v, want none", d.Managed(d.component, interests[0].Key))
	}
	if got := d.Wrote(d.component, interests[0], nil); got != (plan.Observed{}) {
		t.Errorf("no object shows %+v, want nothing", got)
	}
}

func TestDirectComparesSecrets(t *testing.T) {
	secrets := schema.GroupKind{Kind: "Secret"}
	enc := base64.StdEncoding.EncodeToString([]byte("geheim"))
	d := newDirect(t, object(secrets, "s", "1", "", func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"p": enc} }))
	in := interest(secrets, "s", func(in *observe.Interest) {
		in.Confidential, in.Data = true, observe.FingerprintsOf(map[string]string{"p": enc})
	})
	if got := d.observe([]string{"list SecretList default"}, in).Objects[in.Key]; got.Content != plan.ContentSame {
		t.Errorf("the Secret shows %+v, want the same content", got)
	}
	in.Data = observe.FingerprintsOf(map[string]string{"p": "eHh4"})
	if got := d.observe([]string{"list SecretList default"}, in).Objects[in.Key]; got.Content != plan.ContentDifferent {
		t.Errorf("the Secret shows %+v, want different content", got)
	}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(secrets.WithVersion("v1"))
	if err := d.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "s"}, stored); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedString(stored.Object, "data", "p"); got != enc {
		t.Errorf("the Secret was changed to %q, want %q", got, enc)
	}
}

func TestDirectFailures(t *testing.T) {
	const list, get = "list ConfigMapList default", "get ConfigMap a"
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	unauthorized := apierrors.NewUnauthorized("no")
	unserved := apierrors.NewGenericServerResponse(404, "list", schema.GroupResource{}, "", "404 page not found", 0, true)
	missing := plan.Observed{Presence: plan.Absent, TypeMissing: true}
	for name, test := range map[string]struct {
		faults map[string]error
		reads  []string
		want   plan.Observed
		polled string
		err    string
	}{
		"may not list":         {map[string]error{list: forbidden}, []string{list, get}, plan.Observed{Presence: plan.Present}, "", ""},
		"may do nothing":       {map[string]error{list: forbidden, get: forbidden}, []string{list, get}, plan.Observed{Refused: true}, "may not be read: forbidden", ""},
		"is nobody":            {map[string]error{list: unauthorized, get: unauthorized}, []string{list, get}, plan.Observed{Refused: true}, "cannot be read: the API server rejects the credentials", ""},
		"no such kind":         {map[string]error{list: &meta.NoKindMatchError{}}, []string{list}, missing, "", ""},
		"no such resource":     {map[string]error{list: unserved}, []string{list}, missing, "", ""},
		"gone in between":      {map[string]error{list: forbidden, get: unserved}, []string{list, get}, missing, "", ""},
		"not discovered":       {map[string]error{list: &meta.NoResourceMatchError{}}, []string{list}, plan.Observed{}, "", "cannot list objects of kind ConfigMap: "},
		"list fails":           {map[string]error{list: errors.New("boom")}, []string{list}, plan.Observed{}, "", "cannot list objects of kind ConfigMap: boom"},
		"read by name fails":   {map[string]error{list: forbidden, get: errors.New("boom")}, []string{list, get}, plan.Observed{}, "", "cannot read ConfigMap default/a: boom"},
		"the API does not run": {map[string]error{list: apierrors.NewServiceUnavailable("down")}, []string{list}, plan.Observed{}, "", "cannot list objects of kind ConfigMap: down"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDirect(t, object(configMaps, "a", "1", ""))
			d.faults = test.faults
			in := interest(configMaps, "a")
			got, err := d.Observe(t.Context(), d.component, []observe.Interest{in})
			if diff := cmp.Diff(test.reads, d.reads); diff != "" {
				t.Errorf("the requests differ (-want +got): %s", diff)
			}
			if test.err != "" {
				if err == nil || len(err.Error()) < len(test.err) || err.Error()[:len(test.err)] != test.err {
					t.Errorf("got the error %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			o := got.Objects[in.Key]
			if o.Presence != test.want.Presence || o.Refused != test.want.Refused ||
				o.TypeMissing != test.want.TypeMissing || got.Polled[configMaps] != test.polled {
				t.Errorf("the object shows %+v and the polled types are %v, want %+v and %q", o, got.Polled, test.want,
					test.polled)
			}
		})
	}
}

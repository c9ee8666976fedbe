package registrytest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	storagev1 "k8s.io/api/storage/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Request creates an object, or creates and changes it.
type Request struct {
	Name string `json:"name"`
	// Base names the object, which the merge patch With changes before it is created.
	Base string          `json:"base"`
	With json.RawMessage `json:"with"`
	// Change is a merge patch of the object that was created, whose status was set to Status. Nil for a request that
	// creates an object.
	Change json.RawMessage `json:"change"`
	Status json.RawMessage `json:"status"`

	// Object is to be created.
	Object []byte `json:"-"`
}

// prefix is that of the names of objects that are in no namespace.
const prefix = "registry-"

// Title names the request among all.
func (r *Request) Title() string { return r.Base + ": " + r.Name }

// Requests returns the requests, in another namespace than "ns". Objects that are in none have its name as a prefix.
func Requests(t testing.TB, namespace string) []Request {
	t.Helper()
	var file struct {
		Bases map[string]json.RawMessage `json:"bases"`
		Cases []Request                  `json:"cases"`
	}
	data := move(read(t, "testdata/refused.yaml"), namespace)
	data = bytes.ReplaceAll(data, []byte(prefix), []byte(namespace+"-"))
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		t.Fatal(err)
	}
	for i := range file.Cases {
		r := &file.Cases[i]
		r.Object = file.Bases[r.Base]
		if r.With != nil {
			r.Object = Merge(t, r.Object, r.With)
		}
	}
	return file.Cases
}

// Merge applies a merge patch.
func Merge(t testing.TB, doc, patch []byte) []byte {
	t.Helper()
	merged, err := jsonpatch.MergePatch(doc, patch)
	if err != nil {
		t.Fatalf("the merge ends with %v, want no error: %s and %s", err, doc, patch)
	}
	return merged
}

// Outcome is what became of a request.
type Outcome struct {
	// Errors are listed by type and field.
	Errors []string `json:"errors,omitempty"`
	// Object is what an update that was not refused made of the object.
	Object string `json:"object,omitempty"`
}

func (o Outcome) String() string { return strings.Join(append(slices.Clone(o.Errors), o.Object), "\n") }

// Outcomes returns what became of the requests on a real API server, by their titles.
func Outcomes(t testing.TB) map[string]Outcome {
	t.Helper()
	return decodeYAML[map[string]Outcome](t, OutcomesFile)
}

// Send makes the requests to an API server, and returns what became of them by their titles.
func Send(t testing.TB, c client.Client, namespace string) map[string]Outcome {
	t.Helper()
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-x"}, Provisioner: "a/b",
		AllowVolumeExpansion: ptr.To(true)}
	if err := c.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]Outcome{}
	for i, request := range Requests(t, namespace) {
		outcomes[request.Title()] = request.send(t, c, namespace, i)
	}
	return outcomes
}

// send makes the request. The number makes the name of an object that is stored unique.
func (r *Request) send(t testing.TB, server client.Client, namespace string, number int) Outcome {
	t.Helper()
	obj := Decode(t, r.Object)
	kind := obj.GetObjectKind().GroupVersionKind()
	if r.Change == nil {
		return Outcome{Errors: r.causes(t, server.Create(t.Context(), obj, client.DryRunAll))}
	}
	name := obj.GetName()
	obj.SetName(fmt.Sprintf("%s-%d", name, number))
	if err := server.Create(t.Context(), obj); err != nil {
		t.Errorf("%s: %v", r.Title(), err)
		return Outcome{}
	}
	if r.Status != nil {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":%s}`, r.Status))
		if err := server.Status().Patch(t.Context(), obj, patch); err != nil {
			t.Errorf("%s: %v", r.Title(), err)
			return Outcome{}
		}
	}
	patch := client.RawPatch(types.MergePatchType, r.Change)
	if errs := r.causes(t, server.Patch(t.Context(), obj, patch, client.DryRunAll)); len(errs) > 0 {
		return Outcome{Errors: errs}
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	text := strings.ReplaceAll(Masked(t, obj, namespace), obj.GetName(), name)
	return Outcome{Object: strings.ReplaceAll(text, namespace, Namespace)}
}

// causes lists the causes of an error.
func (r *Request) causes(t testing.TB, err error) []string {
	t.Helper()
	var status *apierrs.StatusError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &status) || status.ErrStatus.Details == nil || !apierrs.IsInvalid(err):
		t.Errorf("%s: the error is %v, want an invalid object with details", r.Title(), err)
		return nil
	}
	var list []string
	for _, cause := range status.ErrStatus.Details.Causes {
		list = append(list, ErrorOf(string(cause.Type), cause.Field))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ErrorOf names an error. API servers of different versions call those of owner references differently.
func ErrorOf(kind, field string) string {
	if rest, ok := strings.CutPrefix(field, "metadata.ownerReferences"); ok {
		kind, field = "Invalid", "metadata.ownerReferences"+strings.TrimPrefix(rest, "[0]")
	}
	return strings.TrimPrefix(kind, "FieldValue") + " " + field
}

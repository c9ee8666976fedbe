package registry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	storagev1 "k8s.io/api/storage/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// refusedCase is a request of testdata/refused.yaml.
type refusedCase struct {
	Name   string          `json:"name"`
	Base   string          `json:"base"`
	With   json.RawMessage `json:"with"`
	Change json.RawMessage `json:"change"`
	Status json.RawMessage `json:"status"`

	object []byte
}

func (c *refusedCase) title() string { return c.Base + ": " + c.Name }

// refusedCases returns the requests, in another namespace. Objects that are in none have its name as a prefix.
func refusedCases(t testing.TB, namespace string) []refusedCase {
	t.Helper()
	data, err := os.ReadFile("testdata/refused.yaml")
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.ReplaceAll(data, []byte("namespace: "+sampleNamespace), []byte("namespace: "+namespace))
	data = bytes.ReplaceAll(data, []byte("registry-"), []byte(namespace+"-"))
	var file struct {
		Bases map[string]json.RawMessage `json:"bases"`
		Cases []refusedCase              `json:"cases"`
	}
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		t.Fatal(err)
	}
	for i := range file.Cases {
		c := &file.Cases[i]
		c.object = file.Bases[c.Base]
		if c.With != nil {
			c.object = merge(t, c.object, c.With)
		}
	}
	return file.Cases
}

func merge(t testing.TB, doc, patch []byte) []byte {
	t.Helper()
	merged, err := jsonpatch.MergePatch(doc, patch)
	if err != nil {
		t.Fatalf("%v: %s and %s", err, doc, patch)
	}
	return merged
}

const refusedWants = "testdata/refused.want.yaml"

// outcome is what became of a request.
type outcome struct {
	// Errors are listed by type and field.
	Errors []string `json:"errors,omitempty"`
	// Object is what an update that was not refused made of the object.
	Object string `json:"object,omitempty"`
}

func (o outcome) String() string { return strings.Join(append(slices.Clone(o.Errors), o.Object), "\n") }

// readOutcomes returns what an API server made of each case.
func readOutcomes(t testing.TB) map[string]outcome {
	t.Helper()
	data, err := os.ReadFile(refusedWants)
	if err != nil {
		t.Fatal(err)
	}
	var wants map[string]outcome
	if err := yaml.UnmarshalStrict(data, &wants); err != nil {
		t.Fatal(err)
	}
	return wants
}

// TestRefused compares what strategies make of requests with what an API server made of them.
func TestRefused(t *testing.T) {
	t.Parallel()
	wants := readOutcomes(t)
	for _, c := range refusedCases(t, sampleNamespace) {
		t.Run(c.title(), func(t *testing.T) {
			t.Parallel()
			want, ok := wants[c.title()]
			if !ok {
				t.Fatalf("%s does not have the case; run the tests with -update", refusedWants)
			}
			if got := c.onStrategy(t); got.String() != want.String() {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func (c *refusedCase) onStrategy(t *testing.T) outcome {
	obj := decode(t, c.object)
	_, s := builtIn(t, obj)
	obj.SetUID(sampleUID)
	s.PrepareForCreate(obj)
	errs := s.Validate(obj)
	if c.Change == nil || len(errs) > 0 {
		return outcome{Errors: refusals(errs)}
	}
	obj.SetResourceVersion("1")
	if c.Status != nil {
		old := obj
		obj = decode(t, merge(t, asJSON(t, obj), fmt.Appendf(nil, `{"status":%s}`, c.Status)))
		s.PrepareForUpdate(obj, old, "status")
		if errs := s.ValidateUpdate(obj, old, "status"); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
	}
	old := obj
	obj = decode(t, merge(t, asJSON(t, obj), c.Change))
	s.PrepareForUpdate(obj, old, "")
	if errs := s.ValidateUpdate(obj, old, ""); len(errs) > 0 {
		return outcome{Errors: refusals(errs)}
	}
	return outcome{Object: masked(t, obj, sampleNamespace)}
}

func asJSON(t *testing.T, obj client.Object) []byte {
	t.Helper()
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// refusals lists errors by type and field.
func refusals(errs field.ErrorList) []string {
	var list []string
	for _, err := range errs {
		list = append(list, errorOf(string(err.Type), err.Field))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// errorOf names an error. API servers of different versions call those of owner references differently.
func errorOf(kind, field string) string {
	if rest, ok := strings.CutPrefix(field, "metadata.ownerReferences"); ok {
		kind, field = "Invalid", "metadata.ownerReferences"+strings.TrimPrefix(rest, "[0]")
	}
	return strings.TrimPrefix(kind, "FieldValue") + " " + field
}

// TestRefusedOnServer makes the requests to an API server.
func TestRefusedOnServer(t *testing.T) {
	t.Parallel()
	c := serverClient(t)
	namespace := plane.Namespace(t)
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-x"}, Provisioner: "a/b",
		AllowVolumeExpansion: ptr.To(true)}
	if err := c.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	got := map[string]outcome{}
	for i, request := range refusedCases(t, namespace) {
		got[request.title()] = request.onServer(t, c, namespace, i)
	}
	if *update {
		if err := os.WriteFile(filepath.FromSlash(refusedWants), []byte(asYAML(t, got)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for title, want := range readOutcomes(t) {
		if got := got[title]; got.String() != want.String() {
			t.Errorf("%s: the API server says\n%s\nand not\n%s", title, got, want)
		}
	}
}

// onServer makes the request. The number makes the name of an object that is stored unique.
func (c *refusedCase) onServer(t *testing.T, server client.Client, namespace string, number int) outcome {
	obj := decode(t, c.object)
	kind := obj.GetObjectKind().GroupVersionKind()
	if c.Change == nil {
		return outcome{Errors: causes(t, c.title(), server.Create(t.Context(), obj, client.DryRunAll))}
	}
	name := obj.GetName()
	obj.SetName(fmt.Sprintf("%s-%d", name, number))
	if err := server.Create(t.Context(), obj); err != nil {
		t.Fatalf("%s: %v", c.title(), err)
	}
	if c.Status != nil {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":%s}`, c.Status))
		if err := server.Status().Patch(t.Context(), obj, patch); err != nil {
			t.Fatalf("%s: %v", c.title(), err)
		}
	}
	patch := client.RawPatch(types.MergePatchType, c.Change)
	if errs := causes(t, c.title(), server.Patch(t.Context(), obj, patch, client.DryRunAll)); len(errs) > 0 {
		return outcome{Errors: errs}
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	text := masked(t, obj, namespace)
	text = strings.ReplaceAll(text, obj.GetName(), name)
	return outcome{Object: strings.ReplaceAll(text, namespace, sampleNamespace)}
}

// causes lists the causes of an error.
func causes(t *testing.T, title string, err error) []string {
	var status *apierrs.StatusError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &status) || status.ErrStatus.Details == nil || !apierrs.IsInvalid(err):
		t.Errorf("%s: %v", title, err)
		return nil
	}
	var list []string
	for _, cause := range status.ErrStatus.Details.Causes {
		list = append(list, errorOf(string(cause.Type), cause.Field))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

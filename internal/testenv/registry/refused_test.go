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

// readRefusals returns what an API server said to each case.
func readRefusals(t testing.TB) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(refusedWants)
	if err != nil {
		t.Fatal(err)
	}
	var wants map[string][]string
	if err := yaml.UnmarshalStrict(data, &wants); err != nil {
		t.Fatal(err)
	}
	return wants
}

// TestRefused compares what strategies say to requests with what an API server said.
func TestRefused(t *testing.T) {
	t.Parallel()
	wants := readRefusals(t)
	for _, c := range refusedCases(t, sampleNamespace) {
		t.Run(c.title(), func(t *testing.T) {
			t.Parallel()
			want, ok := wants[c.title()]
			if !ok {
				t.Fatalf("%s does not have the case; run the tests with -update", refusedWants)
			}
			if got := c.onStrategy(t); !slices.Equal(got, want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
			}
		})
	}
}

func (c *refusedCase) onStrategy(t *testing.T) []string {
	obj := decode(t, c.object)
	_, s := builtIn(t, obj)
	obj.SetUID(sampleUID)
	s.PrepareForCreate(obj)
	errs := s.Validate(obj)
	if c.Change == nil || len(errs) > 0 {
		return refusals(errs)
	}
	obj.SetResourceVersion("1")
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	if c.Status != nil {
		text = merge(t, text, fmt.Appendf(nil, `{"status":%s}`, c.Status))
		old := obj
		obj = decode(t, text)
		s.PrepareForUpdate(obj, old, "status")
		if errs := s.ValidateUpdate(obj, old, "status"); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
	}
	old := obj
	obj = decode(t, merge(t, text, c.Change))
	s.PrepareForUpdate(obj, old, "")
	return refusals(s.ValidateUpdate(obj, old, ""))
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
	got := map[string][]string{}
	for i, request := range refusedCases(t, namespace) {
		got[request.title()] = request.onServer(t, c, fmt.Sprintf("%d", i))
	}
	if *update {
		text, err := yaml.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.FromSlash(refusedWants), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for title, want := range readRefusals(t) {
		if !slices.Equal(got[title], want) {
			t.Errorf("%s: the API server says\n\t%s\nand not\n\t%s", title, strings.Join(got[title], "\n\t"),
				strings.Join(want, "\n\t"))
		}
	}
}

// onServer makes the request. The suffix makes the name of an object that is stored unique.
func (c *refusedCase) onServer(t *testing.T, server client.Client, suffix string) []string {
	obj := decode(t, c.object)
	if c.Change == nil {
		return causes(t, c.title(), server.Create(t.Context(), obj, client.DryRunAll))
	}
	obj.SetName(obj.GetName() + suffix)
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
	return causes(t, c.title(), server.Patch(t.Context(), obj, patch, client.DryRunAll))
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

package observe

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A fence shows, is news to the component, and is not taken from an annotation that was copied from another object.
func TestFencedShows(t *testing.T) {
	l := newExtractor("platform.example.com", "platform.example.com")
	fencedBy := func(note string) *snapshot {
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
		if note != "" {
			object.Annotations = map[string]string{"platform.example.com/fence": note}
		}
		return l.snapshot(object)
	}
	open := fencedBy("")
	for note, want := range map[string]bool{
		"": false, "fenced/u/": true, "proven/u/3": true, "unproven/u/forbidden": false, "proven/another/3": false, "proven": false, "x/u/": false,
	} {
		shown := fencedBy(note)
		if got := shown.observed(&Component{}).Fenced; got != want {
			t.Errorf("%q: fenced is %v, want %v", note, got, want)
		}
		if news := !shown.alike(open); news != want {
			t.Errorf("%q: that it is news is %v, want %v", note, news, want)
		}
	}
}

// What others own, and what anyone owns of a subresource, does not count.
func TestFieldsOfOthersDoNotCount(t *testing.T) {
	const own, other = `{"f:data":{"f:a":{}}}`, `{"f:data":{"f:b":{}}}`
	entry := func(manager, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, Subresource: subresource,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	digestOf := func(entries ...metav1.ManagedFieldsEntry) string {
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: entries}}
		return newExtractor("platform.example.com", "us").snapshot(object).fieldsDigest(nil)
	}
	want := digestOf(entry("us", "", own))
	if got := digestOf(entry("them", "", other), entry("us", "status", other), entry("us", "", own)); got != want || got == "" {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := digestOf(entry("them", "", own)), digestOf(entry("us", "", `{}`)); got != want || got == "" {
		t.Errorf("with no field of ours: got %q, want %q", got, want)
	}
	if got := digestOf(); got != "" {
		t.Errorf("the digest without managed fields is %q, want none", got)
	}
}

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
			t.Errorf("%q: fenced is %v", note, got)
		}
		if news := !shown.alike(open); news != want {
			t.Errorf("%q: that it is news is %v", note, news)
		}
	}
}

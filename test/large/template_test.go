package large_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// number stands for the number of a resource, in its name and in the UIDs of its objects.
	number = "87654321"
	// team stands for the number of its namespace, which each team of resources has in common.
	team = "909090"
	// teamSize is how many resources are in one namespace.
	teamSize = 100
	// version is the resource version of everything.
	version = "1000"
)

// template makes the objects of one type. Objects of two resources differ in numbers alone.
type template struct {
	// kind and apiVersion are of the object, prefix is before the namespace in the path of its type, and plural after.
	kind, apiVersion, prefix, plural string
	json, metadata                   form
	// proto is the object, without its type, and event the frame of a watch that says that it was added. They are
	// empty for a type of a CustomResourceDefinition, which an API server does not give in this encoding.
	proto, event form
	// ends says that a watch has given what was there, as JSON and as a frame in protobuf.
	ends, endsFrame []byte
}

// form is one encoding of an object.
type form struct {
	text           []byte
	numbers, teams []int
}

func formOf(text []byte) form {
	return form{text: text, numbers: occurrences(text, number), teams: occurrences(text, team)}
}

func occurrences(text []byte, of string) (at []int) {
	for from := 0; ; {
		i := bytes.Index(text[from:], []byte(of))
		if i < 0 {
			return at
		}
		at = append(at, from+i)
		from += i + len(of)
	}
}

// write appends the object of resource i to a buffer.
func (f form) write(buffer []byte, i int) []byte {
	begin := len(buffer)
	buffer = append(buffer, f.text...)
	for _, at := range f.numbers {
		digits(buffer[begin+at:][:len(number)], i)
	}
	for _, at := range f.teams {
		digits(buffer[begin+at:][:len(team)], i/teamSize)
	}
	return buffer
}

// digits writes a number with zeros before it.
func digits(into []byte, n int) {
	for i := len(into) - 1; i >= 0; i-- {
		into[i] = byte('0' + n%10)
		n /= 10
	}
}

// templateOf makes a template of an object that an API server has. uids maps UIDs to those with number.
func templateOf(t testing.TB, c client.Client, obj client.Object, uids map[string]string) template {
	t.Helper()
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		t.Fatal(err)
	}
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Fatal(err)
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	obj.SetResourceVersion(version)
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range uids {
		text = bytes.ReplaceAll(text, []byte(from), []byte(to))
	}
	if err := json.Unmarshal(text, obj); err != nil {
		t.Fatal(err)
	}
	metadata := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(text, metadata); err != nil {
		t.Fatal(err)
	}
	metadata.TypeMeta = metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"}
	only, err := json.Marshal(metadata)
	if err != nil {
		t.Fatal(err)
	}
	prefix := "/api/" + gvk.Version
	if gvk.Group != "" {
		prefix = "/apis/" + gvk.GroupVersion().String()
	}
	made := template{
		kind: gvk.Kind, apiVersion: gvk.GroupVersion().String(), prefix: prefix, plural: mapping.Resource.Resource,
		json: formOf(text), metadata: formOf(only),
	}
	last := end(t, c.Scheme(), gvk)
	if made.ends, err = json.Marshal(last); err != nil {
		t.Fatal(err)
	}
	if message, ok := obj.(interface{ Marshal() ([]byte, error) }); ok {
		bare, err := message.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		made.proto, made.event = formOf(bare), formOf(frame(t, c.Scheme(), watch.Added, obj))
		made.endsFrame = frame(t, c.Scheme(), watch.Bookmark, last)
	}
	return made
}

// end returns an object that ends the initial events of a watch.
func end(t testing.TB, scheme *runtime.Scheme, gvk schema.GroupVersionKind) client.Object {
	t.Helper()
	made, err := scheme.New(gvk)
	if err != nil {
		t.Fatal(err)
	}
	obj := made.(client.Object)
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	obj.SetResourceVersion(version)
	obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return obj
}

// frame returns an event of a watch in protobuf.
func frame(t testing.TB, scheme *runtime.Scheme, kind watch.EventType, obj client.Object) []byte {
	t.Helper()
	var encoded bytes.Buffer
	if err := protobuf.NewSerializer(scheme, scheme).Encode(obj, &encoded); err != nil {
		t.Fatal(err)
	}
	event := metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: encoded.Bytes()}}
	text, err := event.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

// uidOf returns the UID of the object of a template, with number in it.
func uidOf(i int) string {
	return fmt.Sprintf("%s-0000-4000-8000-%012d", number, i+1)
}

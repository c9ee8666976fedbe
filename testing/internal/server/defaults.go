package server

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// defaulter sets the defaults of built-in kinds in what a client sends. A strategy sets them, too, but later: field
// managers and webhooks have to see them.
type defaulter struct{}

var _ runtime.ObjectDefaulter = defaulter{}

// kindsByType finds kinds by the Go type of their objects.
var kindsByType = sync.OnceValue(func() map[reflect.Type]kind {
	types := map[reflect.Type]kind{}
	for _, k := range kinds() {
		types[reflect.TypeOf(k.object())] = k
	}
	return types
})

// Default implements [runtime.ObjectDefaulter]. The strategy completes a copy, of which those parts are taken that are
// defaults: neither the status, nor what a server fills in when it stores the object.
func (defaulter) Default(in runtime.Object) {
	k, ok := kindsByType()[reflect.TypeOf(in)]
	if !ok {
		return
	}
	sent := in.(client.Object)
	completed := in.DeepCopyObject().(client.Object)
	k.versions[0].PrepareForCreate(completed)
	completed.SetGeneration(sent.GetGeneration())
	if status := reflect.ValueOf(completed).Elem().FieldByName("Status"); status.IsValid() {
		status.Set(reflect.ValueOf(sent).Elem().FieldByName("Status"))
	}
	if restore := registry.FilledIn(k.Kind); restore != nil {
		restore(completed, sent)
	}
	if k.Kind == (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		// The strategy gives a Job without labels those of its template, together with those that it fills in there.
		completed.SetLabels(sent.GetLabels())
	}
	reflect.ValueOf(sent).Elem().Set(reflect.ValueOf(completed).Elem())
}

// defaultingSerializer sets the defaults of what it decodes.
type defaultingSerializer struct{ runtime.NegotiatedSerializer }

// DecoderToVersion implements [runtime.NegotiatedSerializer].
func (s defaultingSerializer) DecoderToVersion(d runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return defaultingDecoder{s.NegotiatedSerializer.DecoderToVersion(d, version)}
}

type defaultingDecoder struct{ runtime.Decoder }

// Decode implements [runtime.Decoder]. It may return an object together with an error.
func (d defaultingDecoder) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := d.Decoder.Decode(data, defaults, into)
	if obj != nil {
		defaulter{}.Default(obj)
	}
	return obj, gvk, err
}

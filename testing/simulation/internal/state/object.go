package state

import (
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/internal/fault"
)

// Object is an object as it is stored. It does not change.
type Object struct {
	fault.Key
	// Version is that of the API in which the object is stored.
	Version schema.GroupVersion
	UID     types.UID
	// Deleted says that the object is marked for deletion.
	Deleted bool
	// Generation is how often what is wanted of the object has changed. 0 is of kinds without generations.
	Generation int64
	// generateName is the prefix of the name if the name was generated.
	generateName string
	revision     int64
	data         []byte
}

// NewObject returns an object that is stored as JSON at a revision.
func NewObject(data []byte, revision int64) (*Object, error) {
	var parts struct {
		APIVersion, Kind string
		Metadata         struct {
			Namespace, Name, GenerateName string
			UID                           types.UID
			DeletionTimestamp             string
			Generation                    int64
		}
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return nil, fmt.Errorf("decode an object of revision %d: %w", revision, err)
	}
	version, err := schema.ParseGroupVersion(parts.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("decode an object of revision %d: %w", revision, err)
	}
	metadata := parts.Metadata
	return &Object{
		Key: fault.Key{
			Kind: version.WithKind(parts.Kind).GroupKind(), Namespace: metadata.Namespace, Name: metadata.Name,
		},
		Version: version, UID: metadata.UID, Deleted: metadata.DeletionTimestamp != "",
		Generation:   metadata.Generation,
		generateName: metadata.GenerateName, revision: revision, data: data,
	}, nil
}

// Fields returns the object as JSON, which is the caller's.
func (o *Object) Fields() map[string]any {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(o.data); err != nil {
		return map[string]any{"cannot be decoded": err.Error()}
	}
	u.SetResourceVersion(strconv.FormatInt(o.revision, 10))
	return u.Object
}

// Into decodes the object.
func (o *Object) Into(obj runtime.Object) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.Object = o.Fields()
		return nil
	}
	if err := runtime.SetZeroValue(obj); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Fields(), obj)
}

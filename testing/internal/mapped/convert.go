package mapped

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// isDefinition reports whether a kind is that of the definitions of kinds.
func isDefinition(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
}

// suffixed reports whether the names of objects of the kind end with the suffix. Of a kind that is not served nothing
// is known, and a call about it fails anyhow.
func (s *Server) suffixed(kind schema.GroupVersionKind) bool {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	namespaced, err := s.inner.IsObjectNamespaced(u)
	return err == nil && !namespaced && !isDefinition(kind.GroupKind()) && kind.Group != "apiregistration.k8s.io"
}

// target is an object that a call is about.
type target struct {
	kind schema.GroupVersionKind
	// on is the object on the API server, without content.
	on *unstructured.Unstructured
	content
}

func (s *Server) target(kind schema.GroupVersionKind, namespace, name string) target {
	key := store.Key{Kind: kind.GroupKind(), Namespace: namespace, Name: name}
	t := target{kind: kind, on: &unstructured.Unstructured{}}
	t.content = content{server: s, key: key, suffixed: s.suffixed(kind)}
	t.on.SetGroupVersionKind(kind)
	t.on.SetNamespace(s.toName(namespace))
	t.on.SetName(name)
	if t.suffixed {
		t.on.SetName(s.toName(name))
	}
	return t
}

func (s *Server) targetOf(obj client.Object) (target, error) {
	kind, err := s.inner.GroupVersionKindFor(obj)
	if err != nil {
		return target{}, err
	}
	return s.target(kind, obj.GetNamespace(), obj.GetName()), nil
}

// body returns an object as it is sent to the API server, and what it is.
func (s *Server) body(obj client.Object) (*unstructured.Unstructured, target, error) {
	t, err := s.targetOf(obj)
	if err != nil {
		return nil, t, err
	}
	u, err := t.body(obj, t.kind)
	return u, t, err
}

// body returns an object of a kind as it is sent in a call about t.
func (t target) body(obj client.Object, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	u, err := toUnstructured(obj, kind)
	if err != nil {
		return nil, err
	}
	t.server.dropTimes(u)
	t.toServer(nil, u.Object)
	return u, nil
}

// dropTimes removes the times that an object is shown with, which are others on the API server. It fills them in.
func (s *Server) dropTimes(u *unstructured.Unstructured) {
	metadata, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		return
	}
	for _, name := range []string{"creationTimestamp", "deletionTimestamp"} {
		if text, ok := metadata[name].(string); ok && s.shown(u.GetUID(), text) {
			delete(metadata, name)
		}
	}
}

// toUnstructured returns a copy of obj.
func toUnstructured(obj runtime.Object, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if from, ok := obj.(runtime.Unstructured); ok {
		u.Object = runtime.DeepCopyJSON(from.UnstructuredContent())
	} else {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, fmt.Errorf("cannot convert %T: %w", obj, err)
		}
		u.Object = content
	}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// answer makes obj what the API server has answered.
func (s *Server) answer(t target, u *unstructured.Unstructured, obj client.Object) error {
	key := t.key
	key.Namespace, key.Name = s.text(u.GetNamespace()), s.text(u.GetName())
	id := s.identityOf(key, u)
	s.fromServer(u.Object)
	s.identify(key, id, u)
	return fill(obj, u.Object)
}

// fill makes obj what the content says. An object of a Go type keeps the kind that is set on it.
func fill(obj runtime.Object, content map[string]any) error {
	switch obj := obj.(type) {
	case *unstructured.Unstructured:
		obj.Object = content
		return nil
	case runtime.Unstructured:
		obj.SetUnstructuredContent(content)
		return nil
	}
	kind := obj.GetObjectKind().GroupVersionKind()
	reflect.ValueOf(obj).Elem().SetZero()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj); err != nil {
		return fmt.Errorf("cannot convert the answer to %T: %w", obj, err)
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return nil
}

// patch returns a patch as it is sent to the API server.
func (t target) patch(kind types.PatchType, data []byte) (client.Patch, error) {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return client.RawPatch(kind, data), nil // the API server says what is wrong
	}
	if operations, ok := value.([]any); ok {
		for _, operation := range operations {
			if operation, ok := operation.(map[string]any); ok && operation["value"] != nil {
				path, _ := operation["path"].(string)
				operation["value"] = t.toServer(segments(path), operation["value"])
			}
		}
	} else {
		value = t.toServer(nil, value)
	}
	sent, err := json.Marshal(value)
	return client.RawPatch(kind, sent), err
}

// segments returns the names of fields in a JSON pointer, without the places in lists.
func segments(pointer string) []string {
	var names []string
	for segment := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if segment != "-" && strings.Trim(segment, "0123456789") != "" {
			names = append(names, strings.NewReplacer("~1", "/", "~0", "~").Replace(segment))
		}
	}
	return names
}

// error returns an error of the API server as the row knows its names.
func (s *Server) error(err error) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return err
	}
	mapped := status.Status()
	mapped.Details = mapped.Details.DeepCopy()
	mapped.Message = s.text(mapped.Message)
	if mapped.Details != nil {
		mapped.Details.Name = s.text(mapped.Details.Name)
		mapped.Details.UID = types.UID(s.text(string(mapped.Details.UID)))
		for i := range mapped.Details.Causes {
			mapped.Details.Causes[i].Message = s.text(mapped.Details.Causes[i].Message)
		}
	}
	return &apierrors.StatusError{ErrStatus: mapped}
}

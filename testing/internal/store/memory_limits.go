package store

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// The sizes that an API server and its etcd accept by default.
const (
	maxRequest = 3 << 20
	maxStored  = 3 << 19
)

// checkRequest refuses a request that is too large.
func checkRequest(size int) error {
	if size <= maxRequest {
		return nil
	}
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxRequest))
}

// checkStored refuses an object that etcd does not take.
func checkStored(obj client.Object) error {
	if sizeOf(reflect.ValueOf(obj)) <= maxStored {
		return nil
	}
	return unknown(errors.New("etcdserver: request is too large"))
}

// sizeOf is how many bytes the texts in a value have: what makes an object large. What is not exported is not sent, and
// may belong to others, as the time zone of a time does.
func sizeOf(v reflect.Value) (size int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return sizeOf(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				size += sizeOf(v.Field(i))
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			size += sizeOf(entries.Key()) + sizeOf(entries.Value())
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return v.Len()
		}
		for i := range v.Len() {
			size += sizeOf(v.Index(i))
		}
	}
	return size
}

// nodePorts are those of an object that is a Service, in the order of its ports.
func nodePorts(obj client.Object) []int32 {
	service, ok := obj.(*corev1.Service)
	if !ok {
		return nil
	}
	return registry.NodePorts(service)
}

// claimNodePorts refuses node ports that a client asked for and that another Service has, and gives others to those
// that were allocated. The caller holds the lock.
func (s *memory) claimNodePorts(r *resource, obj client.Object, asked []int32) error {
	service, ok := obj.(*corev1.Service)
	if !ok || !slices.ContainsFunc(nodePorts(obj), func(port int32) bool { return port != 0 }) {
		return nil
	}
	used := sets.New[int32]()
	for _, other := range s.state.tables[r.gvk.GroupKind()] {
		if other.namespace != service.Namespace || other.name != service.Name {
			used.Insert(nodePorts(other.object)...)
		}
	}
	if errs := registry.ClaimNodePorts(service, asked, used); len(errs) > 0 {
		return apierrors.NewInvalid(r.gvk.GroupKind(), service.Name, errs)
	}
	return nil
}

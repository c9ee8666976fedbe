package server

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// incomplete is a built-in object that was given without defaults and is about to be updated. Clients send the defaults
// with each update, because a server completes what they send. That is no change of the object.
type incomplete struct{ given, completed runtime.Object }

// completeGiven completes a live object that was given without defaults. It returns nil for any other.
func completeGiven(e *storage.Entry, live runtime.Object, known apistorage.ResponseMeta) *incomplete {
	if e == nil || !e.Given || uint64(e.Revision) != known.ResourceVersion {
		return nil
	}
	if _, ok := kindsByType()[reflect.TypeOf(live)]; !ok {
		return nil
	}
	i := &incomplete{given: live.DeepCopyObject()}
	defaulter{}.Default(live)
	i.completed = live.DeepCopyObject()
	return i
}

// restore has an updated object have the contents as they were given, unless the update changes them.
func (i *incomplete) restore(updated runtime.Object) {
	if i == nil || reflect.TypeOf(updated) != reflect.TypeOf(i.given) {
		return
	}
	to := reflect.ValueOf(updated).Elem()
	given, completed := reflect.ValueOf(i.given).Elem(), reflect.ValueOf(i.completed).Elem()
	var contents []int
	for field := range to.NumField() {
		switch to.Type().Field(field).Name {
		case "TypeMeta", "ObjectMeta", "Status":
			continue
		}
		if !equality.Semantic.DeepEqual(to.Field(field).Interface(), completed.Field(field).Interface()) {
			return
		}
		contents = append(contents, field)
	}
	for _, field := range contents {
		to.Field(field).Set(given.Field(field))
	}
}

package store_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// TestObjectsOfTheCallerAreCopied writes objects with managed fields, and changes them afterwards.
func TestObjectsOfTheCallerAreCopied(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*store.Store, client.Object) error{
		"give": func(s *store.Store, obj client.Object) error { return s.Give(obj) },
		"update": func(s *store.Store, obj client.Object) error {
			c := s.Client(store.ClientOptions{})
			if err := c.Create(t.Context(), configMap("one")); err != nil {
				return err
			}
			return c.Update(t.Context(), obj)
		},
	} {
		obj := configMap("one")
		obj.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
			Time:       &metav1.Time{Time: now},
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{".":{},"f:k":{}}}`),
		}}
		entry := *obj.ManagedFields[0].DeepCopy()
		sent := obj.ManagedFields
		s := newStore(t)
		must(t, write(s, obj))
		sent[0].Manager = "changed"
		sent[0].FieldsV1.SetRawString(`{"f:xata":{".":{},"f:k":{}}}`)
		sent[0].Time.Time = now.Add(time.Hour)
		got := read(t, s.Client(store.ClientOptions{}), configMap("one")).ManagedFields
		if len(got) == 0 || got[0].Manager != entry.Manager || !got[0].Time.Equal(entry.Time) ||
			got[0].FieldsV1.GetRawString() != entry.FieldsV1.GetRawString() {
			t.Errorf("%s: the managed fields are %v, want those of %s as they were given", name, got, entry.Manager)
		}
	}
}

package store

import (
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/testing/internal/server"
)

// Give stores objects as if they had always been there, without completing or validating what they have, see
// [server.World.Give]. Each of the objects must have a UID of its own. The error names the object; nothing is stored
// then.
func (s *Store) Give(objs ...client.Object) error {
	for _, obj := range objs {
		if err := managedfields.ValidateManagedFields(obj.GetManagedFields()); err != nil {
			return err
		}
	}
	if err := s.world().Give(s.options.Scheme, objs...); err != nil {
		return err
	}
	s.defineGiven()
	for _, obj := range objs {
		if len(obj.GetManagedFields()) == 0 {
			continue
		}
		if gvk, err := apiutil.GVKForObject(obj, s.options.Scheme); err == nil {
			if given := s.find(s.kinds(), newKey(gvk.GroupKind(), obj.GetNamespace(), obj.GetName())); given != nil {
				s.show(given.GetUID())
			}
		}
	}
	return nil
}

// world is what the calls of clients read and write.
func (s *Store) world() server.World {
	s.mu.Lock()
	defer s.mu.Unlock()
	return server.World{Storage: s.kept, Types: s.served.catalog.typeOf, Kinds: s.served.custom, Repeats: true}
}

// defineGiven serves what given definitions define.
func (s *Store) defineGiven() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collected, s.servedAt = 0, s.kept.Revision()
	if len(s.kept.Entries(server.DefinitionsPrefix)) > 0 || len(s.served.defined) > 0 {
		s.served = s.served.with(s.kept)
	}
}

// find returns a stored object, nil if there is none.
func (s *Store) find(served *kinds, key Key) client.Object {
	k := served.find(key.Kind)
	if k == nil {
		return nil
	}
	return served.object(s.kept.Entry(k.Key(key.Namespace, key.Name)))
}

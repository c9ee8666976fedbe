package stuck_test

import (
	"errors"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

// codes are what the author's code does.
var codes = map[string]story{
	"service-outside": {
		plant: func(s *scene) {
			s.fails()
			s.widget()
		},
		mend: func(s *scene) {
			s.outside.Delete(s.partKey(""))
			s.patches(&resources.Widget{ObjectMeta: s.part("")}, `{"metadata":{"annotations":{"try":"again"}}}`)
		},
	},
	"cleanup-fails": {
		plant: func(s *scene) {
			s.widget()
			s.settles()
			s.fails()
			s.deletes(&resources.Widget{ObjectMeta: s.part("")})
		},
		mend: func(s *scene) { s.outside.Delete(s.partKey("")) },
		goes: true,
	},
	"finalizer-of-nobody": {
		plant: func(s *scene) {
			s.widget()
			s.settles()
			s.patches(&resources.Widget{ObjectMeta: s.part("")},
				`{"metadata":{"finalizers":["stuck.example.com/archive","stuck.example.com/registration"]}}`)
			s.deletes(&resources.Widget{ObjectMeta: s.part("")})
		},
		mend: func(s *scene) {
			s.patches(&resources.Widget{ObjectMeta: s.part("")}, `{"metadata":{"finalizers":null}}`)
		},
		goes: true,
	},
	"panic": {
		plant: func(s *scene) { s.widget("palette", "warm") },
		mend:  func(s *scene) { s.sets("palette", "") },
	},
	"never-the-same": {
		plant: func(s *scene) { s.widget("rendered", "yes") },
		mend:  func(s *scene) { s.sets("rendered", "") },
	},
}

// fails has what the operator uses outside of the cluster fail for the Widget.
func (s *scene) fails() {
	s.outside.Store(s.partKey(""), func() error {
		return errors.New("dial tcp 192.0.2.7:443: connect: connection refused")
	})
}

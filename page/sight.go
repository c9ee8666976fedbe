package page

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxQuestions limits how many namespaces a viewer's rights are looked up for, in the answer to one request.
const maxQuestions = 50

// sight is what a viewer sees of the objects of one kind. It looks up rights when they matter.
type sight struct {
	viewer Viewer
	kind   schema.GroupVersionKind
	// all says whether the viewer sees all resources; nil if that is not known yet.
	all        *bool
	namespaces map[string]bool
	// unasked is true if there were too many namespaces. Then resources are not shown although the viewer may get them.
	unasked bool
	err     error
}

func sightOf(viewer Viewer, kind schema.GroupVersionKind) *sight {
	return &sight{viewer: viewer, kind: kind, namespaces: map[string]bool{}}
}

// ofNamespace reports whether the viewer sees all resources of a namespace.
func (s *sight) ofNamespace(ctx context.Context, namespace string) bool {
	if s.all == nil {
		all, err := s.viewer.May(ctx, verbGet, s.kind, "", "")
		s.all, s.err = &all, err
	}
	if *s.all || s.err != nil || namespace == "" {
		return *s.all && s.err == nil
	}
	known, ok := s.namespaces[namespace]
	switch {
	case ok:
		return known
	case len(s.namespaces) == maxQuestions:
		s.unasked = true
		return false
	}
	allowed, err := s.viewer.May(ctx, verbGet, s.kind, namespace, "")
	s.namespaces[namespace], s.err = allowed, err
	return allowed && err == nil
}

package reconcilers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ObjectManager makes one object agree with what is desired. It is the strategy by which a child is created, updated
// and deleted: [UpdatingObjectManager] merges what is desired into the object and updates it, [ApplyingObjectManager]
// applies it.
//
// Whoever implements one has these duties: act only on actual, the object it is given; write nothing when actual and
// desired agree, nor when actual is terminating; leave actual unchanged in memory; return the object as the API server
// has it.
type ObjectManager[Type client.Object] interface {
	// SetupWithManager adds the watches that the manager needs, and checks its configuration.
	SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error

	// Manage creates desired if actual is absent (nil, or without a creation timestamp), updates actual to agree with
	// desired if both are there, and deletes actual if desired is nil. Events are recorded on resource, and tracks and
	// finalizers are its. It returns the object as the server has it now, nil if there is none or it was just deleted.
	// A terminating actual is returned as it is.
	Manage(ctx context.Context, resource client.Object, actual, desired Type) (Type, error)
}

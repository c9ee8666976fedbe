// Package reconcilers is the vocabulary in which controllers are written as trees of small, typed sub-reconcilers.
//
// # One node
//
// The smallest controller that does something runs a function for each resource:
//
//	root := &reconcilers.ResourceReconciler[*v1.Tenant]{
//		Reconciler: &reconcilers.SyncReconciler[*v1.Tenant]{
//			Sync: func(ctx context.Context, tenant *v1.Tenant) error { ... },
//		},
//		Config: reconcilers.NewConfig(mgr, &v1.Tenant{}, syncPeriod),
//	}
//	err := root.SetupWithManager(ctx, mgr)
//
// The root fetches the resource, runs the node, and writes the status if the node changed it.
//
// # Children
//
// To keep an object as it should be, say what it should be, how to merge that into what is there, and what it tells about
// the resource:
//
//	&reconcilers.ChildReconciler[*v1.Tenant, *corev1.ResourceQuota, *corev1.ResourceQuotaList]{
//		DesiredChild:               func(ctx context.Context, tenant *v1.Tenant) (*corev1.ResourceQuota, error) { ... },
//		MergeBeforeUpdate:          func(current, desired *corev1.ResourceQuota) { current.Spec = desired.Spec },
//		ReflectChildStatusOnParent: func(ctx context.Context, tenant *v1.Tenant, quota *corev1.ResourceQuota, err error) { ... },
//	}
//
// # A tree
//
// Combinators make a tree of nodes. The literal reads as what it does:
//
//	reconcilers.Sequence[*v1.Tenant]{
//		Namespace(),
//		&reconcilers.WithFinalizer[*v1.Tenant]{
//			Finalizer:  "example.com/directory",
//			Reconciler: Registration(directory),
//		},
//		&reconcilers.IfThen[*v1.Tenant]{
//			If:   isolated,
//			Then: NetworkPolicy(),
//			Else: NoNetworkPolicy(),
//		},
//	}
//
// Each node says in its doc comment what it runs, when it stops, what happens on an error and what on deletion. [Describe]
// prints the tree back, and [Description.PolicyRules] derives the RBAC rules that it needs.
//
// # Values between nodes, and the world
//
// Nodes share values through the stash of the request (package stash), and read and write through the [Config] on the
// context ([RetrieveConfigOrDie]), so that a test, or a node further out, can replace it. [Config.TrackAndGet] reads an object that
// is not the tree's own, and has the resource reconciled again when it changes.
//
// # Tests
//
// Package testing runs a single node, or a whole tree, against a table of cases, without a cluster.
//
// # Adopting it
//
// A root is an ordinary reconcile.Reconciler, and may stand beside others in one manager. A node can also be called from a
// reconciler written by hand: put the config and the resource on the context and call it.
//
//	ctx = reconcilers.StashConfig(ctx, config)
//	ctx = reconcilers.StashOriginalConfig(ctx, config)
//	ctx = reconcilers.StashResourceType(ctx, &v1.Tenant{})
//	ctx = reconcilers.StashOriginalResourceType(ctx, &v1.Tenant{})
//	ctx = reconcilers.StashRequest(ctx, request)
//	result, err := node.Reconcile(ctx, tenant)
//
// Such a context serves the set-up of the node too. What only a root can do is then missing: the status is not written, what was learned
// is not tied to the life of the resource, and errors do not tell the path.
package reconcilers

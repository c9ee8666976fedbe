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
// To keep an object as it should be, say what it should be, how to merge that into what is there, and what it tells
// about the resource:
//
//	&reconcilers.ChildReconciler[*v1.Tenant, *corev1.ResourceQuota, *corev1.ResourceQuotaList]{
//		DesiredChild:      func(ctx context.Context, tenant *v1.Tenant) (*corev1.ResourceQuota, error) { ... },
//		MergeBeforeUpdate: func(current, desired *corev1.ResourceQuota) { current.Spec = desired.Spec },
//		ReflectChildStatusOnParent: func(
//			ctx context.Context, tenant *v1.Tenant, quota *corev1.ResourceQuota, err error,
//		) { ... },
//	}
//
// As many children as the resource says are a [ChildSetReconciler]. How a child is written is the matter of an
// [ObjectManager]: by whole updates ([UpdatingObjectManager], which MergeBeforeUpdate is short for), or by server-side
// apply ([ApplyingObjectManager]). One object that is made of many others has a root of its own, the
// [AggregateReconciler].
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
// [Sequence] and [Always] run lists of nodes, [IfThen], [While] and [ForEach] choose and repeat, [TryCatch],
// [SuppressTransientErrors] and [WithFinalizer] guard, [Advice], [OverrideSetup], [WithConfig] and [CastResource]
// adapt. Each node says in its doc comment what it runs, when it stops, what happens on an error and what on deletion.
// [Describe] prints the tree back, and [Description.PolicyRules] derives the RBAC rules that it needs.
//
// # A webhook
//
// The same nodes answer admission requests. What they change of the resource is the patch, and their errors are the
// reasons for which a request is denied:
//
//	webhook, err := (&reconcilers.AdmissionWebhookAdapter[*v1.Tenant]{
//		Reconciler: &reconcilers.SyncReconciler[*v1.Tenant]{
//			Sync: func(ctx context.Context, tenant *v1.Tenant) error {
//				if len(tenant.Spec.Members) == 0 {
//					reconcilers.Warn(ctx, "nobody will be able to work in this tenant")
//				}
//				return reconcilers.InvalidFields(ctx, tenant, validate(tenant))
//			},
//		},
//		Config: config,
//	}).BuildWithContext(ctx)
//	mgr.GetWebhookServer().Register("/validate-tenant", webhook)
//
// # Values between nodes, and the world
//
// Nodes share values through the stash of the request (package stash), and read and write through the [Config] on the
// context ([RetrieveConfigOrDie]), so that a test, or a node further out, can replace it. [Config.TrackAndGet] reads an
// object that is not the tree's own, and has the resource reconciled again when it changes.
//
// # Tests
//
// Package testing runs a single node, a whole tree, a webhook, or the set-up of any of them, against a table of cases,
// without a cluster.
//
// # Adopting it
//
// A root is an ordinary reconcile.Reconciler, and may stand beside others in one manager. A node can also be called
// from a reconciler written by hand: put the config and the resource on the context and call it.
//
//	ctx = reconcilers.StashConfig(ctx, config)
//	ctx = reconcilers.StashOriginalConfig(ctx, config)
//	ctx = reconcilers.StashResourceType(ctx, &v1.Tenant{})
//	ctx = reconcilers.StashOriginalResourceType(ctx, &v1.Tenant{})
//	ctx = reconcilers.StashRequest(ctx, request)
//	result, err := node.Reconcile(ctx, tenant)
//
// Such a context serves the set-up of the node too. What only a root can do is then missing: the status is not written,
// what was learned is not tied to the life of the resource, and errors do not tell the path.
package reconcilers

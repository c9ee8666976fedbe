// Package reconcilers builds controllers as trees of small, typed sub-reconcilers. New code starts with the short form,
// package espalier, whose functions return these nodes with recommended settings.
//
// A root, [ResourceReconciler] or [AggregateReconciler], handles the requests of a controller, and an
// [AdmissionWebhookAdapter] those of a webhook. Below it is a tree of nodes: [SyncReconciler] calls a function,
// [ChildReconciler] and [ChildSetReconciler] keep objects, and combinators such as [Sequence] run other nodes.
//
// # One node
//
// The smallest controller runs a function for each resource:
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
// A child is an object that the controller keeps in a desired state. The author writes three functions: the desired
// child, how to merge it into the child that exists, and how to reflect the child in the status of the resource:
//
//	&reconcilers.ChildReconciler[*v1.Tenant, *corev1.ResourceQuota, *corev1.ResourceQuotaList]{
//		DesiredChild:      func(ctx context.Context, tenant *v1.Tenant) (*corev1.ResourceQuota, error) { ... },
//		MergeBeforeUpdate: func(current, desired *corev1.ResourceQuota) { current.Spec = desired.Spec },
//		ReflectChildStatusOnParent: func(
//			ctx context.Context, tenant *v1.Tenant, quota *corev1.ResourceQuota, err error,
//		) { ... },
//	}
//
// A [ChildSetReconciler] has any number of children. An [ObjectManager] writes a child: by whole updates
// ([UpdatingObjectManager], for which MergeBeforeUpdate is the short form), or by server-side apply
// ([ApplyingObjectManager]). The [AggregateReconciler] is a root for one object that is made from many others.
//
// # A tree
//
// Combinators make a tree of nodes:
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
// [Sequence], [List] and [Always] run nodes one after the other, [IfThen],
// [While] and [ForEach] choose and repeat, [TryCatch], [SuppressTransientErrors] and [WithFinalizer] guard, [Advice],
// [OverrideSetup], [WithConfig] and [CastResource] adapt. The doc comment of each node says what it runs, when it
// stops, and what it does on an error and on deletion. [Describe] describes the tree, and [Description.PolicyRules]
// returns the RBAC rules that it needs.
//
// # A webhook
//
// The same nodes answer admission requests. Their changes of the resource become the patch, and their errors are the
// reasons why a request is denied:
//
//	webhook, err := (&reconcilers.AdmissionWebhookAdapter[*v1.Tenant]{
//		Reconciler: &reconcilers.SyncReconciler[*v1.Tenant]{
//			Sync: func(ctx context.Context, tenant *v1.Tenant) error {
//				if len(tenant.Spec.Members) == 0 {
//					reconcilers.Warn(ctx, "this tenant has no members")
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
// Nodes share values through the stash of the request (package stash). They read and write through the [Config] on the
// context ([RetrieveConfigOrDie]), so that a test or an outer node can replace it. [Config.TrackAndGet] reads an object
// that the tree does not own, and has the resource reconciled again when that object changes.
//
// # Tests
//
// Package testing runs a table of cases without a cluster: for a single node, a whole tree, a webhook, or their set-up.
//
// # Adopting it
//
// A root is an ordinary reconcile.Reconciler, and works beside others in one manager. [Embed] runs nodes in a
// hand-written reconciler:
//
//	nodes := reconcilers.Embed(config, Quota())
//	err := nodes.SetupWithManager(ctx, mgr, bldr)    // validates, and adds watches to the builder
//	result, err := nodes.Reconcile(ctx, tenant)      // in the reconciler, which writes the status
package reconcilers

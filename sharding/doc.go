// Package sharding has several processes of an operator share its resources, by the engine
// kubernetes-controller-sharding.
//
// A cluster with that engine has a sharder. It gives each resource of an operator to one of the processes that hold a
// Lease of the operator's ring, and moves resources when a process comes or goes. This package is what a process needs
// to take part: [Ring.Join] changes the options of its manager, and [reconcilers.Config.WithShard] the roots.
//
//	options := ctrl.Options{Scheme: scheme}
//	shard, err := sharding.Ring{Name: "shop-operator"}.Join(config, &options, controller.New(reconcilers.Config{}))
//	...
//	mgr, err := ctrl.NewManager(config, options)
//	...
//	mgr = shard.Manager(mgr)
//	root := controller.New(espalier.NewConfig(mgr).WithShard(shard))
//	err = root.SetupWithManager(ctx, mgr)
//
// A manager has one ring. All that needs a leader in it is a root with the option, and is among the arguments of Join.
package sharding

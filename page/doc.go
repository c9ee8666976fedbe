// Package page has an http.Handler that shows the trees of a running operator: what each node did last for a resource,
// how long it took, why it waits and since when, what woke the last requests, and how far components are.
//
//	p := page.New(page.Options{Access: page.Reviews(mgr.GetClient()), Elected: mgr.Elected()})
//	config := reconcilers.NewConfig(mgr, &v1.Tenant{}, syncPeriod).WithObserver(p)
//	err := mgr.AddMetricsServerExtraHandler("/espalier/", p)
//
// It works below any prefix that ends with a slash, on any mux. What it shows is what it was told as an observer, so it
// makes no request for the resources, knows a resource from the first request on, and a standby that does not reconcile
// knows none. It answers GET and HEAD.
//
// The exception is a fresh plan of a component, which is a POST: see Plan of Progress in package component. It writes
// nothing.
//
// # Rights
//
// [Options.Access] decides who sees what. With [Reviews], a viewer is who the API server says that a bearer token is,
// and sees a resource if the API server says that this viewer may get it. Of others it shows the kind and the name.
// No content of any object is shown: only names, the reasons of writes, and the conditions and records in the
// status. Who may update a resource may have plans of its components made. With [OnLoopback] everybody who reaches the
// operator by a loopback address may do and see everything.
//
// The filter of controller-runtime's metrics server removes the token from a request, so behind it the page would know
// nobody. [KeepToken] is for that:
//
//	FilterProvider: page.KeepToken(filters.WithAuthenticationAndAuthorization)
//
// # Memory
//
// The page knows at most [Options.MaxResources] resources. The one that was not reconciled for the longest time makes
// room for a new one, and the page says how many did. Of a resource it keeps the last outcome of each node, the
// conditions, and the last 20 requests: 1 KB for a tree of three nodes, and some KB for a larger one that is busy, with
// 1 KB more for each component, to make plans of it. The
// objects of components are kept up to [Options.MaxObjects], with about 200 bytes each; of components beyond that the
// page knows only counts.
package page

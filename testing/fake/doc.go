// Package fake has a client for tests that the API server of Kubernetes answers, which runs in the test binary. It
// takes the place of the fake client of controller-runtime by its import path:
//
//	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tenant).Build()
//
// The API server has the built-in types, those of the scheme, and those of the CustomResourceDefinitions that are given
// or created. Their schemas and rules hold for objects of Go types too.
//
// # Differences from the fake client of controller-runtime
//
// The first column is a call or a state, the second is what the client of controller-runtime v0.25 does, and the third
// is what this one does, as an API server does it unless the line says more.
//
//	a list of namespaces                      | has none                | has four, unless built WithoutNamespaces
//	create in a namespace that is missing     | creates it              | is not found; give the namespace
//	create of an invalid object               | creates it              | is invalid
//	create with a status                      | stores the status       | drops the status
//	create of an object with few fields       | stores these            | sets the defaults
//	create: UID, creation time, generation    | sets none               | sets them
//	update of a spec                          | keeps the generation    | raises the generation
//	update that changes nothing               | raises the version      | keeps the version
//	update of nothing but a status            | drops the status        | fails with a hint, but AsAPIServer
//	update of a status: WithStatusSubresource | is needed               | is the default for a Go type with a status
//	create as a dry run                       | does nothing            | checks and answers
//	delete of another UID                     | deletes the object      | is a conflict
//	delete in the foreground                  | deletes the object      | waits for CollectGarbage
//	list with a limit                         | lists everything        | lists a page
//	list by a name as a field                 | needs an index          | needs none
//	watch                                     | starts with the changes | starts with the objects that are there
//	get of an unknown kind                    | is not found            | has no match
//	create of a CustomResourceDefinition      | stores it               | serves its kind, with its schema
//	build: the version of a given object      | is set in it            | is not set in it
//	build with two objects of one UID         | gives both              | fails each call
//	build with an object tracker              | works with it           | fails each call: it has no rules
//	build with type converters                | works with them         | fails each call: definitions have them
//
// An update or a patch that changes nothing but a status which is a subresource succeeds on a real API server and does
// nothing. Code that does this is most likely wrong, so here the request fails, and a test that looks at errors does
// too. The error names the object, and says to use Status().Update. A test that is about such a request builds the
// client [ClientBuilder.AsAPIServer]. If the status of a Go type is no subresource, give the CustomResourceDefinition
// of the type.
//
// Build does not panic, which would end the other tests of the package, too: if an object cannot be given, each call of
// the client fails with the name of the object and the reason.
//
// Each cluster has the namespaces default, kube-system, kube-public and kube-node-lease, so each client does.
// [ClientBuilder.WithoutNamespaces] leaves them out.
//
// An API server alone deletes no dependents and ends no deletion of a namespace. [CollectGarbage] does both.
package fake

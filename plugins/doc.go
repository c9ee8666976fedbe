// Package plugins has what a resource needs come from programs of their own, which are released apart from the
// operator.
//
// A plugin gives a capability, such as database/postgres: for an owner, the objects that it needs, in their order. It
// is a pure function, and knows nothing of the cluster but the owner. The operator does all reads and writes, with its
// own rights, by the nodes that it also has for objects of its own.
//
// The author of a plugin writes a function, and a main that serves it:
//
//	func main() {
//		plugins.Serve(plugins.Plugin{Category: "database", Types: []plugins.Type{
//			{Name: "postgres", Versions: []string{"16.2", "15.6"}, Dependents: postgres},
//		}})
//	}
//
//	func postgres(ctx context.Context, r plugins.Request) ([]*plugins.Dependent, error) {
//		...
//		return []*plugins.Dependent{
//			plugins.Owns("password", secret).CreateOnly(),
//			plugins.Owns("server", statefulSet).After("password"),
//		}, nil
//	}
//
// The author of the operator adds a [Host] to the manager, and a node of [Capability] to the tree. Package plugintest
// runs one table of a plugin in the process and as a program. The page docs/plugins.md is the contract, and
// proto/espalier_plugins_v1.proto what plugins in other languages are made of.
package plugins

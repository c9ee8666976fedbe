package scenario

import (
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// trials are for a user who has kubectl, one after the other.
var trials = []demo.Trial{
	{
		Text: "Create a tenant: it gets a namespace with a quota, limits, and a binding for its member",
		Commands: `kubectl apply -f - <<END
apiVersion: tenancy.example.com/v1alpha1
kind: Tenant
metadata: {name: blue}
spec:
  owner: me@example.com
  defaultsRef: {namespace: ` + platform + `, name: defaults}
  role: developer
  members: [{kind: User, name: ann@example.com}]
END
kubectl wait --for=condition=Ready tenant/blue
kubectl -n blue get resourcequotas,limitranges,rolebindings
`,
	},
	{
		Text:     "Look at the tree: each condition is of one of the nodes that the first step has shown",
		Commands: "kubectl describe tenant blue\n",
	},
	{
		Text:     "Break it: delete what the tenant has",
		Commands: "kubectl -n blue delete resourcequotas,limitranges,rolebindings --all\n",
	},
	{
		Text: "See it healed: these are new, and there are events about it",
		Commands: `kubectl -n blue wait --for=create resourcequota/quota limitrange/limits
kubectl -n blue get resourcequotas,limitranges,rolebindings
kubectl events --for tenant/blue
`,
	},
	{
		Text: "Block its deletion: the operator refuses it, until the tenant is not protected any more",
		Commands: `kubectl annotate tenant blue ` + controller.ProtectedAnnotation + `=true
kubectl delete tenant blue
kubectl annotate tenant blue ` + controller.ProtectedAnnotation + `-
kubectl delete tenant blue
`,
	},
}

package migrate

import (
	_ "embed"
	"strings"
)

// componentEngine is component-operator-runtime. Its names with a counterpart of the same shape move. A program uses
// others, too, so it compiles once those are replaced by hand.
var componentEngine = newComponentEngine()

// componentNames has a line for each name: what it is here, after an equals sign, or what to use, after a colon.
//
//go:embed component_names.txt
var componentNames string

func newComponentEngine() *origin {
	o := &origin{
		module:      "github.com/sap/component-operator-runtime",
		target:      func(string) string { return "" },
		partial:     true,
		typed:       true,
		names:       map[string]symbol{},
		byHand:      map[string]string{},
		differences: componentDifferences,
	}
	for line := range strings.Lines(componentNames) {
		line = strings.TrimSpace(line)
		if name, now, ok := strings.Cut(line, " = "); ok {
			dot := strings.LastIndexByte(now, '.')
			o.names[name] = symbol{Module + "/" + now[:dot], now[dot+1:]}
		} else if name, what, ok := strings.Cut(line, " : "); ok {
			o.byHand[name] = what
		}
	}
	return o
}

var (
	references = uses("pkg/component.ConfigMapReference", "pkg/component.ConfigMapKeyReference",
		"pkg/component.SecretReference", "pkg/component.SecretKeyReference")
	mergedMaps = uses("pkg/manifests.MergeMaps", "pkg/manifests.MergeMapInto")
	kubeconfig = uses("pkg/component.ClientSpec", "pkg/component.ClientConfiguration")
)

const inManifests = "it depends on the objects that are generated"

// componentDifferences are the rows of "Differences", in their order.
var componentDifferences = []difference{
	{what: "update policy by default", find: without("pkg/component.ReconcilerOptions", "UpdatePolicy"),
		check: "say Replace if the objects are to be replaced as a whole"},
	{what: "Recreate", find: uses("pkg/reconciler.UpdatePolicyRecreate"),
		check: "does an object rely on being made anew after a change by others?"},
	{what: "status", find: uses("pkg/component.Status"), check: "does anybody wait for lastObservedAt to move?"},
	{what: "inventory", find: uses("pkg/component.Status.Inventory", "pkg/reconciler.InventoryItem"),
		check: "code that reads the inventory finds it in the status unless Inventory of the options says otherwise"},
	{what: "owner", find: uses("pkg/types.LabelKeySuffixOwnerId", "pkg/types.AnnotationKeySuffixOwnerId"),
		check: "the value of the mark is another one; see the adoption of live components"},
	{what: "`reconcile-policy: once`, and the object is gone", find: uses("pkg/reconciler.ReconcilePolicyOnce",
		"pkg/types.ReconcilePolicyOnce"), check: "is the object to be made again when somebody deletes it?"},
	{what: "Job with `ttlSecondsAfterFinished`", unseen: inManifests},
	{what: "unknown fields, and list elements with the same keys", unseen: inManifests},
	{what: "webhook configurations within a wave", unseen: inManifests},
	{what: "types that others use", unseen: inManifests},
	{what: "deletion of a type",
		find:  uses("pkg/component.TypeSpec", "pkg/component.TypeConfiguration", "pkg/reconciler.TypeInfo"),
		check: "the operator needs the right to create what blocks instances"},
	{what: "first error", unseen: inManifests},
	{what: "adoption policy by default", find: without("pkg/component.ReconcilerOptions", "AdoptionPolicy"),
		check: "set Policies with AdoptIfUnowned to take what is there"},
	{what: "adoption policy `if-unowned`",
		find:  uses("pkg/reconciler.AdoptionPolicyIfUnowned", "pkg/types.AdoptionPolicyIfUnowned"),
		check: "are objects of Helm, Argo CD or Flux to be taken?"},
	{what: "an adopted object", find: without("pkg/component.ReconcilerOptions", "DeletePolicy"),
		check: "set Policies with DeleteDelete to delete what was adopted"},
	{what: "dropped objects", unseen: inManifests},
	{what: "component digest", find: uses("pkg/component.ComponentDigestFromContext"),
		check: "annotations without the prefix do not change the digest"},
	{what: "references", find: references,
		check: "the identity of the component has to be allowed to read what is referred to"},
	{what: "the digest of a Secret that is referred to",
		find:  uses("pkg/component.SecretReference", "pkg/component.SecretKeyReference"),
		check: "a Secret that is written again with the same content changes the digest"},
	{what: "a reference to something missing", find: references, check: "the tag notFoundPolicy does nothing"},
	{what: "`Data` and `Value` of a reference that is not loaded",
		find: uses("pkg/component.ConfigMapReference.Data", "pkg/component.ConfigMapKeyReference.Value",
			"pkg/component.SecretReference.Data", "pkg/component.SecretKeyReference.Value"),
		check: "return the error"},
	{what: "`MergeMaps`: a map that something else replaces", find: mergedMaps,
		check: "does code rely on an empty map?"},
	{what: "`MergeMaps`: null", find: mergedMaps, check: "does a null have to stay in the result?"},
	{what: "substitution of an unknown variable", find: uses("pkg/manifests.NewSubstitutionObjectTransformer"),
		check: "name all variables that the manifests have"},
	{what: "kubeconfigs", find: kubeconfig, check: "a kubeconfig with a plugin or a path is refused"},
	{what: "another cluster in the kubeconfig", find: kubeconfig,
		check: "a component that moves to another cluster is deleted first"},
}

// Package switchfield knows which fields of literals the switches of the short form set.
package switchfield

// SetBy has the fields that the nodes of the short form set themselves, with what to use in place of them.
var SetBy = map[string]string{
	"Name":            "the name of the node",
	"DesiredChild":    "the function desired",
	"DesiredChildren": "the function desired",
	"IdentifyChild":   "the names of the objects",

	"ReflectChildStatusOnParent":              "Reports and Observes",
	"ReflectChildStatusOnParentWithError":     "Reports and Observes",
	"ReflectChildStatusOnParentWithResult":    "Reports, Observes and RetryAfter",
	"ReflectChildrenStatusOnParent":           "Reports and Observes",
	"ReflectChildrenStatusOnParentWithError":  "Reports and Observes",
	"ReflectChildrenStatusOnParentWithResult": "Reports, Observes and RetryAfter",

	"SkipOwnerReference": "Unowned",
	"LabelChildren":      "Labeled",
	"RecreateImmutable":  "Recreates",
	"Renaming":           "nothing: the kind says what a new name means",
	"ChildIsReady":       "Health",
	"OptionalKind":       "nothing: the kind of a node is optional",
}

// TakenBy has the fields that cannot be set together with a switch.
var TakenBy = []struct {
	Switch string
	Fields []string
}{
	{"Unowned", []string{"ListOptions", "OurChild"}},
	{"CreateOnly", []string{"ChildObjectManager", "MergeBeforeUpdate", "Sanitize", "Finalizer"}},
	{"TakeOverFrom", []string{"ChildObjectManager", "MergeBeforeUpdate", "Sanitize"}},
}

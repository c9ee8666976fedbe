package fidelity

// knownDifferences are the checks in which the store answers otherwise, with the reasons.
var knownDifferences = map[string]string{
	"defaults: PersistentVolumeClaim": "the finalizer comes from an admission plug-in, and nobody would remove it",
	"defaults: Pod":                   priority,

	"defaults: priority and tolerations of a Pod": priority,

	"operator: unstructured objects that fit no Go type": "a number that is too large for its field is cut off, by " +
		"the converter of k8s.io/apimachinery",
	"lifecycle: a signing request is approved": "the subresource is not there",

	"read: Events in both groups":            "the two kinds of Events are not one",
	"read: a built-in kind in both versions": "objects are not converted between versions with other fields",

	"definition: invalid": "definitions are not validated, but for schemas that are missing or not structural",
}

const priority = "priority and tolerations come from admission plug-ins"

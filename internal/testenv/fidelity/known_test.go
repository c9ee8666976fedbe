package fidelity_test

// knownDifferences are the checks in which the store answers otherwise, with the reasons.
var knownDifferences = map[string]string{
	"apply: in another version": "each version of a definition has a merge schema of its own, so what a manager no " +
		"longer applies by way of another version is not removed",
	"defaults: PersistentVolumeClaim": "the finalizer comes from an admission plug-in, and there is nobody to remove it",
	"defaults: Pod":                   "priority and tolerations come from admission plug-ins",
	"metadata: invalid owner references": "the fields are those of a newer release, whose library validates: " +
		"metadata.ownerReferences[0].uid instead of metadata.ownerReferences.uid",
	"status: update of a Deployment": "the contents of a status are not validated: its writer is the control plane",
}

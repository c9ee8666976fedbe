package server_test

// The differences to a real API server that are accepted, with the reasons. A test fails if one is there no longer.

// knownDifferences are checks that the server answers otherwise.
var knownDifferences = map[string]string{
	"defaults: PersistentVolumeClaim": protected,

	"apply: owner reference without UID": newerLibrary,
	"metadata: invalid owner references": newerLibrary,
}

// knownSamples are samples of which the server makes something else.
var knownSamples = map[string]string{
	"Node.v1/registry-x":                  "nobody takes the taint of a new node away",
	"PersistentVolume.v1/registry-x":      protected,
	"PersistentVolumeClaim.v1/x":          protected,
	"VolumeAttributesClass.v1/registry-x": protected,
}

// knownOutcomes are requests of which something else becomes.
var knownOutcomes = map[string]string{
	"PersistentVolume: another policy":                   protected,
	"PersistentVolumeClaim: a class":                     protected,
	"PersistentVolumeClaim: a class of a bound claim":    protected,
	"PersistentVolumeClaim: a larger bound claim":        protected,
	"PersistentVolumeClaim: a volume":                    protected,
	"PersistentVolumeClaim: a volume of a bound claim":   protected,
	"PersistentVolumeClaim: an empty class":              protected,
	"PersistentVolumeClaim: labels of a claim":           protected,
	"PersistentVolumeClaim: the class of the annotation": protected,
}

// knownTraits are kinds of which the server treats all objects otherwise.
var knownTraits = map[string]string{
	"Event.v1/xx": "events of both groups have the rules of those of the core group",
}

const (
	newerLibrary = "the library that validates is newer than the server: it says metadata.ownerReferences[0].uid " +
		"instead of metadata.ownerReferences.uid"
	protected = "the finalizer comes from an admission plug-in, and nobody would remove it"
)

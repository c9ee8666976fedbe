package server_test

// The differences to a real API server that are accepted, with the reasons. A test fails if one is there no longer.

// knownDifferences are checks that the server answers otherwise.
var knownDifferences = map[string]string{
	"apply: owner reference without UID": newerLibrary,
	"metadata: invalid owner references": newerLibrary,
}

// knownSamples are samples of which the server makes something else.
var knownSamples = map[string]string{
	"Node.v1/registry-x":                  "nobody takes the taint of a new node away",
	"VolumeAttributesClass.v1/registry-x": "nobody would remove the finalizer",
}

// knownManaged are samples of which other fields are managed.
var knownManaged = map[string]string{
	"Job.v1/labelled": labelsOfTemplate,
	"Job.v1/manual":   labelsOfTemplate,
}

// knownOutcomes are requests of which something else becomes.
var knownOutcomes = map[string]string{}

// knownTraits are kinds of which the server treats all objects otherwise.
var knownTraits = map[string]string{
	"Event.v1/xx": "events of both groups have the rules of those of the core group",
}

const (
	newerLibrary = "the library that validates is newer than the server: it says metadata.ownerReferences[0].uid " +
		"instead of metadata.ownerReferences.uid"
	labelsOfTemplate = "labels that a Job has from its template are set after its fields got their managers"
)

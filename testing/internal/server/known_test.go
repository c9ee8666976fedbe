package server_test

// The differences to a real API server that are accepted, with the reasons. A test fails if one is there no longer.

// knownSamples are samples of which the server makes something else.
var knownSamples = map[string]string{
	"Node.v1/registry-x":                  "nobody takes the taint of a new node away",
	"VolumeAttributesClass.v1/registry-x": "nobody would remove the finalizer",
}

// knownManaged are samples of which other fields are managed.
var knownManaged = map[string]string{
	"Job.v1/documented-suspended": labelsOfTemplate,
	"Job.v1/labelled":             labelsOfTemplate,
	"Job.v1/manual":               labelsOfTemplate,
}

// knownOutcomes are requests of which something else becomes.
var knownOutcomes = map[string]string{
	"Service: a bad node port": "a real API server allocates no ports in a dry run, and does not look at them",
}

// knownDiscovery are resources and groups of which discovery says something else, or that are not there.
var knownDiscovery = map[string]string{
	"apiregistration.k8s.io/v1 apiservices":        noServers,
	"apiregistration.k8s.io/v1 apiservices/status": noServers,
	"group apiregistration.k8s.io":                 noServers,

	"v1 bindings":          "a Pod is bound by its subresource",
	"v1 componentstatuses": "it is deprecated",

	"v1 nodes/proxy":      noContainers,
	"v1 pods/attach":      noContainers,
	"v1 pods/exec":        noContainers,
	"v1 pods/log":         noContainers,
	"v1 pods/portforward": noContainers,
	"v1 pods/proxy":       noContainers,
	"v1 services/proxy":   noContainers,

	"v1 pods/ephemeralcontainers": "a Pod does not change",
	"v1 pods/resize":              "a Pod does not change",
}

// knownTraits are kinds of which the server treats all objects otherwise.
var knownTraits = map[string]string{
	"Event.v1/xx": "events of both groups have the rules of those of the core group",
}

const (
	noContainers     = "no containers run"
	noServers        = "there are no other API servers"
	labelsOfTemplate = "labels that a Job has from its template are set after its fields got their managers"
)

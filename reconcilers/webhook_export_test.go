package reconcilers

// AdmissionPatch is what the patches of webhooks are made with.
var AdmissionPatch = admissionPatch

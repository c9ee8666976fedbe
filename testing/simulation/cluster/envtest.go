package cluster

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// ignored returns the fields of envtest that are set and have no effect.
func (e *Environment) ignored() []string {
	var names []string
	for name, set := range map[string]bool{
		"ControlPlane": e.ControlPlane.APIServer != nil || e.ControlPlane.Etcd != nil ||
			e.ControlPlane.KubectlPath != "",
		"DownloadBinaryAssets":         e.DownloadBinaryAssets,
		"DownloadBinaryAssetsVersion":  e.DownloadBinaryAssetsVersion != "",
		"DownloadBinaryAssetsIndexURL": e.DownloadBinaryAssetsIndexURL != "",
		"BinaryAssetsDirectory":        e.BinaryAssetsDirectory != "",
		"ControlPlaneStartTimeout":     e.ControlPlaneStartTimeout != 0,
		"ControlPlaneStopTimeout":      e.ControlPlaneStopTimeout != 0,
		"AttachControlPlaneOutput":     e.AttachControlPlaneOutput,
	} {
		if set {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// checkEnvtest says which fields of envtest are ignored, and returns an error if one cannot be.
func (e *Environment) checkEnvtest() error {
	if ptr.Deref(e.UseExistingCluster, false) {
		return errors.New("the field UseExistingCluster is set, but this cluster runs in the process: use the " +
			"Environment of envtest for one that exists")
	}
	if e.Pods != nil && !e.Workloads {
		return errors.New("the field Pods says what becomes of a Pod, but none runs: set Workloads")
	}
	if names := e.ignored(); len(names) > 0 {
		logf.Log.WithName("cluster").Info("fields of envtest are ignored, for there are no binaries",
			"fields", strings.Join(names, ", "))
	}
	return nil
}

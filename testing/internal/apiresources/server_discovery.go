package apiresources

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// serverDiscovery lists what a server serves at the time of the call.
type serverDiscovery struct {
	// fakeDiscovery answers what is not about resources.
	fakeDiscovery
	resources func() []*metav1.APIResourceList
}

// NewServerDiscovery returns the discovery of a server that serves the resources. It can be compared, as a config can.
func NewServerDiscovery(resources func() []*metav1.APIResourceList) discovery.DiscoveryInterface {
	return &serverDiscovery{fakeDiscovery: newFakeDiscovery(nil), resources: resources}
}

func (d *serverDiscovery) now() fakeDiscovery { return newFakeDiscovery(d.resources()) }

// ServerGroups implements [discovery.ServerGroupsInterface].
func (d *serverDiscovery) ServerGroups() (*metav1.APIGroupList, error) { return d.now().ServerGroups() }

// ServerGroupsWithContext is ServerGroups.
func (d *serverDiscovery) ServerGroupsWithContext(ctx context.Context) (*metav1.APIGroupList, error) {
	return d.now().ServerGroupsWithContext(ctx)
}

// ServerResourcesForGroupVersion implements [discovery.ServerResourcesInterface].
func (d *serverDiscovery) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	return d.now().ServerResourcesForGroupVersion(groupVersion)
}

// ServerResourcesForGroupVersionWithContext is ServerResourcesForGroupVersion.
func (d *serverDiscovery) ServerResourcesForGroupVersionWithContext(
	ctx context.Context, groupVersion string,
) (*metav1.APIResourceList, error) {
	return d.now().ServerResourcesForGroupVersionWithContext(ctx, groupVersion)
}

// ServerGroupsAndResources implements [discovery.ServerResourcesInterface].
func (d *serverDiscovery) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return d.now().ServerGroupsAndResources()
}

// ServerGroupsAndResourcesWithContext is ServerGroupsAndResources.
func (d *serverDiscovery) ServerGroupsAndResourcesWithContext(
	ctx context.Context,
) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return d.now().ServerGroupsAndResourcesWithContext(ctx)
}

// ServerPreferredResources implements [discovery.ServerResourcesInterface].
func (d *serverDiscovery) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	return d.now().ServerPreferredResources()
}

// ServerPreferredResourcesWithContext is ServerPreferredResources.
func (d *serverDiscovery) ServerPreferredResourcesWithContext(ctx context.Context) ([]*metav1.APIResourceList, error) {
	return d.now().ServerPreferredResourcesWithContext(ctx)
}

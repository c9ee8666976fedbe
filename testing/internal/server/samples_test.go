package server_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/testing/internal/fidelity"
	"github.com/espalier-dev/espalier/testing/internal/registry/registrytest"
)

// TestSamples compares what the server makes of objects of all built-in kinds with what a real API server made of them.
func TestSamples(t *testing.T) {
	onBoth(t, nil, func(c cluster) {
		c.create(namespace("samples"))
		got := registrytest.Create(c.T, c.WithWatch, "samples")
		fidelity.Compare(c.T, registrytest.Created(c.T), got, knownSamples)
	})
}

// TestManagedFields compares who manages which fields of the same objects.
func TestManagedFields(t *testing.T) {
	onBoth(t, nil, func(c cluster) {
		c.create(namespace("managed"))
		got := registrytest.CreateManaged(c.T, c.WithWatch, "managed")
		fidelity.Compare(c.T, registrytest.CreatedManaged(c.T), got, knownManaged)
	})
}

// TestRefused compares what the server refuses with what a real API server refused.
func TestRefused(t *testing.T) {
	onBoth(t, nil, func(c cluster) {
		c.create(namespace("refused"))
		got := registrytest.Send(c.T, c.WithWatch, "refused")
		fidelity.Compare(c.T, registrytest.Outcomes(c.T), got, knownOutcomes)
	})
}

// TestDiscovered compares what discovery says of the server with what it says of a real API server.
func TestDiscovered(t *testing.T) {
	onBoth(t, nil, func(c cluster) {
		fidelity.Compare(c.T, registrytest.Discovered(c.T), registrytest.Discover(c.T, c.config), knownDiscovery)
	})
}

// TestTraits compares what the server does to all objects of a kind with what a real API server did.
func TestTraits(t *testing.T) {
	onBoth(t, nil, func(c cluster) {
		c.create(namespace("traits"))
		got := registrytest.FindTraits(c.T, c.WithWatch, "traits", registrytest.ServedKinds(c.T, c.config))
		fidelity.Compare(c.T, registrytest.KnownTraits(c.T), got, knownTraits)
	})
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

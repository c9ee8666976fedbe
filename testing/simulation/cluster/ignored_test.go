package cluster

import (
	"slices"
	"testing"
)

func TestIgnoredFieldsAreNamed(t *testing.T) {
	t.Parallel()
	env := &Environment{BinaryAssetsDirectory: "bin", AttachControlPlaneOutput: true, ErrorIfCRDPathMissing: true}
	env.ControlPlane.GetAPIServer()
	want := []string{"AttachControlPlaneOutput", "BinaryAssetsDirectory", "ControlPlane"}
	if got := env.ignored(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

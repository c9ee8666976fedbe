package software_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/version"
	discoveryfake "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/chart/software"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/component/api/v9alpha9"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/testing/preview"
)

// TestObjects compares what is deployed with golden files, which "go test ./software -preview.update" writes.
func TestObjects(t *testing.T) {
	made, err := software.NewGenerator()
	if err != nil {
		t.Fatal(err)
	}
	// The chart may ask which cluster it is for.
	nothing := clientfake.NewClientBuilder().Build()
	discovery := &discoveryfake.FakeDiscovery{
		Fake:               &clienttesting.Fake{},
		FakedServerVersion: &version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.0"},
	}
	preview.Golden(t, preview.Config[v9alpha9.PlaceholderSpec]{
		Dir: "testdata",
		Render: func(spec v9alpha9.PlaceholderSpec) ([]client.Object, error) {
			ctx := generator.NewContext(t.Context()).WithComponent(&v9alpha9.Placeholder{Spec: spec}).
				WithReconcilerName("test").WithClient(nothing).WithDiscovery(discovery).WithComponentRevision(1)
			return preview.Generated[*v9alpha9.PlaceholderSpec](ctx, made, "default", "sample")(&spec)
		},
		Cases: map[string]v9alpha9.PlaceholderSpec{
			"one": {Image: "nginx:stable", Replicas: 1},
			"two": {Image: "nginx:mainline", Replicas: 2},
		},
	})
}

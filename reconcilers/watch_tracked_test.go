package reconcilers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// Without a root there is no controller that could watch a type. That is said once, and not in a table row.
func TestTrackingWithoutAControllerIsSaid(t *testing.T) {
	reconcilers.ForgetUnwatched() // the test may run twice
	row := expectWidget().Config()
	other, err := cluster.New(&rest.Config{Host: "http://127.0.0.1:1"}, func(options *cluster.Options) {
		options.Scheme = resources.NewScheme()
	})
	if err != nil {
		t.Fatal(err)
	}
	handwritten := row.WithCluster(other)
	handwritten.Client = row.Client
	for _, test := range []struct {
		name   string
		config reconcilers.Config
		said   int
	}{
		{"a row", row, 0},
		{"a hand-written reconciler", handwritten, 1},
	} {
		var logged []string
		logger := funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{})
		ctx := logr.NewContext(testContext(t, test.config), logger)
		for range 2 {
			if err := test.config.TrackAndList(ctx, &storagev1.StorageClassList{}); err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		said := 0
		for _, line := range logged {
			if strings.Contains(line, "StorageClass.storage.k8s.io") && strings.Contains(line, "EnqueueTracked(ctx)") {
				said++
			}
		}
		if said != test.said {
			t.Errorf("%s: it was said %d times, want %d, in %s", test.name, said, test.said, fmt.Sprint(logged))
		}
	}
}

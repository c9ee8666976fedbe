package espalier_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// databaseOf finds an object of somebody else by its label.
func databaseOf(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return nil, err
	}
	found := &corev1.ConfigMapList{}
	err = config.TrackAndList(ctx, found, client.InNamespace(w.Namespace), client.MatchingLabels{"for": w.Name})
	switch {
	case err != nil:
		return nil, err
	case len(found.Items) == 0:
		return nil, espalier.NotReady("NoDatabase", "no ConfigMap has the label for=%s", w.Name)
	}
	return &found.Items[0], nil
}

// What is only read can be found by a label: desired lists with a track, and returns what is to be read.
func TestReadOnlyByLabel(t *testing.T) {
	found := configMap.With(exists, func(c *corev1.ConfigMap) {
		c.Name, c.OwnerReferences, c.Labels = "theirs", nil, map[string]string{"for": "gadget"}
	})
	listed := rtesting.CreateTrackRequest("", "ConfigMap", "default", "").By("default", "gadget")
	listed.TrackedReference = tracker.Reference{
		Kind: "ConfigMap", Namespace: "default", Selector: labels.SelectorFromSet(labels.Set{"for": "gadget"}),
	}
	read := rtesting.NewTrackRequest(found, widget, scheme)
	run(t, tests{
		"there is one": {
			Resource: widget.Object(), GivenObjects: []object{found}, ExpectTracks: []rtesting.TrackRequest{listed, read},
			ExpectResource: widget.With(isReady).Object(),
		},
		"there is none": {
			Resource: widget.Object(), GivenObjects: []object{configMap.With(exists)},
			ExpectTracks: []rtesting.TrackRequest{listed}, ExpectResource: widget.With(is("Ready", metav1.ConditionFalse,
				"NoDatabase", "no ConfigMap has the label for=gadget")).Object(),
		},
	}, func() node { return espalier.Owns("Database", databaseOf).ReadOnly().Reports("Ready") })
}

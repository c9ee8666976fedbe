package memserver_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/testing/internal/memserver"
)

func TestApplyThatChangesNothingStoresNothing(t *testing.T) {
	ctx := context.Background()
	c, _ := memserver.New(clientgoscheme.Scheme).Build(fake.NewClientBuilder().WithObjects(configMap(data{"k": "1"})))
	versions := map[string]string{}
	for _, by := range []string{"a", "a, again", "b", "b, again"} {
		config := corev1apply.ConfigMap("settings", "default").WithData(data{"k": "1"})
		if err := c.Apply(ctx, config, client.FieldOwner(by[:1])); err != nil {
			t.Fatal(err)
		}
		versions[by] = *config.ResourceVersion
	}
	for by, want := range map[string]string{"a": "1000", "a, again": "1000", "b": "1001", "b, again": "1001"} {
		if versions[by] != want {
			t.Errorf("the apply by %s left version %s, want %s: that it owns the field too is all that can change", by, versions[by], want)
		}
	}
}

func TestApplyMeansOneObject(t *testing.T) {
	for name, tc := range map[string]struct {
		given  *corev1.ConfigMap
		uid    types.UID
		refuse func(error) bool
	}{
		"the object":          {given: configMap(data{"k": "1"}), uid: "first", refuse: func(err error) bool { return err == nil }},
		"another of its name": {given: configMap(data{"k": "1"}), uid: "second", refuse: apierrors.IsInvalid},
		"one that is gone":    {uid: "first", refuse: apierrors.IsConflict},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder()
			if tc.given != nil {
				tc.given.UID = "first"
				builder = builder.WithObjects(tc.given)
			}
			c, _ := memserver.New(clientgoscheme.Scheme).Build(builder)
			config := corev1apply.ConfigMap("settings", "default").WithUID(tc.uid).WithData(data{"k": "2"})
			err := c.Apply(context.Background(), config, client.FieldOwner("a"), client.ForceOwnership)
			if !tc.refuse(err) {
				t.Errorf("returned %v", err)
			}
		})
	}
}

// Managed fields can be handed from one manager to another, as on a real server.
func TestManagedFieldsCanBeRewritten(t *testing.T) {
	ctx := context.Background()
	c, _ := memserver.New(clientgoscheme.Scheme).Build(fake.NewClientBuilder().WithReturnManagedFields())
	given := configMap(data{"k": "1", "l": "1"})
	if err := c.Create(ctx, given, client.FieldOwner("old")); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(given), given); err != nil {
		t.Fatal(err)
	}
	handed := given.DeepCopy()
	handed.ManagedFields[0].Manager = "new"
	handed.ManagedFields[0].Operation = metav1.ManagedFieldsOperationApply
	if err := c.Patch(ctx, handed, client.MergeFrom(given), client.FieldOwner("new")); err != nil {
		t.Fatal(err)
	}
	config := corev1apply.ConfigMap("settings", "default").WithData(data{"k": "1"})
	if err := c.Apply(ctx, config, client.FieldOwner("new")); err != nil {
		t.Fatal(err)
	}
	if len(config.Data) != 1 {
		t.Errorf("what the new manager does not want stays: %v", config.Data)
	}
}

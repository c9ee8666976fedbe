package component_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type assemblyOptions = component.Options[*resources.Assembly]

// An operator that starts to keep inventories in objects takes over those in statuses, and nothing is lost: what was dropped meanwhile
// still goes. It does not go back: the objects would be forgotten.
func TestInventoryMovesToObjects(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	first := startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	stays, drops := partOf(namespace, "stays", "0"), partOf(namespace, "drops", "0")
	assembly := resources.NewAssembly(namespace, "all", stays, drops)
	if err := c.Create(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	ready := func(ctx context.Context) error { return hasState(ctx, c, assembly, apis.ComponentReady) }
	controlplanetest.Eventually(t, "it is not deployed", ready)
	first.stop()

	assembly.SetObjects(stays)
	if err := c.Update(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	second := startComponents(t, plane.Config(t), namespace, assemblyOptions{Inventory: component.Inventory{Kind: "ConfigMap"}})
	controlplanetest.Eventually(t, "what was dropped does not go", goneFrom(c, drops))
	controlplanetest.Eventually(t, "it is not ready", ready)
	if n := len(assembly.Status.Inventory); n > 0 || assembly.Status.InventoryKind != "ConfigMap" {
		t.Errorf("the status has %d records and the kind %q, want none and ConfigMap", n, assembly.Status.InventoryKind)
	}
	second.stop()

	third := startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	if err := c.Delete(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the deletion is not refused", func(ctx context.Context) error {
		return conditionSays(ctx, c, assembly, component.ReasonError, "The inventory is kept in a ConfigMap")
	})
	third.stop()
	startComponents(t, plane.Config(t), namespace, assemblyOptions{Inventory: component.Inventory{Kind: "ConfigMap"}})
	controlplanetest.Eventually(t, "it does not go", goneFrom(c, assembly, stays))
	left := &corev1.ConfigMapList{}
	if err := c.List(t.Context(), left, client.InNamespace(namespace), client.HasLabels{componentPrefix + "/inventory"}); err != nil || len(left.Items) > 0 {
		t.Errorf("%d objects of the inventory are left (%v), want none", len(left.Items), err)
	}
}

// When the kubeconfig leads to another cluster all at once, the objects there are not taken for gone.
func TestComponentStaysInItsCluster(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	part := partOf(namespace, "part", "0")
	assembly := resources.NewAssembly(namespace, "all", part)
	if err := c.Create(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not deployed", func(ctx context.Context) error {
		return hasState(ctx, c, assembly, apis.ComponentReady)
	})

	// The other cluster is another API server.
	other, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Stop(); err != nil {
			t.Error(err)
		}
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}, Data: map[string][]byte{"value": kubeconfigOf(t, other.Config())}}
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	patch := func(text string) {
		t.Helper()
		if err := c.Patch(t.Context(), assembly, client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"spec":{"kubeConfig":{"secretRef":{"name":"other"}}}}`)
	says := func(ctx context.Context) error {
		return conditionSays(ctx, c, assembly, component.ReasonError, "The objects are in another cluster")
	}
	controlplanetest.Eventually(t, "it moves", says)
	if err := c.Delete(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is taken for gone", says)
	if len(assembly.Status.Inventory) != 1 {
		t.Errorf("the inventory has %d records, want 1", len(assembly.Status.Inventory))
	}
	patch(`{"spec":{"kubeConfig":null}}`)
	controlplanetest.Eventually(t, "it does not go", goneFrom(c, assembly, part))
}

// spoiler changes objects as they are written, as admission may do: they lose an annotation.
type spoiler struct {
	next http.RoundTripper
	from []byte
}

func (s *spoiler) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && strings.Contains(r.URL.Path, "/configmaps") {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.ReplaceAll(body, s.from, []byte("spoilt"))
		r = r.Clone(r.Context())
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return s.next.RoundTrip(r)
}

// What does not become what is desired is not written again and again, but less and less often, and the condition says why.
func TestWritingInVainEnds(t *testing.T) {
	t.Parallel()
	config := rest.CopyConfig(plane.Config(t))
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &spoiler{next: next, from: []byte(componentPrefix + "/" + generator.AnnotationDigest)}
	})
	c, namespace := live(t), plane.Namespace(t)
	op := startComponents(t, config, namespace, assemblyOptions{})
	assembly := resources.NewAssembly(namespace, "all", partOf(namespace, "part", "0"))
	if err := c.Create(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not said", func(ctx context.Context) error {
		return conditionSays(ctx, c, assembly, component.ReasonContested, "ConfigMap "+namespace+"/part",
			"another client or a webhook keeps changing .metadata.annotations."+componentPrefix+"/"+generator.AnnotationDigest)
	})
	controlplanetest.Rest(t, op.requests)
}

// Nobody watches what is in the way and has no marks; when it goes, the component goes on all the same.
func TestWhatIsInTheWayGoes(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	theirs := partOf(namespace, "part", "0")
	theirs.Data = map[string]string{"owner": "somebody else"}
	if err := c.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	part := partOf(namespace, "part", "0")
	part.Annotations[generator.SharedPrefix+"/"+generator.AnnotationAdoptionPolicy] = "never"
	assembly := resources.NewAssembly(namespace, "all", part)
	if err := c.Create(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not said", func(ctx context.Context) error {
		return conditionSays(ctx, c, assembly, component.ReasonProcessing, "ConfigMap "+namespace+"/part: it exists already")
	})
	version := theirs.ResourceVersion
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil || theirs.ResourceVersion != version {
		t.Errorf("the object was touched (%v): resource version %s, want %s", err, theirs.ResourceVersion, version)
	}
	if err := c.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it does not go on", func(ctx context.Context) error {
		found := &corev1.ConfigMap{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(part), found); err != nil {
			return err
		}
		if found.Data["name"] != "part" {
			return errors.New("it is somebody else's")
		}
		return nil
	})
}

package takeover_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

// TestHandOver hands components over: one whose objects are in its cluster, and one that reaches the same API server
// with a kubeconfig.
func TestHandOver(t *testing.T) {
	t.Parallel()
	t.Run("here", func(t *testing.T) {
		t.Parallel()
		c := newClient(t)
		testHandOver(t, c, deploy(t, c))
	})
	t.Run("elsewhere", func(t *testing.T) {
		t.Parallel()
		c := newClient(t)
		testHandOver(t, c, deploy(t, c, func(a *resources.Assembly) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "elsewhere"}}
			secret.Data = map[string][]byte{"value": kubeConfigOf(t, plane.Config(t))}
			if err := c.Create(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			a.Spec.KubeConfig = &generator.KubeConfigSpec{SecretRef: generator.SecretKeyReference{Name: secret.Name}}
		}))
	})
}

// kubeConfigOf returns a kubeconfig that needs no files.
func kubeConfigOf(t *testing.T, config *rest.Config) []byte {
	t.Helper()
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		}},
		Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}}, CurrentContext: "c",
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// testHandOver hands a component over. The new operator makes nothing again and deletes nothing. Its next releases drop
// a field, an object and the component, and all three go.
func testHandOver(t *testing.T, c client.Client, o *oldComponent) {
	t.Helper()
	before := o.uids(t, c)
	if _, err := newDoor(t, plane.Config(t)).run(t, o.Namespace); err != nil {
		t.Fatalf("the components are not handed over: %v", err)
	}
	if after := o.uids(t, c); !maps.Equal(before, after) {
		t.Fatalf("the objects are %v, want those that there were, %v", after, before)
	}

	requests, stop := startOperator(t, o.Namespace)
	defer stop()
	isReady(t, c, o, 1)
	if after := o.uids(t, c); !maps.Equal(before, after) {
		t.Errorf("the new operator has the objects %v, want those that there were, %v", after, before)
	}
	for request, n := range requests.Counts() {
		event := strings.HasSuffix(request.Path, "/events")
		written := request.Verb == "patch" && (n > 1 || strings.HasSuffix(request.Path, "/seed"))
		if written || request.Verb == "delete" || request.Verb == "create" && !event {
			t.Errorf("the new operator makes %d requests %v, want one patch of each object that is not written once, "+
				"and none that creates or deletes", n, request)
		}
	}

	manifests := o.objects
	unstructured.RemoveNestedField(manifests[0].Object, "data", "dropped")
	o.change(t, c, slices.Concat(manifests[:1], manifests[2:]))
	isReady(t, c, o, 2)
	settings := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(manifests[0]), settings); err != nil {
		t.Fatal(err)
	}
	if _, ok := settings.Data["dropped"]; ok || settings.Data["kept"] != "1" {
		t.Errorf("the settings are %v, want kept alone", settings.Data)
	}
	isGone(t, c, manifests[1])
	if uid := o.uids(t, c)["ConfigMap fixed"]; uid != before["ConfigMap fixed"] {
		t.Errorf("an object with the update policy recreate was recreated, and its manifest has not changed")
	}

	if err := c.Delete(t.Context(), o.Assembly); err != nil {
		t.Fatal(err)
	}
	for _, object := range manifests {
		isGone(t, c, object)
	}
	isGone(t, c, o.Assembly)
}

// TestDeletedMeanwhile deletes a component whose takeover was interrupted. The next run finishes it, and the new
// operator deletes everything.
func TestDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	o, d := deploy(t, c), newDoor(t, plane.Config(t))
	d.killAt = 4
	if out, err := d.run(t, o.Namespace); err == nil {
		t.Fatalf("the command is not interrupted; it prints %s", out)
	}
	if err := c.Delete(t.Context(), o.Assembly); err != nil {
		t.Fatal(err)
	}
	d.killAt, d.dead = 0, false
	out, err := d.run(t, o.Namespace, "--rollback")
	if err == nil || !strings.Contains(err.Error(), "let the new operator finish") {
		t.Errorf("a rollback ends with %v, want an error that leaves it to the new operator\n%s", err, out)
	}
	if out, err := d.run(t, o.Namespace); err != nil {
		t.Fatalf("the takeover is not finished: %v\n%s", err, out)
	}
	_, stop := startOperator(t, o.Namespace)
	defer stop()
	for _, object := range o.objects {
		isGone(t, c, object)
	}
	isGone(t, c, o.Assembly)
}

// TestOthersAreLeftAlone takes over nothing that is recorded and has the label of another owner.
func TestOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	o, d := deploy(t, c), newDoor(t, plane.Config(t))
	settings := &corev1.ConfigMap{}
	key := client.ObjectKeyFromObject(o.objects[0])
	theirs := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+oldName+`/owner-id":"theirs"}}}`))
	settings.Namespace, settings.Name = key.Namespace, key.Name
	if err := c.Patch(t.Context(), settings, theirs, client.FieldOwner("them")); err != nil {
		t.Fatal(err)
	}
	before := settings.ResourceVersion
	for _, args := range [][]string{{}, {"--finalize"}} {
		out, err := d.run(t, o.Namespace, args...)
		const want = "settings does not have its owner label, and is left alone"
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%v: it prints %q, and the error is %v, want %q", args, out, err, want)
		}
	}
	if err := c.Get(t.Context(), key, settings); err != nil {
		t.Fatal(err)
	}
	if settings.ResourceVersion != before {
		t.Errorf("an object of another owner was changed to %v", settings)
	}
}

// change gives the component other objects.
func (o *oldComponent) change(t *testing.T, c client.Client, manifests []*unstructured.Unstructured) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o.Assembly), o.Assembly); err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, manifest := range manifests {
		objects = append(objects, manifest)
	}
	o.SetObjects(objects...)
	if err := c.Update(t.Context(), o.Assembly); err != nil {
		t.Fatal(err)
	}
}

// isReady waits until the new operator has made a generation ready.
func isReady(t *testing.T, c client.Client, o *oldComponent, generation int64) {
	t.Helper()
	controlplanetest.Eventually(t, "the component is not ready", func(ctx context.Context) error {
		rollOut(t, c, client.ObjectKey{Namespace: o.Namespace, Name: "server"})
		a := &resources.Assembly{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(o.Assembly), a); err != nil {
			return err
		}
		ours := slices.ContainsFunc(a.Status.Inventory, func(r apis.InventoryRecord) bool { return r.Fields != "" })
		if s := &a.Status; s.State != apis.ComponentReady || s.AppliedGeneration != generation || !ours {
			return fmt.Errorf("it is %s with the generation %d, want Ready and %d: %v; the inventory is %v",
				s.State, s.AppliedGeneration, generation, s.Conditions, s.Inventory)
		}
		return nil
	})
}

func isGone(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	what := fmt.Sprintf("%T %s is not gone", object, object.GetName())
	controlplanetest.Eventually(t, what, func(ctx context.Context) error {
		live := &unstructured.Unstructured{}
		kind, err := c.GroupVersionKindFor(object)
		if err != nil {
			return err
		}
		live.SetGroupVersionKind(kind)
		err = c.Get(ctx, client.ObjectKeyFromObject(object), live)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(fmt.Errorf("it has the finalizers %v and the status %v", live.GetFinalizers(),
			live.Object["status"]), err)
	})
}

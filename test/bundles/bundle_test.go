package bundles_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bundle is a component with the manifests of a file, in two revisions.
type bundle struct {
	*testing.T
	client.Client
	name     string
	requests *controlplane.Requests
	values   values
	// twin is a namespace for comparisons.
	twin     string
	assembly *resources.Assembly
	started  time.Time
}

// newBundle starts an operator for the bundle.
func newBundle(t *testing.T, name string, change ...func(*values)) *bundle {
	t.Helper()
	b := &bundle{T: t, Client: live(t), name: name, values: values{Namespace: plane.Namespace(t), Revision: 1},
		twin: plane.Namespace(t), started: time.Now()}
	for _, change := range change {
		change(&b.values)
	}
	revisions := map[string][]*unstructured.Unstructured{}
	for _, revision := range []int{1, 2} {
		v := b.values
		v.Revision = revision
		revisions[strconv.Itoa(revision)] = manifests(t, name, v)
	}
	made := generator.GeneratorFunc(
		func(_ context.Context, _, _ string, parameters generator.Unstructurable) ([]client.Object, error) {
			input, _, err := unstructured.NestedSlice(parameters.ToUnstructured(), "objects")
			if err != nil {
				return nil, err
			}
			revision, _, err := unstructured.NestedString(input[0].(map[string]any), "data", "name")
			var objects []client.Object
			for _, object := range revisions[revision] {
				objects = append(objects, object.DeepCopy())
			}
			return objects, err
		})
	b.requests = startOperator(t, b.values.Namespace, made, options{})
	return b
}

// manifestsOf are the objects of a revision. Those of lists are among them.
func (b *bundle) manifestsOf(revision int) []*unstructured.Unstructured {
	b.Helper()
	v := b.values
	v.Revision = revision
	return expanded(b.T, manifests(b.T, b.name, v))
}

// manifests are the objects of the present revision.
func (b *bundle) manifests() []*unstructured.Unstructured {
	b.Helper()
	return b.manifestsOf(b.values.Revision)
}

// log says what the last steps took.
func (b *bundle) log(what string) {
	b.Helper()
	b.Logf("%-8s %5.1f s, %3d requests, %3d writes", what,
		time.Since(b.started).Seconds(), b.requests.Total(), b.requests.Writes())
	b.requests.Reset()
	b.started = time.Now()
}

// install rolls out the first revision.
func (b *bundle) install() {
	b.Helper()
	b.assembly = resources.NewAssembly(b.values.Namespace, b.name, configMap("", "1"))
	must(b, b.Create(b.Context(), b.assembly))
}

// upgrade rolls out the second revision.
func (b *bundle) upgrade() {
	b.Helper()
	b.values.Revision = 2
	eventually(b, "the component cannot be changed", func(ctx context.Context) error {
		if err := b.Get(ctx, client.ObjectKeyFromObject(b.assembly), b.assembly); err != nil {
			return err
		}
		b.assembly.SetObjects(configMap("", "2"))
		return b.Update(ctx, b.assembly)
	})
}

// isAsDesired waits until the component is ready, and as a server-side apply would have made it.
func (b *bundle) isAsDesired() {
	b.Helper()
	eventually(b, "it is not ready", isReady(b, b.assembly))
	eventually(b, "it is not as desired", func(ctx context.Context) error {
		if err := compareWithApply(ctx, b, b.thatStay(), b.twin); err != nil {
			_ = b.Get(ctx, client.ObjectKeyFromObject(b.assembly), b.assembly)
			return fmt.Errorf("%w\nthe conditions are %v", err, b.assembly.Status.Conditions)
		}
		return nil
	})
}

// thatStay are the objects of the present revision without those that delete themselves.
func (b *bundle) thatStay() []*unstructured.Unstructured {
	b.Helper()
	return slices.DeleteFunc(b.manifests(), deletesItself)
}

func deletesItself(object *unstructured.Unstructured) bool {
	_, ttl, _ := unstructured.NestedInt64(object.Object, "spec", "ttlSecondsAfterFinished")
	return ttl
}

// dropped are the objects of the first revision that the second does not have.
func (b *bundle) dropped() []client.Object {
	b.Helper()
	kept := map[string]bool{}
	for _, object := range b.manifestsOf(2) {
		kept[object.GetKind()+"/"+object.GetName()] = true
	}
	var objects []client.Object
	for _, object := range b.manifestsOf(1) {
		if !kept[object.GetKind()+"/"+object.GetName()] {
			objects = append(objects, object)
		}
	}
	return objects
}

// rests expects that the last events of a roll-out end, and that no request is made from then on, for a while.
func (b *bundle) rests() {
	b.Helper()
	staysAtRest(b, b.requests)
	b.started = time.Now()
}

// heals expects that what others delete and change is put right.
func (b *bundle) heals() {
	b.Helper()
	uids := map[types.UID]bool{}
	for _, object := range b.thatStay() {
		must(b, b.Get(b.Context(), client.ObjectKeyFromObject(object), object))
		uids[object.GetUID()] = true
	}
	for _, object := range b.thatStay() {
		must(b, client.IgnoreNotFound(b.Delete(b.Context(), object)))
	}
	eventually(b, "what was deleted does not come back", func(ctx context.Context) error {
		for _, object := range b.thatStay() {
			if err := b.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			if uids[object.GetUID()] {
				return fmt.Errorf("%s %s is not deleted yet", object.GetKind(), object.GetName())
			}
		}
		return nil
	})
	b.isAsDesired()
	b.log("recreate")

	for _, object := range b.thatStay() {
		what := fmt.Sprintf("%s %s is damaged", object.GetKind(), object.GetName())
		// A webhook refuses it as long as the server, which was deleted above, does not run again.
		eventually(b, what, func(context.Context) error { return b.damage(object) })
	}
	b.isAsDesired()
	b.log("heal")
}

// damages are what somebody changes in objects of a kind, as JSON patches.
var damages = map[string]string{
	"ConfigMap":                      `{"op": "replace", "path": "/data/key", "value": "damaged"}`,
	"Secret":                         `{"op": "replace", "path": "/data/key", "value": "ZGFtYWdlZA=="}`,
	"Service":                        `{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 9999}`,
	"Deployment":                     `{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "damaged"}`,
	"Gadget":                         `{"op": "replace", "path": "/spec/size", "value": 99}`,
	"Cluster":                        `{"op": "remove", "path": "/spec/size"}`,
	"ValidatingWebhookConfiguration": `{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 1}`,
	"ValidatingAdmissionPolicy":      `{"op": "replace", "path": "/spec/validations/0/message", "value": "damaged"}`,
	"NetworkPolicy":                  `{"op": "replace", "path": "/spec/ingress/0/ports/0/port", "value": 9999}`,
	"ClusterRoleBinding":             `{"op": "remove", "path": "/subjects"}`,
}

// damage changes a label of an object, and what is typical of its kind.
func (b *bundle) damage(object *unstructured.Unstructured) error {
	patch := `[{"op": "replace", "path": "/metadata/labels/part-of", "value": "damaged"}`
	if more := damages[object.GetKind()]; more != "" && object.Object["immutable"] == nil {
		patch += "," + more
	}
	return b.Patch(b.Context(), object, client.RawPatch(types.JSONPatchType, []byte(patch+"]")),
		client.FieldOwner("somebody"))
}

// goes deletes the component, and waits until all that it ever had is gone.
func (b *bundle) goes() {
	b.Helper()
	must(b, b.Delete(b.Context(), b.assembly))
	b.isGone()
}

// deleteRemnant deletes an aggregated role that its controller wrote once more after it was deleted. The component
// cannot prevent that. Such a role has no label of the bundle.
func (b *bundle) deleteRemnant(ctx context.Context, object client.Object) error {
	left := &rbacv1.ClusterRole{}
	err := b.Get(ctx, client.ObjectKeyFromObject(object), left)
	if err == nil && len(left.Labels) == 0 && left.AggregationRule == nil {
		err = b.Delete(ctx, left)
	}
	return client.IgnoreNotFound(err)
}

// isGone waits until the component and all that it ever had are gone.
func (b *bundle) isGone() {
	b.Helper()
	eventually(b, "the component is there", func(ctx context.Context) error {
		if err := gone(b, b.assembly)(ctx); err != nil {
			_ = b.Get(ctx, client.ObjectKeyFromObject(b.assembly), b.assembly)
			return fmt.Errorf("%w: the conditions are %v", err, b.assembly.Status.Conditions)
		}
		return nil
	})
	for _, object := range append(b.manifestsOf(1), b.manifestsOf(2)...) {
		eventually(b, object.GetKind()+" is there", func(ctx context.Context) error {
			if object.GetKind() == "ClusterRole" {
				must(b, b.deleteRemnant(ctx, object))
			}
			err := b.Get(ctx, client.ObjectKeyFromObject(object), object)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(fmt.Errorf("%s %s is left: %s", object.GetKind(), object.GetName(),
				object.GetDeletionTimestamp()), err)
		})
	}
	b.log("delete")
}

// lives leads the component from its installation to its deletion.
func (b *bundle) lives() {
	b.Helper()
	b.install()
	b.isAsDesired()
	b.log("install")
	b.rests()
	b.upgrade()
	b.isAsDesired()
	eventually(b, "what is dropped does not go", gone(b, b.dropped()...))
	b.log("upgrade")
	b.rests()
	b.heals()
	b.rests()
	b.goes()
}

// Roles whose rules a controller fills stay as it fills them.
func TestRolesBundle(t *testing.T) {
	controlplanetest.Real(t, "a controller has to aggregate ClusterRoles")
	t.Parallel()
	b := newBundle(t, "roles")
	b.install()
	b.isAsDesired()
	filled := func() {
		t.Helper()
		eventually(t, "the controller does not fill the roles", func(ctx context.Context) error {
			for _, name := range []string{"roles-admin", "roles-edit", "roles-view"} {
				role := &rbacv1.ClusterRole{}
				if err := b.Get(ctx, types.NamespacedName{Name: name}, role); err != nil {
					return err
				}
				last := role.Rules[max(0, len(role.Rules)-1):]
				if len(last) == 0 || len(last[0].Verbs) == 0 || last[0].APIGroups[0] != "serving.example.com" {
					return fmt.Errorf("%s has the rules %v", name, role.Rules)
				}
			}
			return nil
		})
	}
	filled()
	b.log("install")
	b.rests()
	b.upgrade()
	b.isAsDesired()
	filled()
	b.log("upgrade")
	b.rests()
	b.heals()
	filled()
	b.rests()
	b.goes()
}

// Types are installed together with their instances.
func TestTypesBundle(t *testing.T) {
	t.Parallel()
	b := newBundle(t, "types")
	runDeployments(t, b, b.values.Namespace, nil)
	b.lives()
}

// A webhook that fails closed does not refuse what its own server needs.
func TestWebhookBundle(t *testing.T) {
	t.Parallel()
	w := startWebhook(t)
	b := newBundle(t, "webhook", func(v *values) { v.WebhookURL, v.CABundle = w.url, w.caBundle })
	runDeployments(t, b, b.values.Namespace, w)
	b.lives()
}

// A definition of a million bytes is an object like others.
func TestLargeBundle(t *testing.T) {
	t.Parallel()
	newBundle(t, "large").lives()
}

// A namespace in which others have objects stays until these are gone.
func TestSharedBundle(t *testing.T) {
	t.Parallel()
	b := newBundle(t, "shared")
	b.install()
	b.isAsDesired()
	b.log("install")
	theirs := configMap(b.values.Namespace+"-system", "theirs")
	must(t, b.Create(t.Context(), theirs))
	b.rests()
	b.upgrade()
	b.isAsDesired()
	eventually(t, "what is dropped does not go", gone(b, b.dropped()...))
	b.log("upgrade")
	b.rests()

	must(t, b.Delete(t.Context(), b.assembly))
	text := fmt.Sprintf("blocked: Namespace %s: in use by ConfigMap %[1]s/theirs", theirs.Namespace)
	eventually(t, "it is not said what is in the way", says(b, b.assembly, component.ReasonDeletionBlocked, text))
	must(t, b.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs))
	b.log("block")
	must(t, b.Delete(t.Context(), theirs))
	b.isGone()
}

// An API without a server holds back neither the roll-out of anything else nor the deletion. No other test runs at the
// same time, since the garbage collection and the deletion of namespaces wait for such an API.
func TestAPIBundle(t *testing.T) {
	controlplanetest.Real(t, "an APIService has to name another API server")
	b := newBundle(t, "api")
	t.Cleanup(func() {
		for _, object := range b.manifests() {
			if object.GetKind() == "APIService" {
				must(t, client.IgnoreNotFound(b.Delete(context.Background(), object)))
			}
		}
	})
	others := func() []*unstructured.Unstructured {
		return slices.DeleteFunc(b.manifests(), func(object *unstructured.Unstructured) bool {
			return object.GetKind() == "APIService"
		})
	}
	areAsDesired := func() {
		t.Helper()
		eventually(t, "the API holds back others", func(ctx context.Context) error {
			return compareWithApply(ctx, b, others(), b.twin)
		})
	}
	b.install()
	areAsDesired()
	eventually(t, "it is not said what is waited for", says(b, b.assembly, component.ReasonProcessing,
		"APIService v1beta1.metrics.bundles.example.com"))
	b.log("install")
	b.rests()
	b.upgrade()
	areAsDesired()
	b.log("upgrade")
	must(t, b.Delete(t.Context(), b.assembly))
	b.isGone()
}

// Definitions that a policy of the bundle itself keeps from being changed.
func TestPolicyBundle(t *testing.T) {
	t.Parallel()
	b := newBundle(t, "policy")
	b.install()
	b.isAsDesired()
	b.log("install")
	b.rests()
	b.upgrade()
	const words = "Definitions of a release before 2 must not be installed."
	blocked := says(b, b.assembly, component.ReasonProcessing, words)
	eventually(t, "it is neither ready nor blocked by the policy", func(ctx context.Context) error {
		if isReady(b, b.assembly)(ctx) == nil {
			return nil
		}
		return blocked(ctx)
	})
	b.log("upgrade")
	if isReady(b, b.assembly)(t.Context()) == nil {
		// The policy of the new release came into force after the definition of the former one was deleted.
		must(t, b.Delete(t.Context(), b.assembly))
		b.isGone()
		return
	}
	must(t, b.Delete(t.Context(), b.assembly))
	eventually(t, "it is not said what is in the way",
		says(b, b.assembly, component.ReasonDeletionBlocked, words))
	// This is what the words advise. The next change of the definition is noticed at once.
	for _, object := range b.manifests() {
		if strings.HasPrefix(object.GetKind(), "ValidatingAdmissionPolicy") {
			must(t, b.Delete(t.Context(), object))
		}
	}
	eventually(t, "the policy is still in force", func(ctx context.Context) error {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"names":{"shortNames":["old"]}}}`))
		return b.Patch(ctx, b.dropped()[0], patch)
	})
	b.isGone()
}

// Jobs that delete themselves run once for each change.
func TestJobsBundle(t *testing.T) {
	t.Parallel()
	b := newBundle(t, "jobs")
	created := func() int {
		return b.requests.Counts()[controlplane.Request{
			Verb: "create", Path: "/apis/batch/v1/namespaces/" + b.values.Namespace + "/jobs",
		}]
	}
	leave := func() {
		t.Helper()
		for _, object := range slices.DeleteFunc(b.manifests(), func(o *unstructured.Unstructured) bool {
			return !deletesItself(o)
		}) {
			eventually(t, "a Job that has finished does not go", gone(b, object))
		}
	}
	b.install()
	b.isAsDesired()
	leave()
	if n := created(); n != 3 {
		t.Errorf("%d Jobs were created, not 3", n)
	}
	b.log("install")
	b.rests()
	b.upgrade()
	b.isAsDesired()
	leave()
	eventually(t, "what is dropped does not go", gone(b, b.dropped()...))
	if n := created(); n != 1 {
		t.Errorf("%d Jobs were created, not the one that has changed", n)
	}
	b.log("upgrade")
	b.rests()
	b.heals()
	b.rests()
	b.goes()
}

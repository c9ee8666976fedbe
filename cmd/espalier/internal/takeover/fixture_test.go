package takeover_test

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

const (
	// oldName is the name of the reconciler in the old operator, and so its finalizer and field owner.
	oldName   = "assemblies.old.test"
	newPrefix = "assemblies.new.test"
)

// manifests are what the old operator has deployed. NAME is part of the names of what is in no namespace.
const manifests = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  labels: {app: shop}
data: {kept: "1", dropped: "1"}
---
apiVersion: v1
kind: Secret
metadata:
  name: login
  annotations: {assemblies.old.test/update-policy: ssa-override}
stringData: {password: secret}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: seed
  annotations: {assemblies.old.test/reconcile-policy: once}
data: {seed: "42"}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: fixed
  annotations: {assemblies.old.test/update-policy: recreate}
data: {fixed: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: server
  annotations: {assemblies.old.test/apply-order: "1", assemblies.old.test/delete-order: "-1"}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: server, image: "shop:1", ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: migration
  annotations: {assemblies.old.test/purge-order: "2"}
data: {run: once}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: plots.NAME.test}
spec:
  group: NAME.test
  scope: Namespaced
  names: {plural: plots, singular: plot, kind: Plot, listKind: PlotList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}`

// parse returns the objects of manifests.
func parse(t *testing.T, namespace string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(strings.ReplaceAll(manifests, "NAME", namespace), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		if o.GetKind() != "CustomResourceDefinition" {
			o.SetNamespace(namespace)
		}
		objects = append(objects, o)
	}
	return objects
}

// oldComponent is a component that the old operator has deployed an hour ago.
type oldComponent struct {
	*resources.Assembly
	objects []*unstructured.Unstructured
	// text and hash are its owner annotation and label.
	text, hash string
}

// purged is the object that was removed after its wave.
const purged = "migration"

// deploy does what the old operator has done.
func deploy(t *testing.T, c client.Client, change ...func(*resources.Assembly)) *oldComponent {
	t.Helper()
	namespace := plane.Namespace(t)
	o := &oldComponent{objects: parse(t, namespace)}
	var objects []client.Object
	for _, object := range o.objects {
		objects = append(objects, object)
	}
	o.Assembly = resources.NewAssembly(namespace, "shop", objects...)
	o.Finalizers = []string{oldName}
	for _, f := range change {
		f(o.Assembly)
	}
	if err := c.Create(t.Context(), o.Assembly, client.FieldOwner(oldName)); err != nil {
		t.Fatal(err)
	}
	system := &corev1.Namespace{}
	if err := c.Get(t.Context(), types.NamespacedName{Name: "kube-system"}, system); err != nil {
		t.Fatal(err)
	}
	o.mark(string(system.UID), namespace)
	var records []any
	for _, object := range o.objects {
		records = append(records, o.write(t, c, object))
	}
	hour := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	status := map[string]any{"status": map[string]any{
		"observedGeneration": 1, "appliedGeneration": 1, "lastObservedAt": hour, "lastAppliedAt": hour,
		"processingDigest": strings.Repeat("a", 64), "lastProcessingDigest": strings.Repeat("a", 64), "revision": 3,
		"state": "Ready", "inventory": records,
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "lastTransitionTime": hour, "reason": "Ready", "message": "reconciled",
		}},
	}}
	patch, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	live := o.DeepCopy()
	err = c.Status().Patch(t.Context(), live, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(oldName))
	if err != nil {
		t.Fatal(err)
	}
	age(t, c, live)
	return o
}

// mark sets the marks of the component.
func (o *oldComponent) mark(cluster, namespace string) {
	o.text = cluster + "/" + namespace + "/shop"
	sum := sha256.Sum256([]byte(o.text))
	o.hash = strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// write writes one object as the old engine does, and returns its record.
func (o *oldComponent) write(t *testing.T, c client.Client, manifest *unstructured.Unstructured) map[string]any {
	t.Helper()
	annotations := manifest.GetAnnotations()
	policy := func(name, byDefault string) string {
		words := map[string]string{"ssa-override": "SsaOverride", "recreate": "Recreate", "once": "Once"}
		if word := words[annotations[oldName+"/"+name]]; word != "" {
			return word
		}
		return byDefault
	}
	order := func(name string) int {
		n, _ := strconv.Atoi(annotations[oldName+"/"+name])
		return n
	}
	content, err := manifest.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	if policy("reconcile-policy", "") == "Once" {
		digest = "__once__"
	}
	kind := manifest.GroupVersionKind()
	record := map[string]any{
		"group": kind.Group, "version": kind.Version, "kind": kind.Kind, "name": manifest.GetName(),
		"adoptionPolicy": "IfUnowned", "reconcilePolicy": policy("reconcile-policy", "OnObjectChange"),
		"updatePolicy": policy("update-policy", "Replace"), "deletePolicy": "Delete",
		"applyOrder": order("apply-order"), "deleteOrder": order("delete-order"),
		"digest": digest, "phase": "Ready", "status": "Current",
		"lastAppliedAt": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339),
	}
	if manifest.GetNamespace() != "" {
		record["namespace"] = manifest.GetNamespace()
	}
	live := manifest.DeepCopy()
	if kind.Kind == "CustomResourceDefinition" {
		group, _, _ := unstructured.NestedString(live.Object, "spec", "group")
		record["managedTypes"] = []any{map[string]any{"group": group, "version": "*", "kind": "Plot"}}
		live.SetFinalizers([]string{oldName})
	}
	if manifest.GetName() == purged {
		record["phase"] = "Completed"
		delete(record, "status")
		return record
	}
	live.SetLabels(with(live.GetLabels(), oldName+"/owner-id", o.hash))
	live.SetAnnotations(with(with(live.GetAnnotations(), oldName+"/owner-id", o.text), oldName+"/digest", digest))
	if strings.HasPrefix(record["updatePolicy"].(string), "Ssa") {
		err = c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(live), client.FieldOwner(oldName))
	} else {
		err = c.Create(t.Context(), live, client.FieldOwner(oldName))
	}
	if err != nil {
		t.Fatalf("%s is not created: %v", manifest.GetName(), err)
	}
	if kind.Kind == "CustomResourceDefinition" {
		isEstablished(t, c, live.GetName())
	}
	if kind.Kind == "Deployment" {
		rollOut(t, c, client.ObjectKeyFromObject(live))
	}
	age(t, c, live)
	return record
}

// isEstablished waits until the API server writes nothing to a definition any more.
func isEstablished(t *testing.T, c client.Client, name string) {
	t.Helper()
	controlplanetest.Eventually(t, name+" is not established", func(ctx context.Context) error {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, definition); err != nil {
			return err
		}
		for _, condition := range definition.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v", definition.Status.Conditions)
	})
}

func with(texts map[string]string, name, value string) map[string]string {
	if texts == nil {
		texts = map[string]string{}
	}
	texts[name] = value
	return texts
}

// rollOut does what the controller of Deployments does.
func rollOut(t *testing.T, c client.Client, key client.ObjectKey) {
	t.Helper()
	d := &appsv1.Deployment{}
	err := c.Get(t.Context(), key, d)
	if err == nil && d.Status.ObservedGeneration == d.Generation {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: "True", Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: "True", Reason: "NewReplicaSetAvailable"},
		},
	}
	err = c.Status().Update(t.Context(), d, client.FieldOwner("deployment-controller"))
	if err != nil && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
}

// age makes an object look as if it was last written an hour ago. The API server keeps the times of managed fields if
// nothing else changes, so an annotation goes with them.
func age(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	live := &metav1.PartialObjectMetadata{}
	kind, err := c.GroupVersionKindFor(object)
	if err != nil {
		t.Fatal(err)
	}
	live.SetGroupVersionKind(kind)
	live.Namespace, live.Name = object.GetNamespace(), object.GetName()
	young := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"test/young":""}}}`))
	if err := c.Patch(t.Context(), live, young, client.FieldOwner("time")); err != nil {
		t.Fatal(err)
	}
	isNow := func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "time" }
	entries := slices.DeleteFunc(live.ManagedFields, isNow)
	for i := range entries {
		entries[i].Time = new(metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second)))
	}
	patch, err := json.Marshal([]any{
		map[string]any{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		map[string]any{"op": "remove", "path": "/metadata/annotations/test~1young"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Patch(t.Context(), live, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// uids returns those of the objects that exist, by name.
func (o *oldComponent) uids(t *testing.T, c client.Client) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{}
	for _, live := range o.live(t, c) {
		uids[live.GetKind()+" "+live.GetName()] = live.GetUID()
	}
	return uids
}

// live returns the objects that exist.
func (o *oldComponent) live(t *testing.T, c client.Client) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, object := range o.objects {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(object.GroupVersionKind())
		err := c.Get(t.Context(), client.ObjectKeyFromObject(object), live)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if err == nil {
			all = append(all, live)
		}
	}
	return all
}

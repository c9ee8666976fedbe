package componentfaults_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const faultPrefix = "fault.espalier.test"

var faultScheme = resources.NewScheme()

// platformOf has the objects of the scenario, by what they are for.
type platformOf struct{ namespace, id string }

func (p platformOf) group() string { return p.id + ".gadgets.test" }

func (p platformOf) order(object client.Object, order string) client.Object {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[faultPrefix+"/"+generator.AnnotationApplyOrder] = order
	object.SetAnnotations(annotations)
	return object
}

func (p platformOf) configMap(name, order, content string) client.Object {
	return p.order(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name},
		Data:       map[string]string{"content": content},
	}, order)
}

func (p platformOf) definition() *apiextensionsv1.CustomResourceDefinition {
	crd := resources.CRD()
	crd.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	crd.Name = "gadgets." + p.group()
	crd.Spec.Group = p.group()
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"}
	return crd
}

func (p platformOf) gadget(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": p.group() + "/v1", "kind": "Gadget",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":     map[string]any{"size": "small"},
	}}
}

// job is removed again once its wave is done.
func (p platformOf) job() client.Object {
	job := p.configMap("job", "1", "once")
	annotations := job.GetAnnotations()
	annotations[faultPrefix+"/"+generator.AnnotationPurgeOrder] = "1"
	job.SetAnnotations(annotations)
	return job
}

func (p platformOf) rbac() []client.Object {
	role := &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "platform"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}},
	}
	binding := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "platform"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "platform"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: p.namespace, Name: "platform"}},
	}
	return []client.Object{p.order(role, "0"), p.order(binding, "0")}
}

func (p platformOf) first() []client.Object {
	return append(p.rbac(), p.definition(), p.configMap("settings", "1", "one"), p.job(), p.configMap("extra", "1", "x"),
		p.order(p.gadget(p.namespace, "own"), "2"), p.configMap("last", "2", "z"))
}

// second changes the settings and drops the extra.
func (p platformOf) second() []client.Object {
	return append(p.rbac(), p.definition(), p.configMap("settings", "1", "two"), p.job(),
		p.order(p.gadget(p.namespace, "own"), "2"), p.configMap("last", "2", "z"))
}

// third drops the type and its instance, and wants an object that belongs to another owner. The component does without
// it: nothing would be pruned otherwise.
func (p platformOf) third() []client.Object {
	taken := p.configMap("taken", "2", "ours")
	annotations := taken.GetAnnotations()
	annotations[faultPrefix+"/"+generator.AnnotationParticipation] = "auxiliary"
	taken.SetAnnotations(annotations)
	return append(p.rbac(), p.configMap("settings", "1", "two"), p.job(), p.configMap("last", "2", "z"), taken)
}

// bystanders belong to no component, and to another component.
func (p platformOf) bystanders() []client.Object {
	taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.namespace, Name: "taken",
		Labels:      map[string]string{faultPrefix + "/owner-id": "somebody-else"},
		Annotations: map[string]string{faultPrefix + "/owner-id": "Other.test/ns/name/uid"},
	}}
	return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "bystander"}}, taken}
}

// faultPhase is a step of the scenario: what the user does, and what is to come of it.
type faultPhase struct {
	name    string
	begin   func(ctx context.Context, c client.Client) error
	reached func(ctx context.Context, c client.Client) error
}

func (p platformOf) phases() []faultPhase {
	return []faultPhase{
		{"install", func(context.Context, client.Client) error { return nil }, p.ready},
		{"upgrade", p.desire(p.second()), p.ready},
		{"drop the type", func(ctx context.Context, c client.Client) error {
			return errors.Join(c.Create(ctx, p.theirs()), p.desire(p.third())(ctx, c))
		}, p.typeKept},
		{"delete", func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, p.platform())
		}, p.deletionBlocked},
		{"let it go", func(ctx context.Context, c client.Client) error { return c.Delete(ctx, p.theirs()) }, p.gone},
	}
}

// platform is the component as it is installed. Another client may create what it is about to create.
func (p platformOf) platform() *resources.Assembly {
	a := resources.NewAssembly(p.namespace, "platform", p.first()...)
	a.Spec.AdoptionPolicy, a.Spec.DeletePolicy = apis.AdoptIfUnowned, apis.DeleteDelete
	return a
}

// theirs is the instance of another owner.
func (p platformOf) theirs() *unstructured.Unstructured { return p.gadget("default", "theirs-"+p.id) }

func (p platformOf) read(ctx context.Context, c client.Client) (*resources.Assembly, error) {
	live := &resources.Assembly{}
	return live, c.Get(ctx, client.ObjectKeyFromObject(p.platform()), live)
}

// desire changes the objects of the component.
func (p platformOf) desire(objects []client.Object) func(ctx context.Context, c client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		live, err := p.read(ctx, c)
		if err != nil {
			return err
		}
		patch := live.DeepCopy()
		patch.SetObjects(objects...)
		return c.Patch(ctx, patch, client.MergeFrom(live))
	}
}

func (p platformOf) ready(ctx context.Context, c client.Client) error {
	live, err := p.read(ctx, c)
	if err == nil && (live.Status.State != apis.ComponentReady || live.Status.ObservedGeneration != live.Generation) {
		err = fmt.Errorf("not ready: %+v", live.Status.Conditions)
	}
	return err
}

// typeKept checks that the component has dropped all but the type that others use.
func (p platformOf) typeKept(ctx context.Context, c client.Client) error {
	live, err := p.read(ctx, c)
	if err == nil && !typeIsKept(live) {
		err = fmt.Errorf("the type is not kept: %+v", live.Status)
	}
	return err
}

func (p platformOf) deletionBlocked(ctx context.Context, c client.Client) error {
	live, err := p.read(ctx, c)
	if err == nil {
		err = hasReason(live, component.ReasonDeletionBlocked)
	}
	return err
}

func (p platformOf) gone(ctx context.Context, c client.Client) error {
	if _, err := p.read(ctx, c); !apierrs.IsNotFound(err) {
		return errors.Join(errors.New("it is still there"), err)
	}
	return nil
}

func hasReason(a *resources.Assembly, reason string) error {
	ready := meta.FindStatusCondition(a.Status.Conditions, apis.ConditionReady)
	if ready == nil || ready.Reason != reason || ready.ObservedGeneration != a.Generation {
		return fmt.Errorf("the condition is %+v", ready)
	}
	return nil
}

func typeIsKept(a *resources.Assembly) bool {
	ready := meta.FindStatusCondition(a.Status.Conditions, apis.ConditionReady)
	if ready == nil || ready.ObservedGeneration != a.Generation {
		return false
	}
	kept := false
	for _, record := range a.Status.Inventory {
		if record.Kind == "Gadget" {
			return false
		}
		kept = kept || record.Kind == "CustomResourceDefinition" && strings.Contains(record.Message, "in use by")
	}
	return kept
}

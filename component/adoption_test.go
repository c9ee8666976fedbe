package component_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// foundObject is an object that is there before the component.
type foundObject struct {
	// mark makes it somebody's.
	mark func(object *corev1.ConfigMap)
	// whose is what the condition says of it.
	whose string
	// unowned reports whether nobody is known to own it.
	unowned bool
	// writer is the field manager that writes it. Default: somebody.
	writer string
}

// labelled and noted make marks.
func labelled(pairs ...string) func(object *corev1.ConfigMap) {
	return func(o *corev1.ConfigMap) { o.Labels = mapOf(pairs) }
}

func noted(pairs ...string) func(object *corev1.ConfigMap) {
	return func(o *corev1.ConfigMap) { o.Annotations = mapOf(pairs) }
}

func mapOf(pairs []string) map[string]string {
	m := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		m[pair[0]] = pair[1]
	}
	return m
}

var foundObjects = map[string]foundObject{
	"by-hand": {
		mark: func(*corev1.ConfigMap) {}, whose: "it exists already and was written by somebody", unowned: true,
	},
	"of-a-chart": {
		mark:  labelled("app.kubernetes.io/managed-by", "Helm", "app.kubernetes.io/instance", "web"),
		whose: "it exists already and was written by somebody", unowned: true,
	},
	"of-helm": {
		mark:  noted("meta.helm.sh/release-name", "web", "meta.helm.sh/release-namespace", "shop"),
		whose: "it belongs to the Helm release shop/web",
	},
	"of-argo": {
		mark:  noted("argocd.argoproj.io/tracking-id", "web:/ConfigMap:shop/of-argo"),
		whose: "it belongs to the Argo CD application web",
	},
	"of-argo-by-label": {
		mark:  labelled("app.kubernetes.io/instance", "web"),
		whose: "it belongs to the Argo CD application web", writer: "argocd-controller",
	},
	"of-an-inventory": {
		mark: noted("config.k8s.io/owning-inventory", "web-1"), whose: "it belongs to the inventory web-1",
	},
	"of-an-apply-set": {
		mark: labelled("applyset.kubernetes.io/part-of", "web-v1"), whose: "it belongs to the ApplySet web-v1",
	},
	"of-olm": {
		mark:  labelled("olm.owner", "web.v1", "olm.owner.kind", "ClusterServiceVersion", "olm.owner.namespace", "shop"),
		whose: "it belongs to the ClusterServiceVersion shop/web.v1",
	},
	"of-fleet": {
		mark: noted("objectset.rio.cattle.io/id", "web"), whose: "it belongs to the Rancher object set web",
	},
	"of-the-addon-manager": {
		mark:  labelled("addonmanager.kubernetes.io/mode", "Reconcile"),
		whose: "it belongs to the addon manager in mode Reconcile",
	},
	"of-a-controller": {
		mark: func(o *corev1.ConfigMap) {
			o.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Namespace", Name: "default", UID: "none", Controller: new(true),
			}}
		},
		whose: "it is controlled by Namespace default",
	},
	"of-a-component": {
		mark:  noted("other.example.com/owner-id", "Shop/north/corner/uid"),
		whose: "it belongs to Shop north/corner",
	},
	"of-a-sibling": {
		mark: func(o *corev1.ConfigMap) {
			labelled(componentPrefix+"/owner-id", "other")(o)
			noted(componentPrefix+"/owner-id", "Shop/north/corner/uid")(o)
		},
		whose: "it belongs to Shop north/corner",
	},
}

// find creates the objects in a namespace, and returns them.
func find(t *testing.T, c client.Client, namespace string) map[string]*corev1.ConfigMap {
	t.Helper()
	found := map[string]*corev1.ConfigMap{}
	for name, object := range foundObjects {
		o := &corev1.ConfigMap{Data: map[string]string{"name": "found"}}
		o.Namespace, o.Name = namespace, name
		object.mark(o)
		if err := c.Create(t.Context(), o, client.FieldOwner(cmp.Or(object.writer, "somebody"))); err != nil {
			t.Fatal(err)
		}
		found[name] = o
	}
	return found
}

// adopting returns a component that desires an object, by an adoption policy.
func adopting(namespace, name string, policy generator.AdoptionPolicy) *resources.Assembly {
	assembly := resources.NewAssembly(namespace, "all-"+name, partOf(namespace, name, "0"))
	assembly.Spec.AdoptionPolicy = policy
	return assembly
}

// untouched reports an error unless the object is as it was.
func untouched(ctx context.Context, c client.Client, before *corev1.ConfigMap) error {
	now := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(before), now); err != nil {
		return err
	}
	if now.UID != before.UID || now.ResourceVersion != before.ResourceVersion {
		return fmt.Errorf("it was touched: %v", now)
	}
	return nil
}

// L4: by default nothing is adopted. The condition says whose an object is, and what would adopt it.
func TestFoundObjectsAreLeftAlone(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	found := find(t, c, namespace)
	for _, policy := range []generator.AdoptionPolicy{"", apis.AdoptIfUnowned} {
		for name, object := range foundObjects {
			if object.unowned && policy == apis.AdoptIfUnowned {
				continue
			}
			assembly := adopting(namespace, name, policy)
			if err := c.Create(t.Context(), assembly); err != nil {
				t.Fatal(err)
			}
			adopts := "always"
			if object.unowned {
				adopts = "if-unowned"
			}
			controlplanetest.Eventually(t, name+": it is not said", func(ctx context.Context) error {
				return conditionSays(ctx, c, assembly, component.ReasonProcessing,
					"not ours: ConfigMap "+namespace+"/"+name+": "+object.whose+"; adoption-policy: "+adopts+" adopts it")
			})
			if err := c.Delete(t.Context(), assembly); err != nil {
				t.Fatal(err)
			}
			controlplanetest.Eventually(t, name+": the component does not go", isGone(c, assembly))
			if err := untouched(t.Context(), c, found[name]); err != nil {
				t.Errorf("%s, policy %q: %v", name, policy, err)
			}
		}
	}
}

// What nobody owns is adopted where that is said, with an event and a record, and stays when the component goes. Each
// object is adopted with the policy always.
func TestAdoption(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	found := find(t, c, namespace)
	for name, object := range foundObjects {
		policy := apis.AdoptAlways
		if object.unowned {
			policy = apis.AdoptIfUnowned
		}
		assembly := adopting(namespace, name, policy)
		if err := c.Create(t.Context(), assembly); err != nil {
			t.Fatal(err)
		}
		controlplanetest.Eventually(t, name+": it is not adopted", func(ctx context.Context) error {
			return hasState(ctx, c, assembly, apis.ComponentReady)
		})
		record := assembly.Status.Inventory[0]
		if !record.Adopted || record.DeletePolicy != apis.DeleteOrphan || record.UID != found[name].UID {
			t.Errorf("%s: the record is %+v, want it adopted, to be orphaned, with the UID %s", name, record,
				found[name].UID)
		}
		controlplanetest.Eventually(t, name+": there is no event", func(ctx context.Context) error {
			return hasEvent(ctx, c, assembly, "Adopted", "Adopted ConfigMap "+namespace+"/"+name)
		})
		if err := c.Delete(t.Context(), assembly); err != nil {
			t.Fatal(err)
		}
		controlplanetest.Eventually(t, name+": the component does not go", isGone(c, assembly))
		left := &corev1.ConfigMap{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(found[name]), left); err != nil {
			t.Fatal(err)
		}
		_, annotated := left.Annotations[componentPrefix+"/owner-id"]
		if _, labelled := left.Labels[componentPrefix+"/owner-id"]; labelled || annotated || left.UID != found[name].UID {
			t.Errorf("%s: what is left is %+v, want it without our marks and with the UID %s", name, left.ObjectMeta,
				found[name].UID)
		}
	}
}

// A delete policy says otherwise, and so does a new creation: what was adopted is then deleted with the component.
func TestAdoptionThatEnds(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	key := generator.SharedPrefix + "/" + generator.AnnotationDeletePolicy
	for name, test := range map[string]struct {
		object, component string
		anew              bool
	}{
		"by-annotation": {object: "delete"},
		"by-spec":       {component: "delete"},
		"created-anew":  {anew: true},
	} {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		part := partOf(namespace, name, "0")
		if test.object != "" {
			part.Annotations[key] = test.object
		}
		assembly := resources.NewAssembly(namespace, "all-"+name, part)
		assembly.Spec.AdoptionPolicy, assembly.Spec.DeletePolicy = apis.AdoptIfUnowned, generator.DeletePolicy(test.component)
		ready := assemble(t, c, assembly)
		ready(name + ": it is not adopted")
		if !assembly.Status.Inventory[0].Adopted {
			t.Errorf("%s: the record is %+v, want it adopted", name, assembly.Status.Inventory[0])
		}
		if test.anew {
			if err := c.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			controlplanetest.Eventually(t, name+": it is not created anew", func(ctx context.Context) error {
				if err := c.Get(ctx, client.ObjectKeyFromObject(assembly), assembly); err != nil {
					return err
				}
				if record := assembly.Status.Inventory[0]; record.Adopted || record.DeletePolicy != "" || record.UID == o.UID {
					return fmt.Errorf("the record is %+v", record)
				}
				return nil
			})
			ready(name + ": it is not created anew")
		}
		if err := c.Delete(t.Context(), assembly); err != nil {
			t.Fatal(err)
		}
		controlplanetest.Eventually(t, name+": the component does not go", isGone(c, assembly))
		if err := isGone(c, o)(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// hasEvent reports an error unless there is an event about an object.
func hasEvent(ctx context.Context, c client.Client, about client.Object, reason, message string) error {
	events := &corev1.EventList{}
	if err := c.List(ctx, events, client.InNamespace(about.GetNamespace())); err != nil {
		return err
	}
	var seen []string
	for _, e := range events.Items {
		if e.InvolvedObject.UID != about.GetUID() {
			continue
		}
		if e.Reason == reason && e.Message == message {
			return nil
		}
		seen = append(seen, e.Reason+": "+e.Message)
	}
	return errors.New("events are " + strings.Join(seen, "; "))
}

// That an object is adopted is durable before the object is written. A crash in between would otherwise have the
// component delete it in the end.
func TestL2AdoptionIsRecordedBefore(t *testing.T) {
	house, walls, _ := newHouse()
	house.SetObjects(walls)
	house.Spec.AdoptionPolicy = apis.AdoptIfUnowned
	found := walls.DeepCopy()
	found.UID = "found-uid"
	o := newOperated(t, assembling(), house, []client.Object{found})
	for range 20 {
		before := o.house(t).Status.Inventory
		if _, err := o.reconcile(t, time.Second); err != nil {
			t.Fatal(err)
		}
		for _, write := range o.writes {
			if strings.HasPrefix(write, "create ") || !strings.Contains(write, " ConfigMap/") {
				continue
			}
			if len(before) != 1 || !before[0].Adopted || before[0].UID != "" {
				t.Errorf("%s: the record was %+v, want one, adopted and without a UID, before", write, before)
			}
			return
		}
	}
	t.Error("no ConfigMap was written, want it adopted")
}

// A namespace that is there is left alone as well.
func TestFoundNamespaceIsLeftAlone(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	found := &corev1.Namespace{}
	found.Name = plane.Namespace(t)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
		t.Fatal(err)
	}
	desired := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	desired.Name = found.Name
	assembly := resources.NewAssembly(namespace, "all", desired)
	if err := c.Create(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not said", func(ctx context.Context) error {
		return conditionSays(ctx, c, assembly, component.ReasonProcessing, "not ours: Namespace "+found.Name+": it exists already")
	})
	if err := c.Delete(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the component does not go", isGone(c, assembly))
	now := &corev1.Namespace{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(found), now); err != nil || now.ResourceVersion != found.ResourceVersion {
		t.Errorf("the namespace was touched: %+v, %v, want the resource version %s", now.ObjectMeta, err,
			found.ResourceVersion)
	}
}

package fidelity

import (
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

// operatorChecks are what operators do every day, and mistakes that they make.
var operatorChecks = []check{
	{"operator: create or update", func(p *probe) {
		cm := &corev1.ConfigMap{ObjectMeta: p.metadata("a")}
		mutate := func() error {
			cm.Data = map[string]string{"a": "1"}
			return nil
		}
		for range 2 {
			result, err := controllerutil.CreateOrUpdate(p.ctx, p, cm, mutate)
			p.note("%s %s", verdict(err), result)
		}
		result, err := controllerutil.CreateOrUpdate(p.ctx, p, cm, func() error { cm.Data["b"] = "2"; return nil })
		p.note("%s %s", verdict(err), result)
	}},
	{"operator: create or update of a Deployment", func(p *probe) {
		d := &appsv1.Deployment{ObjectMeta: p.metadata("a")}
		mutate := func() error {
			d.Spec.Selector = selector()
			d.Spec.Template.Labels = map[string]string{"app": "a"}
			if len(d.Spec.Template.Spec.Containers) == 0 {
				d.Spec.Template.Spec.Containers = make([]corev1.Container, 1)
			}
			d.Spec.Template.Spec.Containers[0].Name, d.Spec.Template.Spec.Containers[0].Image = "main", "nginx"
			return nil
		}
		for range 2 {
			result, err := controllerutil.CreateOrUpdate(p.ctx, p, d, mutate)
			p.note("%s %s", verdict(err), result)
		}
		result, err := controllerutil.CreateOrUpdate(p.ctx, p, d, func() error {
			d.Spec = p.deployment("a").Spec
			return nil
		})
		p.note("whole spec: %s %s generation %d", verdict(err), result, d.Generation)
	}},
	{"operator: create or patch with a status", func(p *probe) {
		w := &resources.Widget{ObjectMeta: p.metadata("a")}
		for range 2 {
			result, err := controllerutil.CreateOrPatch(p.ctx, p, w, func() error {
				w.Spec.Fields = map[string]string{"a": "b"}
				w.Status.Fields = map[string]string{"c": "d"}
				return nil
			})
			p.note("%s %s", verdict(err), result)
		}
		now := p.read(w).(*resources.Widget)
		p.note("%v %v", now.Spec.Fields, now.Status.Fields)
	}},
	{"operator: life of a custom resource with a finalizer", func(p *probe) {
		w := &resources.Widget{ObjectMeta: p.metadata("a")}
		p.given(w)
		base := w.DeepCopy()
		controllerutil.AddFinalizer(w, finalizer)
		p.call("add", p.patch(w, client.MergeFrom(base)))
		cm := p.configMap("child")
		p.must(controllerutil.SetControllerReference(w, cm, p.Scheme()))
		p.call("child", p.create(cm))
		w.Status.AddField("ready", "yes")
		p.call("status", p.updateStatus(w))
		p.call("delete", p.remove(w.DeepCopy()))
		p.must(p.get(w))
		p.note("terminating %t generation %d %v", w.DeletionTimestamp != nil, w.Generation, w.Status.Fields)
		controllerutil.RemoveFinalizer(w, finalizer)
		p.call("remove", p.update(w))
		p.exists("exists", w)
		p.eventually("child gone", func() bool { return p.gone(cm) })
		p.call("status", p.updateStatus(w))
	}},
	{"operator: two writers at once", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			wg.Go(func() {
				mine := cm.DeepCopy()
				mine.Data["writer"] = string(rune('a' + i))
				errs[i] = p.update(mine)
			})
		}
		wg.Wait()
		won, conflicts := 0, 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case apierrors.IsConflict(err):
				conflicts++
			}
		}
		p.note("%d won, %d conflicts", won, conflicts)
	}},
	{"operator: two creators at once", func(p *probe) {
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			wg.Go(func() { errs[i] = p.create(p.configMap("a")) })
		}
		wg.Wait()
		won, exist := 0, 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case apierrors.IsAlreadyExists(err):
				exist++
			}
		}
		p.note("%d won, %d exist", won, exist)
	}},
	{"operator: status changed in a main update is lost", func(p *probe) {
		w := &resources.Widget{ObjectMeta: p.metadata("a")}
		p.given(w)
		w.Spec.Fields, w.Status.Fields = map[string]string{"a": "b"}, map[string]string{"c": "d"}
		p.must(p.update(w))
		p.note("answered %v %v", w.Spec.Fields, w.Status.Fields)
	}},
	{"operator: unstructured objects with the types of Go", func(p *probe) {
		g := p.gadget("a", fields{"size": 1, "tags": []string{"x"}, "words": map[string]string{"a": "b"}})
		p.call("create", p.create(g))
		p.note("%s", at(g, "spec"))
		g.Object["spec"].(fields)["size"] = 2
		p.call("update", p.update(g))
		g = p.gadget("b", fields{"size": 1.0})
		p.call("whole float", p.create(g))
		p.call("float", p.create(p.gadget("c", fields{"size": 1.5})))
		u := &unstructured.Unstructured{Object: fields{"data": map[string]string{"a": "b"}}}
		u.SetGroupVersionKind(kind("", "v1", "ConfigMap"))
		u.SetNamespace(p.namespace)
		u.SetName("d")
		p.call("built-in", p.create(u))
	}},
	{"operator: unstructured objects that fit no Go type", func(p *probe) {
		secret := &unstructured.Unstructured{Object: fields{"data": fields{"a": "no base64!"}}}
		secret.SetGroupVersionKind(kind("", "v1", "Secret"))
		secret.SetNamespace(p.namespace)
		secret.SetName("a")
		p.call("base64", p.create(secret))
		d := p.containers("main")
		d.Object["spec"].(fields)["replicas"] = int64(1) << 40
		p.call("overflow", p.create(d))
		noKind := &unstructured.Unstructured{Object: fields{}}
		noKind.SetName("a")
		p.call("no kind", p.create(noKind))
	}},
	{"operator: reads into an object that has content", func(p *probe) {
		p.given(p.configMap("a"))
		cm := p.configMap("a")
		cm.Labels, cm.Data = map[string]string{"old": "x"}, map[string]string{"old": "x"}
		cm.Finalizers, cm.BinaryData = []string{finalizer}, map[string][]byte{"old": []byte("x")}
		p.must(p.get(cm))
		p.note("%s %s %v %v", at(cm, "data"), at(cm, "binaryData"), cm.Labels, cm.Finalizers)
		w := &resources.Widget{ObjectMeta: p.metadata("a")}
		p.given(w)
		w.Labels, w.Spec.Fields = map[string]string{"old": "x"}, map[string]string{"old": "x"}
		p.must(p.get(w))
		p.note("%v %v", w.Labels, w.Spec.Fields)
		g := p.gadget("a", nil)
		p.given(g)
		g.SetLabels(map[string]string{"old": "x"})
		g.Object["spec"].(fields)["note"] = "old"
		p.must(p.get(g))
		p.note("%v %s", g.GetLabels(), at(g, "spec"))
	}},
	{"operator: an error leaves the object", func(p *probe) {
		p.given(p.configMap("a"))
		cm := p.configMap("a")
		cm.Data["b"] = "2"
		p.call("create", p.create(cm))
		p.note("%s %q", at(cm, "data"), cm.ResourceVersion)
		cm = p.configMap("missing")
		p.call("get", p.get(cm))
		p.note("%s %q", at(cm, "data"), cm.Name)
	}},
	{"operator: an update is answered with what is stored", func(p *probe) {
		w := &resources.Widget{ObjectMeta: p.metadata("a")}
		p.given(w)
		stored := w.DeepCopy()
		stored.Status.AddField("a", "b")
		p.must(p.updateStatus(stored))
		w.ResourceVersion = stored.ResourceVersion
		w.Labels = map[string]string{"x": "y"}
		p.must(p.update(w))
		p.note("status %v", w.Status.Fields)
		s := p.service("a")
		p.given(s)
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil
		p.must(p.update(s))
		p.note("address %t", s.Spec.ClusterIP != "")
	}},

	{"identity: time of creation is in seconds", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		p.note("nanoseconds %d", cm.CreationTimestamp.Nanosecond())
		p.given(p.held("b"))
		p.must(p.remove(p.configMap("b")))
		p.note("nanoseconds %d", p.read(p.configMap("b")).GetDeletionTimestamp().Nanosecond())
	}},

	{"garbage: owner in another namespace", func(p *probe) {
		other := namespace(p.namespace + "-other")
		p.given(other)
		owner := p.configMap("owner")
		owner.Namespace = other.Name
		p.given(owner)
		p.given(owned(p.configMap("a"), owner))
		p.eventually("gone", func() bool { return p.gone(p.configMap("a")) })
		p.exists("owner", owner)
	}},
	{"garbage: owner in no namespace", func(p *probe) {
		room := p.room()
		p.given(room)
		cm := p.configMap("a")
		cm.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: group + "/v1", Kind: "Room", Name: room.GetName(), UID: room.GetUID(),
		}}
		p.given(cm)
		p.must(p.remove(room.DeepCopy()))
		p.eventually("gone", func() bool { return p.gone(cm) })
	}},
	{"garbage: owner of a kind that is not served", func(p *probe) {
		stays := p.configMap("stays")
		stays.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "nowhere.example.com/v1", Kind: "Nothing", Name: "a", UID: "some",
		}}
		p.given(stays)
		p.sweeps()
		p.exists("dependent", stays)
	}},
	{"garbage: owner with another name", func(p *probe) {
		owner := p.configMap("owner")
		p.given(owner)
		misnamed := owner.DeepCopy()
		misnamed.Name = "other"
		p.given(owned(p.configMap("a"), misnamed))
		p.eventually("gone", func() bool { return p.gone(p.configMap("a")) })
	}},
	{"garbage: object in no namespace with an owner in one", func(p *probe) {
		owner := p.configMap("owner")
		p.given(owner)
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}
		p.given(owned(role, owner))
		p.must(p.remove(owner))
		p.sweeps()
		p.exists("dependent", role)
	}},
	{"garbage: dependents of an owner that is held", func(p *probe) {
		owner := p.held("owner")
		p.given(owner)
		p.given(owned(p.configMap("a"), owner))
		p.must(p.remove(owner.DeepCopy()))
		p.sweeps()
		p.exists("dependent", p.configMap("a"))
		p.release(owner)
		p.eventually("gone", func() bool { return p.gone(p.configMap("a")) })
	}},
	{"garbage: policy changed by a second delete", func(p *probe) {
		owner := p.held("owner")
		p.given(owner)
		p.must(p.remove(p.configMap("owner"), client.PropagationPolicy(metav1.DeletePropagationForeground)))
		p.eventually("finalizer removed", func() bool { return len(p.read(owner).GetFinalizers()) == 1 })
		p.call("orphan", p.remove(p.configMap("owner"), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
		p.eventually("finalizer removed", func() bool { return len(p.read(owner).GetFinalizers()) == 1 })
	}},

	{"patch: JSON patch of finalizers", func(p *probe) {
		cm := p.configMap("a")
		p.given(cm)
		p.call("no list", p.patch(cm, jsonPatch(`[{"op":"add","path":"/metadata/finalizers/-","value":"x.com/a"}]`)))
		p.call("list", p.patch(cm, jsonPatch(`[{"op":"add","path":"/metadata/finalizers","value":["x.com/a"]}]`)))
		p.call("append", p.patch(cm, jsonPatch(`[{"op":"add","path":"/metadata/finalizers/-","value":"x.com/b"}]`)))
		p.call("test", p.patch(cm, jsonPatch(
			`[{"op":"test","path":"/metadata/finalizers/0","value":"x.com/a"},
			{"op":"remove","path":"/metadata/finalizers/0"}]`)))
		p.note("%v", cm.Finalizers)
		p.call("version", p.patch(cm, jsonPatch(`[{"op":"test","path":"/metadata/resourceVersion","value":"1"}]`)))
	}},
	{"patch: strategic merge of metadata", func(p *probe) {
		cm := p.held("a")
		owner := p.configMap("owner")
		p.given(owner)
		owned(cm, owner)
		p.given(cm)
		p.call("finalizers", p.patch(cm, strategic(`{"metadata":{"finalizers":["example.com/more"]}}`)))
		p.note("%v", cm.Finalizers)
		p.call("delete", p.patch(cm, strategic(
			`{"metadata":{"$deleteFromPrimitiveList/finalizers":["`+finalizer+`"]}}`)))
		p.note("%v", cm.Finalizers)
		p.call("owners", p.patch(cm, strategic(
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`)))
		p.note("%d", len(cm.OwnerReferences))
		p.call("replace", p.patch(cm, strategic(`{"data":{"$patch":"replace","b":"2"}}`)))
		p.note("%s", at(cm, "data"))
	}},
	{"patch: strategic merge computed from a change", func(p *probe) {
		d := p.deployment("a")
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}}
		p.given(d)
		base := d.DeepCopy()
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "B", Value: "3"}, {Name: "C", Value: "4"}}
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		p.call("patch", p.patch(d, client.StrategicMergeFrom(base)))
		p.note("%s %s", at(d, "spec", "strategy"), at(d.DeepCopy(), "spec", "template", "spec", "containers"))
	}},
	{"patch: merge patch computed from a change", func(p *probe) {
		w := &resources.Widget{ObjectMeta: p.metadata("a")}
		w.Spec.Fields = map[string]string{"a": "1", "b": "2"}
		p.given(w)
		base := w.DeepCopy()
		delete(w.Spec.Fields, "a")
		w.Labels = map[string]string{"x": "y"}
		p.writes("patch", w, func() error { return p.patch(w, client.MergeFrom(base)) })
		p.note("%v %v", w.Spec.Fields, w.Labels)
		p.writes("nothing", w, func() error { return p.patch(w, client.MergeFrom(w.DeepCopy())) })
	}},
	{"patch: status by JSON and strategic merge patch", func(p *probe) {
		d := p.deployment("a")
		p.given(d)
		p.call("strategic", p.Status().Patch(p.ctx, d, strategic(
			`{"status":{"conditions":[{"type":"A","status":"True","reason":"R","message":"m"}]}}`)))
		p.call("strategic", p.Status().Patch(p.ctx, d, strategic(
			`{"status":{"conditions":[{"type":"B","status":"True","reason":"R","message":"m"}]}}`)))
		p.note("%d conditions", len(d.Status.Conditions))
		p.given(p.gadget("a", nil))
		p.call("JSON", p.Status().Patch(p.ctx, p.gadget("a", nil), jsonPatch(
			`[{"op":"add","path":"/status","value":{"phase":"Done"}}]`)))
		p.call("old version", p.Status().Patch(p.ctx, p.gadget("a", nil), merge(
			`{"metadata":{"resourceVersion":"1"},"status":{"phase":"Pending"}}`)))
	}},

	{"apply: ports of a Service", func(p *probe) {
		service := func(ports ...any) *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: fields{"spec": fields{"ports": ports}}}
			u.SetGroupVersionKind(kind("", "v1", "Service"))
			u.SetNamespace(p.namespace)
			u.SetName("a")
			return u
		}
		web := fields{"name": "web", "port": int64(80)}
		p.call("apply", p.applied(service(web), "one"))
		p.writes("again", p.service("a"), func() error { return p.applied(service(web), "one") })
		p.call("second", p.applied(service(fields{"name": "more", "port": int64(81)}), "two"))
		p.note("%s", random.ReplaceAllString(at(p.read(p.service("a")), "spec", "ports"), "*"))
		p.call("changed", p.applied(service(fields{"name": "web", "port": int64(82)}), "one"))
		p.note("%s", random.ReplaceAllString(at(p.read(p.service("a")), "spec", "ports"), "*"))
		p.note("%s", p.managers(p.service("a")))
	}},
	{"apply: a Deployment by two managers", func(p *probe) {
		d := p.containers("main")
		spec := d.Object["spec"].(fields)
		spec["selector"] = fields{"matchLabels": fields{"app": "a"}}
		spec["template"].(fields)["metadata"] = fields{"labels": fields{"app": "a"}}
		p.call("one", p.applied(d.DeepCopy(), "one"))
		scaler := p.containers("main")
		scaler.Object["spec"] = fields{"replicas": int64(3)}
		p.call("two", p.applied(scaler, "two"))
		p.call("one again", p.applied(d, "one"))
		p.note("replicas %s", at(p.read(p.deployment("a")), "spec", "replicas"))
		p.note("%s", p.managers(p.deployment("a")))
	}},
	{"apply: nulls and empty maps", func(p *probe) {
		u := p.applicable("a", "1")
		u.Object["data"].(fields)["n"] = nil
		u.Object["metadata"].(fields)["labels"] = fields{}
		u.Object["metadata"].(fields)["creationTimestamp"] = nil
		p.call("apply", p.applied(u, "one"))
		p.note("%s", at(p.read(p.configMap("a")), "data"))
		p.note("%s", p.managers(p.configMap("a")))
	}},
	{"apply: conflict with a status writer", func(p *probe) {
		g := p.gadget("a", nil)
		p.must(p.create(g, client.FieldOwner("creator")))
		g.Object["status"] = fields{"phase": "Pending", "replicas": int64(1)}
		p.must(p.updateStatus(g, client.FieldOwner("writer")))
		status := custom("gadget", "v1", p.namespace, "a", nil)
		status.Object["status"] = fields{"phase": "Done"}
		config := client.ApplyConfigurationFromUnstructured(status)
		p.call("apply", p.Status().Apply(p.ctx, config, client.FieldOwner("one")))
		config = client.ApplyConfigurationFromUnstructured(status.DeepCopy())
		p.call("force", p.Status().Apply(p.ctx, config, client.FieldOwner("one"), client.ForceOwnership))
		p.note("%s", at(p.read(g), "status"))
		p.note("%s", p.managers(g))
	}},
	{"apply: owner reference without UID", func(p *probe) {
		u := p.applicable("a", "1")
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "o"}})
		p.call("apply", p.applied(u, "one"))
	}},
	{"apply: after an update by the same manager", func(p *probe) {
		two := p.configMap("a")
		two.Data["b"] = "2"
		p.must(p.create(two, client.FieldOwner("one")))
		p.call("apply", p.applied(p.applicable("a", "1"), "one"))
		p.note("%s", at(p.read(p.configMap("a")), "data"))
		p.call("other value", p.applied(p.applicable("a", "3"), "one"))
		p.note("%s", p.managers(p.configMap("a")))
	}},

	{"read: several field selectors", func(p *probe) {
		p.given(p.configMap("a"))
		p.given(p.configMap("b"))
		p.note("both %s", p.names(&corev1.ConfigMapList{}, client.MatchingFields{
			"metadata.name": "a", "metadata.namespace": p.namespace,
		}))
		p.note("neither %s", p.names(&corev1.ConfigMapList{}, client.MatchingFields{
			"metadata.name": "a", "metadata.namespace": "other",
		}))
	}},
	{"read: list at an earlier version", func(p *probe) {
		a := p.configMap("a")
		p.given(a)
		p.given(p.configMap("b"))
		exact := &client.ListOptions{Raw: &metav1.ListOptions{
			ResourceVersion: a.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		}}
		p.note("exact %s", p.names(&corev1.ConfigMapList{}, exact))
		any := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: a.ResourceVersion}}
		p.note("not older %s", p.names(&corev1.ConfigMapList{}, any))
	}},
	{"read: Events in both groups", func(p *probe) {
		e := &corev1.Event{
			ObjectMeta: p.metadata("a"), Reason: "R", Message: "m", Type: "Normal",
			InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: p.namespace, Name: "x"},
		}
		p.call("create", p.create(e))
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind("events.k8s.io", "v1", "Event"))
		u.SetNamespace(p.namespace)
		u.SetName("a")
		p.call("get", p.get(u))
		p.note("%s", at(u, "note"))
		p.note("by object %s", p.names(&corev1.EventList{}, client.MatchingFields{"involvedObject.name": "x"}))
	}},
	{"read: a built-in kind in both versions", func(p *probe) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind("autoscaling", "v1", "HorizontalPodAutoscaler"))
		u.SetNamespace(p.namespace)
		u.SetName("a")
		u.Object["spec"] = fields{
			"maxReplicas": int64(3), "targetCPUUtilizationPercentage": int64(50),
			"scaleTargetRef": fields{"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"},
		}
		p.call("create", p.create(u))
		u.SetGroupVersionKind(kind("autoscaling", "v2", "HorizontalPodAutoscaler"))
		p.call("get", p.get(u))
		p.note("%s", at(u, "spec", "metrics"))
	}},
	{"built-in: ports of a Service by number and name", func(p *probe) {
		s := p.service("a")
		s.Spec.Ports = []corev1.ServicePort{
			{Name: "a", Port: 80, TargetPort: intstr.FromString("web")}, {Name: "b", Port: 80, Protocol: "UDP"},
		}
		p.completes(s, "spec", "ports")
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "c", Port: 80})
		p.call("twice", p.update(s))
	}},
}

// sweeps waits until the garbage collector has taken something away that came after everything else. It watches each
// kind apart.
func (p *probe) sweeps() {
	ghost := p.configMap("ghost")
	ghost.UID = "never"
	garbage := []client.Object{owned(p.configMap("garbage"), ghost), owned(p.gadget("garbage", nil), ghost)}
	for _, obj := range garbage {
		p.given(obj)
	}
	p.eventually("swept", func() bool { return !slices.ContainsFunc(garbage, p.there) })
}

func (p *probe) there(obj client.Object) bool { return !p.gone(obj) }

package fidelity

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

// randomObject returns a function that makes an object, and what it is.
func randomObject(r dice) (string, func(p *probe) client.Object) {
	name := pick(r, "a", "b")
	switch r.kinds[r.IntN(2)] {
	case 0:
		return "ConfigMap " + name, func(p *probe) client.Object { return p.configMap(name) }
	case 1:
		return "Deployment " + name, func(p *probe) client.Object { return p.deployment(name) }
	case 2:
		return "Secret " + name, func(p *probe) client.Object { return &corev1.Secret{ObjectMeta: p.metadata(name)} }
	case 3:
		return "Widget " + name, func(p *probe) client.Object { return &resources.Widget{ObjectMeta: p.metadata(name)} }
	}
	return "Gadget " + name, func(p *probe) client.Object { return p.gadget(name, nil) }
}

// change is a change of an object that a caller makes.
type change struct {
	name string
	make func(obj client.Object)
}

var changes = []change{
	{"nothing", func(client.Object) {}},
	{"label x=1", func(obj client.Object) { obj.SetLabels(map[string]string{"x": "1"}) }},
	{"label x=2", func(obj client.Object) { obj.SetLabels(map[string]string{"x": "2"}) }},
	{"no labels", func(obj client.Object) { obj.SetLabels(nil) }},
	{"annotation", func(obj client.Object) { obj.SetAnnotations(map[string]string{"y": "z"}) }},
	{"finalizer", func(obj client.Object) { obj.SetFinalizers([]string{finalizer}) }},
	{"two finalizers", func(obj client.Object) { obj.SetFinalizers([]string{"example.com/b", finalizer}) }},
	{"no finalizers", func(obj client.Object) { obj.SetFinalizers(nil) }},
	{"no version", func(obj client.Object) { obj.SetResourceVersion("") }},
	{"no UID", func(obj client.Object) { obj.SetUID("") }},
	{"neither", func(obj client.Object) { obj.SetUID(""); obj.SetResourceVersion("") }},
	{"no managed fields", func(obj client.Object) { obj.SetManagedFields(nil) }},
	{"generation", func(obj client.Object) { obj.SetGeneration(obj.GetGeneration() + 5) }},
	{"no deletion", func(obj client.Object) { obj.SetDeletionTimestamp(nil) }},
	{"content 1", func(obj client.Object) { setContent(obj, "1") }},
	{"content 2", func(obj client.Object) { setContent(obj, "2") }},
	{"more content", func(obj client.Object) {
		switch obj := obj.(type) {
		case *corev1.ConfigMap:
			obj.BinaryData = map[string][]byte{"more": []byte("x")}
		case *unstructured.Unstructured:
			obj.Object["spec"] = fields{"size": int64(3), "tags": []any{"x"}, "nested": fields{"known": "y"}}
		case *corev1.Secret:
			obj.StringData = map[string]string{"more": "x"}
		case *appsv1.Deployment:
			obj.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "x"}}
		case *resources.Widget:
			obj.Spec.Fields = map[string]string{"a": "1", "b": "2"}
		}
	}},
	{"no content", func(obj client.Object) {
		switch obj := obj.(type) {
		case *corev1.ConfigMap:
			obj.Data = nil
		case *unstructured.Unstructured:
			delete(obj.Object, "spec")
		case *corev1.Secret:
			obj.Data = nil
		case *appsv1.Deployment:
			obj.Spec.Template.Spec.InitContainers = nil
		case *resources.Widget:
			obj.Spec.Fields = nil
		}
	}},
	{"status", func(obj client.Object) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			u.Object["status"] = fields{"phase": "Done", "replicas": int64(2)}
		}
		if d, ok := obj.(*appsv1.Deployment); ok {
			d.Status.Replicas = 2
		}
		if w, ok := obj.(*resources.Widget); ok {
			w.Status.Fields = map[string]string{"x": "y"}
		}
	}},
}

func setContent(obj client.Object, value string) {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		obj.Data = map[string]string{"a": value}
	case *unstructured.Unstructured:
		obj.Object["spec"] = fields{"size": int64(1), "note": value}
	case *corev1.Secret:
		obj.Data = map[string][]byte{"a": []byte(value)}
	case *appsv1.Deployment:
		obj.Spec.Template.Spec.Containers[0].Image = value
	case *resources.Widget:
		obj.Spec.Fields = map[string]string{"a": value}
	}
}

// randomChanges are up to three.
func randomChanges(r dice) (name string, make func(client.Object)) {
	var made []change
	for range 1 + r.IntN(3) {
		made = append(made, pick(r, changes...))
		name += ", " + made[len(made)-1].name
	}
	return name, func(obj client.Object) {
		for _, c := range made {
			c.make(obj)
		}
	}
}

func randomManager(r dice) client.FieldOwner {
	return pick[client.FieldOwner](r, "one", "two", "three")
}

// randomDryRun is a dry run now and then.
func randomDryRun(r dice) (name string, dryRun []string) {
	if r.IntN(6) > 0 {
		return "", nil
	}
	return " (dry run)", []string{metav1.DryRunAll}
}

func randomCreate(r dice) randomCall {
	what, object := randomObject(r)
	changed, change := randomChanges(r)
	manager := randomManager(r)
	dry, dryRun := randomDryRun(r)
	return randomCall{fmt.Sprintf("%s: create %s%s%s", manager, what, changed, dry), func(s *session) string {
		obj := object(s.probe)
		change(obj)
		return s.answered(obj, dryRun, s.create(obj, manager, &client.CreateOptions{DryRun: dryRun}))
	}}
}

func randomUpdate(r dice) randomCall {
	before := pick(r, 0, 0, 0, 1, 2, 4)
	changed, change := randomChanges(r)
	manager := randomManager(r)
	dry, dryRun := randomDryRun(r)
	return randomCall{fmt.Sprintf("%s: update copy %d%s%s", manager, before, changed, dry), func(s *session) string {
		obj := s.copyOf(before)
		change(obj)
		return s.answered(obj, dryRun, s.update(obj, manager, &client.UpdateOptions{DryRun: dryRun}))
	}}
}

func randomStatus(r dice) randomCall {
	before := pick(r, 0, 0, 1, 3)
	changed, change := randomChanges(r)
	manager := randomManager(r)
	dry, dryRun := randomDryRun(r)
	return randomCall{fmt.Sprintf("%s: update status of copy %d%s%s", manager, before, changed, dry),
		func(s *session) string {
			obj := s.copyOf(before)
			change(obj)
			options := &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{DryRun: dryRun}}
			return s.answered(obj, dryRun, s.Status().Update(s.ctx, obj, manager, options))
		}}
}

func randomJSONPatch(r dice) randomCall {
	what, object := randomObject(r)
	body := pick(r,
		`[{"op":"add","path":"/metadata/finalizers","value":["`+finalizer+`"]}]`,
		`[{"op":"remove","path":"/metadata/finalizers/0"}]`, `[{"op":"remove","path":"/metadata/labels"}]`,
		`[{"op":"add","path":"/metadata/labels/j","value":"1"}]`, `[{"op":"test","path":"/spec/size","value":1}]`,
		`[{"op":"replace","path":"/spec/size","value":7}]`, `[{"op":"remove","path":"/data"}]`,
		`[{"op":"add","path":"/status","value":{"phase":"Done"}},{"op":"remove","path":"/metadata/annotations"}]`,
	)
	manager := randomManager(r)
	dry, dryRun := randomDryRun(r)
	return randomCall{fmt.Sprintf("%s: patch %s %s%s", manager, what, body, dry), func(s *session) string {
		obj := object(s.probe)
		return s.answered(obj, dryRun, s.patch(obj, jsonPatch(body), manager, &client.PatchOptions{DryRun: dryRun}))
	}}
}

func randomPatch(r dice) randomCall {
	what, object := randomObject(r)
	body := pick(r,
		`{"metadata":{"labels":{"x":"1"}}}`, `{"metadata":{"labels":{"x":null,"z":"3"}}}`,
		`{"metadata":{"finalizers":["`+finalizer+`"]}}`, `{"metadata":{"finalizers":null}}`,
		`{"data":{"a":"1"},"spec":{"size":1}}`, `{"data":{"b":"2"},"spec":{"note":"2"}}`,
		`{"data":null,"spec":{"note":null,"color":null}}`, `{"status":{"phase":"Pending"}}`,
		`{"metadata":{"labels":{"not valid":"x"}}}`, `{}`, `{"spec":{"replicas":2,"fields":{"a":"1"}}}`,
		`{"stringData":{"a":"1"},"spec":{"template":{"metadata":{"annotations":{"x":"y"}}}}}`, `{"immutable":true}`,
		`{"metadata":{"annotations":{"x":"y"},"managedFields":[{}]}}`, `{"status":{"fields":{"a":"1"},"replicas":1}}`,
		`{"metadata":{"resourceVersion":"1"}}`, `{"spec":{"items":[{"name":"x"}],"size":-1}}`,
	)
	subresource := pick(r, "", "", "", "status")
	manager := randomManager(r)
	dry, dryRun := randomDryRun(r)
	return randomCall{fmt.Sprintf("%s: patch %s %s %s%s", manager, what, subresource, body, dry),
		func(s *session) string {
			obj := object(s.probe)
			if subresource != "" {
				options := &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: dryRun}}
				return s.answered(obj, dryRun, s.Status().Patch(s.ctx, obj, merge(body), manager, options))
			}
			return s.answered(obj, dryRun, s.patch(obj, merge(body), manager, &client.PatchOptions{DryRun: dryRun}))
		}}
}

func randomApply(r dice) randomCall {
	name := pick(r, "a", "b")
	content := pick(r,
		fields{}, fields{"data": fields{"a": "1"}}, fields{"data": fields{"a": "2"}},
		fields{"data": fields{"a": "1", "b": "1"}}, fields{"metadata": fields{"labels": fields{"x": "1"}}},
		fields{"metadata": fields{"finalizers": []any{finalizer}}, "data": fields{"c": "1"}},
		fields{"spec": fields{"size": int64(1)}}, fields{"spec": fields{"size": int64(2), "note": "n"}},
		fields{"spec": fields{"size": int64(1), "items": []any{fields{"name": "x", "value": "1"}}}},
		fields{"spec": fields{"size": int64(1), "items": []any{fields{"name": "y"}, fields{"name": "x"}}}},
		fields{"spec": fields{"size": int64(1), "tags": []any{"x"}}, "status": fields{"phase": "Done"}},
		fields{"spec": fields{"size": int64(1), "tags": []any{"y"}, "color": "red"}},
		fields{"status": fields{"phase": "Pending"}}, fields{"status": fields{"replicas": int64(3)}},
		fields{"spec": fields{"replicas": int64(4)}}, fields{"spec": fields{"fields": fields{"a": "1"}}},
		fields{"spec": fields{"fields": fields{"a": "2", "c": "1"}}, "status": fields{"fields": fields{"z": "1"}}},
		fields{"spec": fields{"template": fields{"spec": fields{
			"containers": []any{fields{"name": "main", "image": "y"}}},
		}}},
		fields{"spec": fields{"template": fields{"spec": fields{"containers": []any{
			fields{"name": "more", "image": "y", "ports": []any{fields{"containerPort": int64(1)}}},
		}}}}},
	)
	subresource := ""
	if _, ok := content["status"]; ok && r.IntN(2) == 0 {
		subresource = "status"
	}
	manager, force := randomManager(r), r.IntN(3) == 0
	dry, dryRun := randomDryRun(r)
	raw, _ := json.Marshal(content) // It is JSON.
	text := fmt.Sprintf("%s: apply %s %s %s force %t%s", manager, name, subresource, raw, force, dry)
	return randomCall{text, func(s *session) string {
		u := &unstructured.Unstructured{}
		s.must(json.Unmarshal(raw, &u.Object))
		u.SetGroupVersionKind(kind("", "v1", "ConfigMap"))
		spec, _ := content["spec"].(fields)
		switch {
		case spec["replicas"] != nil || spec["template"] != nil:
			u.SetGroupVersionKind(kind("apps", "v1", "Deployment"))
		case spec["fields"] != nil:
			u.SetGroupVersionKind(resources.GroupVersion.WithKind("Widget"))
		case spec != nil || content["status"] != nil:
			u.SetGroupVersionKind(kind(group, "v1", "Gadget"))
		}
		u.SetNamespace(s.namespace)
		u.SetName(name)
		config := client.ApplyConfigurationFromUnstructured(u)
		options := client.ApplyOptions{DryRun: dryRun, Force: &force}
		if subresource != "" {
			return s.answered(u, dryRun, s.Status().Apply(s.ctx, config, manager,
				&client.SubResourceApplyOptions{ApplyOptions: options}))
		}
		return s.answered(u, dryRun, s.Apply(s.ctx, config, manager, &options))
	}}
}

func randomDelete(r dice) randomCall {
	what, object := randomObject(r)
	before := pick(r, -1, -1, 0, 1, 3)
	dry, dryRun := randomDryRun(r)
	text := "delete " + what
	if before >= 0 {
		text += fmt.Sprintf(" if it is copy %d", before)
	}
	return randomCall{text + dry, func(s *session) string {
		options := &client.DeleteOptions{DryRun: dryRun}
		if before >= 0 {
			uid, version := s.copyOf(before).GetUID(), s.copyOf(before).GetResourceVersion()
			options.Preconditions = &metav1.Preconditions{UID: &uid, ResourceVersion: &version}
		}
		return verdict(s.remove(object(s.probe), options))
	}}
}

func randomRead(r dice) randomCall {
	what, object := randomObject(r)
	if r.IntN(3) > 0 {
		return randomCall{"get " + what, func(s *session) string {
			obj := object(s.probe)
			return s.answered(obj, nil, s.get(obj))
		}}
	}
	return randomCall{"list", func(s *session) string {
		return s.names(&corev1.ConfigMapList{}, client.HasLabels{"x"}) + s.names(gadgetList())
	}}
}

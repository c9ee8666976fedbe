package fidelity

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/internal/testenv/store"
)

var (
	seed   = flag.Uint64("seed", 1, "of the first random sequence of calls")
	rounds = flag.Uint64("rounds", 20, "how many random sequences of calls are tried")
)

// TestRandomCalls shows that a real API server and the store answer random calls alike. It prints the shortest sequence
// that it finds for a difference.
func TestRandomCalls(t *testing.T) {
	t.Parallel()
	server := realServer{plane.Config(t)}
	r := differential{
		t: t, server: func() (Cluster, error) { return server, nil },
		store: memories(t, store.Options{ManagedFields: true}),
	}
	var wg sync.WaitGroup
	running := make(chan struct{}, 4)
	for round := *seed; round < *seed+*rounds; round++ {
		running <- struct{}{}
		wg.Go(func() {
			defer func() { <-running }()
			r.compare(round)
		})
	}
	wg.Wait()
}

// compare fails the test if the random calls of a seed are answered differently.
func (r *differential) compare(seed uint64) {
	calls := randomCalls(newDice(seed), 40)
	n, _, _ := r.differ(calls)
	if n < 0 {
		return
	}
	calls = r.shrink(calls[:n+1])
	n, real, store := r.differ(calls)
	if n < 0 {
		r.t.Errorf("seed %d: a difference that comes and goes", seed)
		return
	}
	var story strings.Builder
	for _, c := range calls[:n+1] {
		fmt.Fprintf(&story, "  %s\n", c.name)
	}
	r.t.Errorf("seed %d: the last of these calls is answered differently\n%sreal  %s\nstore %s",
		seed, &story, real, store)
}

// differential runs calls on a real API server and on a store.
type differential struct {
	t             *testing.T
	server, store func() (Cluster, error)
}

// differ returns the first call that is answered differently, -1 if there is none, and the answers.
func (r *differential) differ(calls []randomCall) (n int, real, store string) {
	namespace := fmt.Sprintf("random%05d", runs.Add(1))
	on := func(newCluster func() (Cluster, error)) (answers []string) {
		c := check{"", func(p *probe) {
			s := &session{probe: p, uids: map[string]string{}, versions: map[string]string{}}
			for _, call := range calls {
				answers = append(answers, strings.ReplaceAll(call.run(s), namespace, "NAMESPACE"))
			}
		}}
		if answer := c.answer(r.t.Context(), newCluster, namespace); answer != "" {
			answers = append(answers, answer)
		}
		return answers
	}
	reals, stores := on(r.server), on(r.store)
	for i := range max(len(reals), len(stores)) {
		switch {
		case i >= len(reals):
			return min(i, len(calls)-1), "", stores[i]
		case i >= len(stores):
			return min(i, len(calls)-1), reals[i], ""
		case reals[i] != stores[i]:
			return min(i, len(calls)-1), reals[i], stores[i]
		}
	}
	return -1, "", ""
}

// shrink leaves out what is not needed for a difference.
func (r *differential) shrink(calls []randomCall) []randomCall {
	for i := len(calls) - 2; i >= 0; i-- {
		less := slices.Delete(slices.Clone(calls), i, i+1)
		if n, _, _ := r.differ(less); n >= 0 {
			calls = less[:n+1]
			i = min(i, len(calls)-1)
		}
	}
	return calls
}

// session is one run of random calls.
type session struct {
	*probe
	// copies are the objects that were answered, oldest first.
	copies []client.Object
	// uids and versions replace what servers choose, in the order in which it was seen.
	uids, versions map[string]string
}

// answered notes what came of a call with the object that it answered. What a dry run creates has a UID of its own.
func (s *session) answered(obj client.Object, dryRun []string, err error) string {
	switch {
	case err != nil:
		return verdict(err)
	case dryRun != nil && s.uids[string(obj.GetUID())] == "":
		uid := obj.GetUID()
		obj.SetUID("")
		return fmt.Sprintf("ok %s with UID %t", s.masked(obj), uid != "")
	}
	s.copies = append(s.copies, obj.DeepCopyObject().(client.Object))
	return "ok " + s.masked(obj)
}

// masked returns the JSON of an object, without what differs from server to server.
func (s *session) masked(obj client.Object) string {
	raw, err := json.Marshal(obj)
	s.must(err)
	u := &unstructured.Unstructured{}
	s.must(json.Unmarshal(raw, &u.Object))
	u.SetResourceVersion(seen(s.versions, "v", u.GetResourceVersion()))
	metadata := u.Object["metadata"].(fields)
	metadata["uid"] = seen(s.uids, "uid", string(obj.GetUID()))
	metadata["creationTimestamp"] = !obj.GetCreationTimestamp().Time.IsZero()
	if obj.GetDeletionTimestamp() != nil {
		metadata["deletionTimestamp"] = true
	}
	var managers []string
	for _, entry := range obj.GetManagedFields() {
		managers = append(managers, fmt.Sprintf("%s %s %s %s %s", entry.Manager, entry.Operation, entry.APIVersion,
			entry.Subresource, entry.FieldsV1.GetRawBytes()))
	}
	slices.Sort(managers)
	metadata["managedFields"] = managers
	raw, err = json.Marshal(u.Object)
	s.must(err)
	return string(raw)
}

// seen returns the name of a value: how many were seen before it.
func seen(names map[string]string, prefix, value string) string {
	if value == "" {
		return ""
	}
	if _, ok := names[value]; !ok {
		names[value] = prefix + strconv.Itoa(len(names))
	}
	return names[value]
}

// copyOf returns one of the objects that were answered: that many before the last one.
func (s *session) copyOf(before int) client.Object {
	if len(s.copies) == 0 {
		return s.configMap("none")
	}
	i := max(0, len(s.copies)-1-before)
	return s.copies[i].DeepCopyObject().(client.Object)
}

// randomCall is one call of a random sequence. What it does depends on what was answered before.
type randomCall struct {
	name string
	run  func(s *session) string
}

// dice is a source of random calls. The objects of one sequence are of two kinds, so that calls meet.
type dice struct {
	*rand.Rand
	kinds [2]int
}

func newDice(seed uint64) dice {
	r := rand.New(rand.NewPCG(seed, 0))
	return dice{r, [2]int{r.IntN(5), r.IntN(5)}}
}

func randomCalls(r dice, n int) []randomCall {
	calls := make([]randomCall, n)
	for i := range calls {
		calls[i] = kindsOfCalls[r.IntN(len(kindsOfCalls))](r)
	}
	return calls
}

func pick[T any](r dice, from ...T) T { return from[r.IntN(len(from))] }

// kindsOfCalls are as often as they are tried. What collects garbage is left out: nobody knows when it happens.
var kindsOfCalls = []func(r dice) randomCall{
	randomCreate, randomCreate, randomUpdate, randomUpdate, randomUpdate, randomStatus, randomPatch, randomPatch,
	randomJSONPatch,
	randomApply, randomApply, randomApply, randomDelete, randomDelete, randomRead,
}

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

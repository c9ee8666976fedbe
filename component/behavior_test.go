package component_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type assemblyNode = *component.ComponentReconciler[*resources.Assembly]

// TestStatusUnchanged: a request that finds nothing new writes nothing, however much later it is, not even when it looked.
func TestStatusUnchanged(t *testing.T) {
	definition := resources.CRD()
	definition.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	house, walls, _ := newHouse()
	house.SetObjects(definition, walls)
	deployed := rollOut(t, house, 0)
	foreign := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "gadget", UID: "gadget-uid"}}
	for name, test := range map[string]struct {
		change func(*resources.Assembly)
		given  []client.Object
		reason string
	}{
		"ready":     {func(*resources.Assembly) {}, nil, "Ready"},
		"suspended": {func(a *resources.Assembly) { a.Spec.Suspend = true }, nil, "Suspended"},
		"blocked":   {going, []client.Object{foreign}, "DeletionBlocked"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperated(t, assembling(), deployed.With(test.change).Object(), append(deployed.Objects(), test.given...))
			o.untilIdle(t)
			before := o.house(t)
			if reason := meta.FindStatusCondition(before.Status.Conditions, "Ready").Reason; reason != test.reason {
				t.Fatalf("the reason is %s, want %s", reason, test.reason)
			}
			for range 3 {
				if _, err := o.reconcile(t, 20*time.Minute); err != nil || len(o.writes) > 0 {
					t.Errorf("the writes are %v and the error %v, want neither", o.writes, err)
				}
			}
			if after := o.house(t); !reflect.DeepEqual(before, after) {
				t.Errorf("the resource was\n%+v and is\n%+v, want it unchanged", before, after)
			}
		})
	}
}

// TestAnnotationsOfOthers: a changed annotation of another prefix is no change of the component.
func TestAnnotationsOfOthers(t *testing.T) {
	house, _, _ := newHouse()
	o := newOperated(t, assembling(), house, nil)
	o.untilIdle(t)
	status := o.house(t).Status
	annotate := func(key, value string) {
		fresh := &resources.Assembly{ObjectMeta: metav1.ObjectMeta{Name: house.Name}}
		o.change(t, fresh, func() { metav1.SetMetaDataAnnotation(&fresh.ObjectMeta, key, value) })
		if _, err := o.reconcile(t, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	for _, value := range []string{"1", "2"} {
		annotate("ticket.example.com/number", value)
		if after := o.house(t).Status; len(o.writes) > 0 || !reflect.DeepEqual(status, after) {
			t.Errorf("the writes are %v and the status is %+v, want none and %+v", o.writes, after, status)
		}
	}
	// One of the component's own is a change, so what is above can fail.
	annotate(componentPrefix+"/mode", "x")
	if after := o.house(t).Status; after.Revision != status.Revision+1 || after.LastProcessingDigest == status.LastProcessingDigest {
		t.Errorf("the status was %+v and is %+v, want the next revision and another digest", status, after)
	}
}

// TestPreDeleteHooks: hooks before a deletion do not run while it is blocked, and then once, however many requests it
// takes.
func TestPreDeleteHooks(t *testing.T) {
	definition := resources.CRD()
	definition.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	house, walls, roof := newHouse()
	// It goes in a later request.
	roof.Annotations[generator.SharedPrefix+"/"+generator.AnnotationDeleteOrder] = "1"
	house.SetObjects(definition, walls, roof)
	deployed := rollOut(t, house, 0)
	foreign := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget", UID: "gadget-uid"}}
	var calls []string
	hook := func(name string) generator.Hook[*resources.Assembly] {
		return func(context.Context, client.Client, *resources.Assembly) error {
			calls = append(calls, name)
			return nil
		}
	}
	node := assembling()
	node.Hooks.PreDelete = []generator.Hook[*resources.Assembly]{hook("before")}
	node.Hooks.PostDelete = []generator.Hook[*resources.Assembly]{hook("after")}
	o := newOperated(t, node, deployed.With(going).Object(), append(deployed.Objects(), foreign))
	is := func(when string, want ...string) {
		t.Helper()
		for range 3 {
			if _, err := o.reconcile(t, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(calls, want) {
			t.Errorf("%s: the hooks called are %v, want %v", when, calls, want)
		}
	}
	is("blocked")
	hold := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "walls"}}
	o.change(t, hold, func() { hold.Finalizers = []string{"example.com/hold"} })
	if err := o.client.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	is("under way", "before")
	if n := len(o.house(t).Status.Inventory); n != 2 {
		t.Errorf("%d objects are left, want 2", n)
	}
	o.change(t, hold, func() { hold.Finalizers = nil })
	is("gone", "before", "after")
	if err := o.client.Get(t.Context(), o.key, &resources.Assembly{}); !apierrs.IsNotFound(err) {
		t.Errorf("the read of the resource ends with %v, want it gone", err)
	}
}

// TestTimeout: what always fails times out too. What is not ready returns an error once, when it times out.
func TestTimeout(t *testing.T) {
	house := resources.NewAssembly("default", "house", deployment("web", "0", 1))
	house.UID = "house-uid"
	house.Spec.Timeout = &metav1.Duration{Duration: time.Minute}
	broken := errors.New("no such chart")
	for name, test := range map[string]struct {
		adapt func(assemblyNode)
		// early is the reason before the timeout; errs says which requests return an error.
		early string
		errs  []bool
	}{
		"not ready": {func(assemblyNode) {}, "Processing", []bool{false, false, true, false, false}},
		"always fails": {func(node assemblyNode) {
			node.Generator = generator.GeneratorFunc(func(context.Context, string, string, generator.Unstructurable) ([]client.Object, error) {
				return nil, broken
			})
		}, "Error", []bool{true, true, true, true, true}},
		"fails before anything is known": {func(node assemblyNode) {
			node.Configure = func(_ context.Context, _ *resources.Assembly, configuration *generator.Configuration) error {
				configuration.Timeout = time.Minute
				return nil
			}
			node.Parameters = func(context.Context, *resources.Assembly) (generator.Unstructurable, error) { return nil, broken }
		}, "Error", []bool{true, true, true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			node := assembling()
			test.adapt(node)
			o := newOperated(t, node, house.DeepCopy(), nil)
			if test.early == "Processing" {
				// Its objects are recorded first.
				if _, err := o.reconcile(t, 0); err != nil {
					t.Fatal(err)
				}
			}
			reasons, errs := []string{}, []bool{}
			for _, after := range []time.Duration{0, 59 * time.Second, time.Second, time.Minute, time.Hour} {
				_, err := o.reconcile(t, after)
				errs = append(errs, err != nil)
				reasons = append(reasons, meta.FindStatusCondition(o.house(t).Status.Conditions, "Ready").Reason)
			}
			if want := []string{test.early, test.early, "Timeout", "Timeout", "Timeout"}; !slices.Equal(reasons, want) {
				t.Errorf("the reasons are %v, want %v", reasons, want)
			}
			if !slices.Equal(errs, test.errs) {
				t.Errorf("errors were returned: %v, want %v", errs, test.errs)
			}
			if since := o.house(t).Status.ProcessingSince; since == nil || !since.Time.Equal(rtesting.RolledOutAt) {
				t.Errorf("the component is under way since %v, want %v", since, rtesting.RolledOutAt)
			}
		})
	}
}

// TestMessagesNameObjects: the condition names the objects that are waited for, and says why; there is one event for
// each sort of operation, not for each object.
func TestMessagesNameObjects(t *testing.T) {
	objects := []client.Object{deployment("web", "0", 1)}
	for i := range 9 {
		objects = append(objects, partOf("default", fmt.Sprint("part-", i), "0"))
	}
	house := resources.NewAssembly("default", "house", objects...)
	house.UID = "house-uid"
	o := newOperated(t, assembling(), house, nil, rtesting.InduceFailure("create", "ConfigMap",
		rtesting.InduceFailureOpts{Name: "part-8", Error: errors.New("no bricks")}))
	for range 3 {
		_, _ = o.reconcile(t, 0)
	}
	condition := meta.FindStatusCondition(o.house(t).Status.Conditions, "Ready")
	if want := "Unable to create ConfigMap default/part-8: no bricks"; condition.Message != want {
		t.Errorf("the condition says %q, want %q", condition.Message, want)
	}
	said := map[string]string{}
	for _, record := range o.house(t).Status.Inventory {
		said[record.Name] = record.Message
	}
	if said["web"] == "" || said["part-8"] != "unable to create ConfigMap default/part-8: no bricks" || said["part-0"] != "" {
		t.Errorf("the records say %v, want something of web, that part-8 cannot be created, and nothing of part-0",
			said)
	}
	sorts := map[string]int{}
	for _, event := range o.events {
		sort, _, _ := strings.Cut(event, ":")
		sorts[sort]++
	}
	want := map[string]int{"Normal FirstSeen": 1, "Normal Created": 1, "Warning CreateError": 1, "Warning Error": 1}
	if !reflect.DeepEqual(sorts, want) {
		t.Errorf("the events are\n%s\nwant %v", strings.Join(o.events, "\n"), want)
	}

	waiting := newOperated(t, assembling(), house, nil)
	waiting.untilIdle(t)
	condition = meta.FindStatusCondition(waiting.house(t).Status.Conditions, "Ready")
	if want := "Wave 1 of 1: 9 of 10 ready, waiting for Deployment default/web: "; !strings.HasPrefix(condition.Message, want) || len(condition.Message) == len(want) {
		t.Errorf("the condition says %q, want it to begin with %q", condition.Message, want)
	}
}

// TestOwnersOfTwoKinds: two kinds of one operator whose resources have the same namespace, name and even UID do not own
// each other's objects.
func TestOwnersOfTwoKinds(t *testing.T) {
	house, walls, roof := newHouse()
	o := newOperated(t, assembling(), house, nil)
	o.untilIdle(t)
	twin := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: house.Namespace, Name: house.Name, UID: house.UID}}
	if err := o.client.Create(t.Context(), twin); err != nil {
		t.Fatal(err)
	}
	status := &apis.ComponentStatus{}
	node := &component.ComponentReconciler[*resources.Widget]{
		Prefix: componentPrefix,
		Status: func(*resources.Widget) *apis.ComponentStatus { return status },
		Generator: generator.GeneratorFunc(func(context.Context, string, string, generator.Unstructurable) ([]client.Object, error) {
			return []client.Object{walls.DeepCopy(), roof.DeepCopy()}, nil
		}),
	}
	ctx := stash.WithContext(rtime.StashNow(t.Context(), rtesting.RolledOutAt))
	ctx = reconcilers.StashOriginalConfig(reconcilers.StashConfig(ctx, o.root.Config), o.root.Config)
	unharmed := func(when string) {
		t.Helper()
		for _, part := range []*corev1.ConfigMap{walls, roof} {
			found := &corev1.ConfigMap{}
			o.get(t, part.Name, found)
			if found.Annotations[componentPrefix+"/owner-id"] != "Assembly.test.espalier.dev/default/house/house-uid" {
				t.Errorf("%s: %s has the annotations %v, want the owner house-uid", when, part.Name, found.Annotations)
			}
		}
	}
	for range 3 {
		if _, err := node.Reconcile(ctx, twin); err != nil {
			t.Fatal(err)
		}
	}
	unharmed("deployed")
	const want = "it belongs to Assembly.test.espalier.dev default/house"
	if condition := meta.FindStatusCondition(status.Conditions, "Ready"); !strings.Contains(condition.Message, want) {
		t.Errorf("the condition says %q, want it to contain %q", condition.Message, want)
	}
	if err := o.client.Delete(t.Context(), twin); err != nil {
		t.Fatal(err)
	}
	o.get(t, twin.Name, twin)
	for range 3 {
		if _, err := node.Reconcile(ctx, twin); err != nil {
			t.Fatal(err)
		}
	}
	unharmed("deleted")
	if len(twin.Finalizers) > 0 {
		t.Errorf("the twin has the finalizers %v, want none: %+v", twin.Finalizers, status)
	}
}

// bigHouse has objects of several kinds and waves.
func bigHouse() *resources.Assembly {
	var objects []client.Object
	for i := range 12 {
		objects = append(objects, partOf("default", fmt.Sprint("part-", i), fmt.Sprint(i%3)), &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("room-", i%4), Name: fmt.Sprint("key-", i)},
			StringData: map[string]string{"a": "1", "b": "2"},
		})
	}
	house := resources.NewAssembly("default", "house", objects...)
	house.UID = "house-uid"
	return house
}

// lifetime is what all requests and results of a component are, from its first request until it is gone.
func lifetime(t *testing.T) (all []string) {
	t.Helper()
	o := newOperated(t, assembling(), bigHouse(), nil)
	step := func() {
		t.Helper()
		result, err := o.reconcile(t, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, o.requests...), fmt.Sprint(result.RequeueAfter))
	}
	note := func() {
		t.Helper()
		status, err := json.Marshal(o.house(t).Status)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(status))
	}
	for range 3 {
		step()
		note()
	}
	fresh := &resources.Assembly{ObjectMeta: metav1.ObjectMeta{Name: "house"}}
	o.change(t, fresh, func() { fresh.Spec.Objects = slices.Clone(fresh.Spec.Objects[:8]) })
	for range 3 {
		step()
		note()
	}
	if err := o.client.Delete(t.Context(), o.house(t)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		step()
	}
	return all
}

// TestL8SameRequests: the same input gives the same requests, in the same order, and the same status (invariant L8).
func TestL8SameRequests(t *testing.T) {
	want := lifetime(t)
	for range 4 {
		got := lifetime(t)
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("it is\n%s\nnot\n%s", got[i], want[i])
			}
		}
		if len(got) != len(want) {
			t.Fatalf("there are %d requests and results, not %d", len(got), len(want))
		}
	}
}

// TestL9SecretThatCannotBeWritten: what is in a Secret is not shown, not even if the API server quotes it as it refuses
// it (invariant L9).
func TestL9SecretThatCannotBeWritten(t *testing.T) {
	const confidential = "hunter2"
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "key"},
		StringData: map[string]string{"password": confidential},
	}
	invalid := apierrs.NewInvalid(schema.GroupKind{Kind: "Secret"}, "key",
		field.ErrorList{field.Invalid(field.NewPath("data", "password"), confidential, "is refused: "+confidential)})
	house := resources.NewAssembly("default", "house", secret)
	house.UID = "house-uid"
	hide := func(t *testing.T, where, text string) {
		t.Helper()
		for _, secret := range []string{confidential, base64.StdEncoding.EncodeToString([]byte(confidential))} {
			if strings.Contains(text, secret) {
				t.Errorf("the secret is in %s, want it nowhere: %s", where, text)
			}
		}
	}
	inspect := func(t *testing.T, o *operated, err error) {
		t.Helper()
		for ; err != nil; err = errors.Unwrap(err) {
			hide(t, "the error", fmt.Sprintf("%v %+v %#v", err, err, err))
		}
		stored := o.house(t)
		if len(stored.Status.Inventory) != 1 {
			t.Errorf("the inventory is %v, want one record", stored.Status.Inventory)
		}
		status, marshalErr := json.Marshal(stored.Status)
		if marshalErr != nil {
			t.Fatal(marshalErr)
		}
		hide(t, "the status", string(status))
		hide(t, "the annotations", fmt.Sprint(stored.Annotations))
		hide(t, "the events", strings.Join(o.events, "\n"))
	}
	t.Run("create", func(t *testing.T) {
		o := newOperated(t, assembling(), house, nil, rtesting.InduceFailure("create", "Secret", rtesting.InduceFailureOpts{Error: invalid}))
		_, err := o.reconcile(t, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = o.reconcile(t, 0); err == nil {
			t.Fatal("the reconcile has no error, want one")
		}
		inspect(t, o, err)
	})
	t.Run("update", func(t *testing.T) {
		o := newOperated(t, assembling(), house, nil, rtesting.InduceFailure("patch", "Secret", rtesting.InduceFailureOpts{Error: invalid}),
			rtesting.InduceFailure("apply", "Secret", rtesting.InduceFailureOpts{Error: invalid}))
		o.untilIdle(t)
		found := &corev1.Secret{}
		o.get(t, "key", found)
		hide(t, "the annotations of the Secret", fmt.Sprint(found.Annotations, found.Labels))
		o.change(t, found, func() { found.StringData = map[string]string{"password": "theirs"} })
		_, err := o.reconcile(t, 0)
		if err == nil {
			t.Fatal("the reconcile has no error, want one")
		}
		inspect(t, o, err)
	})
}

// TestL10TimeOfTheRequest: all times in a status are those of requests, and never of the wall (invariant L10).
func TestL10TimeOfTheRequest(t *testing.T) {
	house, _, _ := newHouse()
	o := newOperated(t, assembling(), house, nil)
	times := regexp.MustCompile(`\d{4}-\d\d-\d\dT[^"]*`)
	found := 0
	check := func() {
		t.Helper()
		status, err := json.Marshal(o.house(t).Status)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range times.FindAllString(string(status), -1) {
			found++
			at, err := time.Parse(time.RFC3339, text)
			if err != nil || at.Before(rtesting.RolledOutAt) || at.After(o.now) {
				t.Errorf("there is the time %s in %s (%v), want one from %v to %v", text, status, err,
					rtesting.RolledOutAt, o.now)
			}
		}
	}
	for _, after := range []time.Duration{0, time.Second, time.Second, time.Hour} {
		if _, err := o.reconcile(t, after); err != nil {
			t.Fatal(err)
		}
		check()
	}
	if err := o.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "walls"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.reconcile(t, time.Hour); err != nil {
		t.Fatal(err)
	}
	check()
	if status := o.house(t).Status; found == 0 || !status.LastAppliedAt.Time.Equal(o.now) || !status.LastObservedAt.Time.Equal(o.now) {
		t.Errorf("the status at %v is %+v, want that time as that of the last observation and apply", o.now, status)
	}
}

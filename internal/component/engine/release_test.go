package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// guardedWorld is a cluster with a webhook configuration "old", in which some objects cannot be created.
type guardedWorld struct {
	obedient
	refuses map[string]error
	read    error
	owner   string
	// requests are in their order.
	requests []string
}

// webhooksOf is a webhook configuration with one webhook.
func webhooksOf(kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": name},
		"webhooks": []any{map[string]any{"name": "guard.example.com"}},
	}}
}

func (w *guardedWorld) Observe(_ context.Context, _ observe.Component, interests []observe.Interest) (*observe.Observation, error) {
	objects := map[plan.Key]plan.Observed{}
	for i := range interests {
		objects[interests[i].Key] = plan.Observed{Presence: plan.Absent}
		if interests[i].Key.Name == "old" {
			objects[interests[i].Key] = plan.Observed{Presence: plan.Present, UID: "a", ResourceVersion: "6", Ownership: plan.Ours}
		}
	}
	return &observe.Observation{Objects: objects}, nil
}

func (w *guardedWorld) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	w.requests = append(w.requests, "create "+object.GetName())
	if err := w.refuses[object.GetName()]; err != nil {
		return err
	}
	return w.obedient.Create(ctx, object, options...)
}

func (w *guardedWorld) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	w.requests = append(w.requests, "get "+key.Name)
	if w.read != nil {
		return w.read
	}
	live := object.(*unstructured.Unstructured)
	live.Object = webhooksOf(live.GetKind(), key.Name).Object
	live.SetUID("a")
	live.SetResourceVersion("7")
	live.SetLabels(map[string]string{prefix + "/" + generator.LabelOwnerID: w.owner})
	return nil
}

func (w *guardedWorld) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	var o client.DeleteOptions
	o.ApplyOptions(options)
	w.requests = append(w.requests, "delete "+object.GetName()+" "+string(*o.Preconditions.UID)+" "+*o.Preconditions.ResourceVersion)
	return nil
}

func (w *guardedWorld) Deleted(observe.Component, plan.Key, types.UID, bool) {}

// TestRefusalIsLookedInto: of what is dropped, only an object that the refusal may be about is read, once all that can
// be written is, and only one that it is about is deleted: that version of it. What cannot be read stays, and the
// obstacle says so.
func TestRefusalIsLookedInto(t *testing.T) {
	dead := apierrors.NewInternalError(errors.New(`failed calling webhook "guard.example.com": no answer`))
	other := apierrors.NewInternalError(errors.New(`failed calling webhook "other.example.com": no answer`))
	errInvalid := apierrors.NewBadRequest("it is invalid")
	const validating, mutating, removed = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "delete old a 7"
	for name, test := range map[string]struct {
		kind    string
		world   guardedWorld
		desired []client.Object
		want    []string
		says    string
	}{
		"it is about the webhook": {
			kind: validating, world: guardedWorld{refuses: map[string]error{"a": dead}, owner: "id"},
			want: []string{"create a", "get old", removed},
		},
		"it is about another webhook": {
			kind: validating, world: guardedWorld{refuses: map[string]error{"a": other}, owner: "id"},
			want: []string{"create a", "get old"}, says: "it is kept until these are written",
		},
		"it is about the object itself": {
			kind: validating, world: guardedWorld{refuses: map[string]error{"a": errInvalid}, owner: "id"},
			want: []string{"create a"}, says: "it is kept until these are written",
		},
		"it is somebody else's by now": {
			kind: validating, world: guardedWorld{refuses: map[string]error{"a": dead}, owner: "another"},
			want: []string{"create a", "get old"}, says: "it is kept until these are written",
		},
		"it cannot be read": {
			kind: validating, world: guardedWorld{refuses: map[string]error{"a": dead}, read: errDown},
			want: []string{"create a", "get old"}, says: "cannot be read",
		},
		"its successor is written first": {
			kind: mutating, world: guardedWorld{refuses: map[string]error{"a": dead}, owner: "id"},
			desired: []client.Object{webhooksOf(mutating, "new")},
			want:    []string{"create a", "create new", "get old", removed},
		},
		"its successor is refused": {
			kind: mutating, world: guardedWorld{refuses: map[string]error{"a": dead, "new": errInvalid}, owner: "id"},
			desired: []client.Object{webhooksOf(mutating, "new")},
			want:    []string{"create a", "create new", "get old"}, says: "it is kept until these are written",
		},
	} {
		t.Run(name, func(t *testing.T) {
			world := &test.world
			key := plan.Key{Group: "admissionregistration.k8s.io", Kind: test.kind, Name: "old"}
			world.records = []apis.InventoryRecord{{
				Group: key.Group, Version: "v1", Kind: key.Kind, Name: key.Name, UID: "a", Digest: "d", Phase: apis.PhaseReady,
			}}
			options := manifest.Options{Prefix: prefix, Namespaced: func(kind schema.GroupVersionKind) (bool, bool, error) {
				return !kinds.IsClusterScoped(kind.GroupKind()), true, nil
			}}
			objects, err := manifest.Prepare(append(test.desired, configMap("a")), options, nil)
			if err != nil {
				t.Fatal(err)
			}
			machine := &engine.Engine{
				Client: world, Observer: world, Store: world, Memory: &engine.Memory{}, Parallel: 1,
				Mark: execute.Mark{Prefix: prefix, ID: "id", Owner: "owner"}, FieldManager: prefix,
			}
			report, err := machine.Run(t.Context(), engine.Task{Objects: objects, Now: time.Unix(1000, 0)})
			if err == nil {
				t.Error("there is no error, want the refusal")
			}
			if !slices.Equal(world.requests, test.want) {
				t.Errorf("the requests are %q, want %q", world.requests, test.want)
			}
			says := ""
			for _, o := range report.Plan.Obstacles {
				if o.Key == key {
					says = o.Message
				}
			}
			if !strings.Contains(says, test.says) {
				t.Errorf("the obstacle says %q, want %q", says, test.says)
			}
		})
	}
}

package testing_test

import (
	"context"
	"flag"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	restclient "k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// ordinary are rows that say nothing about where they run.
func ordinary() cmNodes {
	parent := settings.With(func(cm *corev1.ConfigMap) { cm.UID = "uid-of-settings" })
	ownedBy := func(cm *corev1.ConfigMap) *corev1.ConfigMap {
		controlled(cm).OwnerReferences[0].UID = "uid-of-settings"
		return cm
	}
	given := ownedBy(configMap("child", "k", "v"))
	given.UID, given.ResourceVersion = "uid-of-child", "7"
	changed := given.DeepCopy()
	changed.Data["k"] = "w"
	grandchild := configMap("grandchild")
	grandchild.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: "child", UID: "uid-of-child", BlockOwnerDeletion: new(true),
	}}
	uid, version := types.UID("uid-of-child"), "7"
	patched := `{"data":{"uid":"uid-of-child"},"metadata":{"resourceVersion":"7"}}`

	return cmNodes{
		"creates a child": {
			Resource:      parent.Object(),
			ExpectCreates: []client.Object{ownedBy(configMap("one"))},
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				return ensures(ctx, cm, "one")
			}),
		},
		"updates a child": {
			Resource:      parent.Object(),
			GivenObjects:  []client.Object{given},
			ExpectUpdates: []client.Object{changed},
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				child, err := childOf(ctx, cm, "uid-of-child")
				if err != nil || child.Data["k"] == "w" {
					return err
				}
				child.Data["k"] = "w"
				return reconcilers.RetrieveConfigOrDie(ctx).Update(ctx, child)
			}),
		},
		"deletes a child": {
			Resource:     parent.Object(),
			GivenObjects: []client.Object{given},
			ExpectDeletes: []rtesting.DeleteRef{{
				Kind: "ConfigMap", Namespace: "default", Name: "child",
				Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
			}},
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				child, err := childOf(ctx, cm, "uid-of-child")
				if err != nil {
					return client.IgnoreNotFound(err)
				}
				only := client.Preconditions{UID: &child.UID, ResourceVersion: &child.ResourceVersion}
				return reconcilers.RetrieveConfigOrDie(ctx).Delete(ctx, child, only)
			}),
		},
		"patches a child": {
			Resource:     parent.Object(),
			GivenObjects: []client.Object{given},
			ExpectPatches: []rtesting.PatchRef{{
				Kind: "ConfigMap", Namespace: "default", Name: "child",
				PatchType: types.MergePatchType, Patch: []byte(patched),
			}},
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				child, err := childOf(ctx, cm, "uid-of-child")
				if err != nil || child.Data["uid"] != "" {
					return err
				}
				patch := client.MergeFromWithOptions(child.DeepCopy(), client.MergeFromWithOptimisticLock{})
				child.Data["uid"] = string(child.UID)
				return reconcilers.RetrieveConfigOrDie(ctx).Patch(ctx, child, patch)
			}),
		},
		"applies until rest": {
			Resource: parent.Object(),
			Until:    rtesting.Rest(),
			ExpectApplies: []rtesting.ApplyRef{
				{Kind: "ConfigMap", Namespace: "default", Name: "a", ApplyConfiguration: corev1ac.ConfigMap("a", "default")},
				{Kind: "ConfigMap", Namespace: "default", Name: "a", ApplyConfiguration: corev1ac.ConfigMap("a", "default")},
			},
			Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
				c := reconcilers.RetrieveConfigOrDie(ctx)
				return c.Apply(ctx, corev1ac.ConfigMap("a", "default"), client.FieldOwner("me"))
			}),
		},
		"waits for garbage to be collected": {
			Resource:      parent.Object(),
			GivenObjects:  []client.Object{given, grandchild},
			Until:         rtesting.Rest(),
			ExpectDeletes: []rtesting.DeleteRef{{Kind: "ConfigMap", Namespace: "default", Name: "child"}},
			ExpectCreates: []client.Object{ownedBy(configMap("one"))},
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				return replaces(ctx, cm, client.PropagationPolicy(metav1.DeletePropagationBackground))
			}),
		},
		"waits for a deletion in the foreground": {
			Resource:      parent.Object(),
			GivenObjects:  []client.Object{given, grandchild},
			Until:         rtesting.Rest(),
			ExpectDeletes: []rtesting.DeleteRef{{Kind: "ConfigMap", Namespace: "default", Name: "child"}},
			ExpectCreates: []client.Object{ownedBy(configMap("one"))},
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				return replaces(ctx, cm, client.PropagationPolicy(metav1.DeletePropagationForeground))
			}),
		},
		"does not see yet what the cache has not seen": {
			Resource:        parent.Object(),
			APIGivenObjects: []client.Object{given},
			Replays:         rtesting.NoReplays("it is about the first request alone"),
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				c := reconcilers.RetrieveConfigOrDie(ctx)
				if _, err := childOf(ctx, cm, ""); !apierrors.IsNotFound(err) {
					return fmt.Errorf("the client sees it: %w", err)
				}
				return c.APIReader.Get(ctx, client.ObjectKeyFromObject(given), &corev1.ConfigMap{})
			}),
		},
	}
}

// server answers as a real one does.
func server() client.WithWatch {
	return store.New(store.Options{Scheme: scheme}).Client(store.ClientOptions{})
}

// refusing is a server that does not let the grandchild be deleted.
func refusing() client.WithWatch {
	return interceptor.NewClient(server(), interceptor.Funcs{Delete: func(
		ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption,
	) error {
		if options := (&client.DeleteOptions{}).ApplyOptions(opts); options.PropagationPolicy != nil {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, obj.GetName(), errOops)
		}
		return c.Delete(ctx, obj, opts...)
	}})
}

func init() {
	scenarios["garbage that a real server keeps"] = scenario{
		run: func(t *testing.T) {
			row := ordinary()["waits for garbage to be collected"]
			row.Server, row.ExpectCreates = refusing(), nil
			row.Metadata = does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				c := reconcilers.RetrieveConfigOrDie(ctx)
				return client.IgnoreNotFound(c.Delete(ctx, configMap("child")))
			})
			row.ExpectDeletes = append(row.ExpectDeletes, row.ExpectDeletes...)
			runFaithful(t, cmNodes{"case": row})
		},
		want: []string{"the server does not let ConfigMap default/grandchild be collected as garbage", "oops"},
	}
}

// replaces deletes the given child, waits until it and what it owns are gone, and makes another.
func replaces(ctx context.Context, cm *corev1.ConfigMap, policy client.DeleteOption) error {
	c := reconcilers.RetrieveConfigOrDie(ctx)
	for _, name := range []string{"child", "grandchild"} {
		there := &corev1.ConfigMap{}
		err := c.Get(ctx, client.ObjectKey{Namespace: cm.Namespace, Name: name}, there)
		switch {
		case apierrors.IsNotFound(err):
		case err == nil && name == "child" && there.DeletionTimestamp == nil:
			return c.Delete(ctx, there, policy)
		default:
			return err
		}
	}
	return ensures(ctx, cm, "one")
}

// childOf returns the given child, which must have a UID.
func childOf(ctx context.Context, cm *corev1.ConfigMap, uid types.UID) (*corev1.ConfigMap, error) {
	child := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: cm.Namespace, Name: "child"}
	if err := reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, key, child); err != nil {
		return nil, err
	}
	if child.UID != uid || child.OwnerReferences[0].UID != cm.UID || child.Namespace != "default" {
		return nil, fmt.Errorf("the child is %v", child.ObjectMeta)
	}
	return child, nil
}

func TestARealServerAnswersRowsAsMemoryDoes(t *testing.T) {
	server := newServer(t)
	rows := ordinary()
	for name, row := range rows {
		row.Server = server
		rows[name] = row
	}
	runFaithful(t, rows)

	left := &corev1.ConfigMapList{}
	if err := server.List(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	for _, cm := range left.Items {
		if cm.Name == "settings" || cm.Name == "child" {
			t.Errorf("%s/%s is left behind", cm.Namespace, cm.Name)
		}
	}
}

func TestTheSameRowsInMemory(t *testing.T) { runFaithful(t, ordinary()) }

func init() {
	twins := []client.Object{configMap("a"), configMap("b")}
	twins[0].SetUID("u")
	twins[1].SetUID("u")
	const sameUID = `the given objects cannot be stored: ConfigMap default/b: ` +
		`its UID "u" is that of ConfigMap default/a too`
	invalid := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	expectingMore := func(row cmCase) func(t *testing.T) {
		row.Resource, row.Metadata = settings.Object(), does(nothing)
		row.ExpectResource = changed.Object()
		return func(t *testing.T) { runFaithful(t, cmNodes{"case": row}) }
	}
	scenarios["two given objects of one UID"] = scenario{
		run: expectingMore(cmCase{GivenObjects: twins}), want: []string{sameUID}, unwanted: []string{"ExpectResource"},
	}
	scenarios["two given objects of one UID, one that the client has not seen"] = scenario{
		run:  expectingMore(cmCase{GivenObjects: twins[:1], APIGivenObjects: twins[1:]}),
		want: []string{sameUID}, unwanted: []string{"ExpectResource"},
	}
	scenarios["given objects that a server refuses"] = scenario{
		run: func(t *testing.T) {
			expectingMore(cmCase{GivenObjects: []client.Object{invalid}, Server: server()})(t)
		},
		want: []string{
			"the server does not take what is given: Deployment default/web: ", "spec.selector: Required value",
		},
	}
	scenarios["an answer of a real server that differs"] = scenario{
		run: func(t *testing.T) {
			row := ordinary()["creates a child"]
			row.Server = interceptor.NewClient(server(), interceptor.Funcs{Create: func(
				ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption,
			) error {
				if obj.GetName() == "one" {
					return errOops
				}
				return c.Create(ctx, obj, opts...)
			}})
			runFaithful(t, cmNodes{"case": row})
		},
		want: []string{
			"the real API server answers otherwise: create ConfigMap default/one: the server refuses it (an error), " +
				"memory does not: oops",
		},
	}
	scenarios["rows say where they run"] = scenario{
		args: []string{"-rtesting.differential"},
		run: func(t *testing.T) {
			row := cmCase{Resource: settings.Object(), Metadata: does(nothing), ExpectOrder: []string{"never"}}
			inTime, reacting, pinned := row, row, row
			inTime.VirtualTime = true
			reacting.WithReactors = []rtesting.ReactionFunc{rtesting.InduceFailure("get", "Secret")}
			pinned.Fault = rtesting.DiesBefore("get ConfigMap default/settings")
			code := rtesting.Main(tests(func() int {
				runFaithful(t, cmNodes{"in time": inTime, "reacting": reacting, "pinned": pinned})
				return 0
			}), &apiServer{config: &restclient.Config{}})
			t.Logf("the code is %d", code)
		},
		want: []string{
			"runs in memory alone: it runs in virtual time",
			"runs in memory alone: it has reactors",
			"runs in memory alone: it pins a Fault",
			"no row of a NodeTests or RootTests was compared",
			"the code is 1",
		},
	}
	scenarios["the flag without a server"] = scenario{
		alone: true,
		args:  []string{"-rtesting.differential"},
		run:   func(t *testing.T) { runFaithful(t, ordinary()) },
		want:  []string{"the flag -rtesting.differential needs a TestMain that calls rtesting.Main"},
	}
}

// tests are what a test binary has.
type tests func() int

func (run tests) Run() int { return run() }

// apiServer is one that runs already.
type apiServer struct {
	config *restclient.Config
	err    error
	// starts and stops count.
	starts, stops int
}

func (s *apiServer) Start() (*restclient.Config, error) { s.starts++; return s.config, s.err }

func (s *apiServer) Stop() error { s.stops++; return nil }

func TestMainStartsTheServerIfAFlagAsksForIt(t *testing.T) {
	config := plane.Config(t)
	for name, test := range map[string]struct {
		flag     string
		err      error
		code     int
		ran      bool
		starts   int
		calls    bool
		wantCode int
	}{
		"without the flag":         {flag: "false", code: 7, ran: true, wantCode: 7},
		"compared":                 {flag: "true", code: 7, ran: true, starts: 1, calls: true, wantCode: 7},
		"nothing compared":         {flag: "true", ran: true, starts: 1, wantCode: 1},
		"a server that is missing": {flag: "true", err: errOops, starts: 1, wantCode: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if err := flag.Set("rtesting.differential", test.flag); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := flag.Set("rtesting.differential", "false"); err != nil {
					t.Error(err)
				}
			}()
			ran := false
			server := &apiServer{config: config, err: test.err}
			code := rtesting.Main(tests(func() int {
				ran = true
				if test.calls {
					runFaithful(t, cmNodes{"creates a child": ordinary()["creates a child"]})
				}
				return test.code
			}), server)
			if code != test.wantCode || ran != test.ran || server.starts != test.starts || server.stops != test.starts {
				t.Errorf("the code is %d, want %d; ran %t, want %t; %d starts and %d stops, want %d of each",
					code, test.wantCode, ran, test.ran, server.starts, server.stops, test.starts)
			}
		})
	}
}

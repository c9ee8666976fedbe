package foreign_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// An API server delays the creation of an instance of a new type by two seconds, and evaluates the rules that were
// there when it began.
func TestCreationThatIsHeldUp(t *testing.T) {
	t.Parallel()
	crd := crdOf("Yoke")
	installNew(t, crd)
	namespace, c := plane.Namespace(t), live(t)
	// The client finds out about the type now, so that the creation is one request.
	if err := c.List(t.Context(), listOf(crd)); err != nil {
		t.Fatal(err)
	}
	established := func() time.Time {
		for _, c := range stored(t, crd).Status.Conditions {
			if c.Type == apiextensionsv1.Established {
				return c.LastTransitionTime.Time
			}
		}
		return time.Time{}
	}()
	answered := make(chan error, 1)
	started := false
	g, _ := guarded(t, interceptor.Funcs{
		Patch: func(ctx context.Context, cl client.WithWatch, obj client.Object, patch client.Patch,
			opts ...client.PatchOption) error {
			if !started {
				started = true
				sent, once := make(chan struct{}), sync.Once{}
				go func() {
					// A request that the API server has no time for is sent again.
					wrote := func(httptrace.WroteRequestInfo) { once.Do(func() { close(sent) }) }
					trace := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: wrote})
					answered <- c.Create(trace, instance(crd, namespace, "theirs", ""))
				}()
				<-sent
				// A few round trips, for the API server to have begun with it.
				for range 5 {
					if err := c.List(ctx, listOf(crd)); err != nil {
						t.Error(err)
					}
				}
			}
			return cl.Patch(ctx, obj, patch, opts...)
		},
		// The creation for trial is not held up.
		Create: func(ctx context.Context, cl client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			<-time.After(time.Until(established.Add(2100 * time.Millisecond)))
			return cl.Create(ctx, obj, opts...)
		},
	})
	use, err := deleteOne(t.Context(), g, keyOf(crd), stored(t, crd).UID)
	if created := <-answered; created != nil {
		// This machine is too slow: the type had grown old, was being deleted, or was gone.
		t.Logf("not held up: %v", created)
		terminating := apierrors.IsForbidden(created) && strings.Contains(created.Error(), "definition is terminating")
		if !apierrors.IsInvalid(created) && !apierrors.IsNotFound(created) && !terminating {
			t.Fatal(created)
		}
		assertUse(t, use, err, none)
		return
	}
	assertUse(t, use, err, blocking(0, "Yoke "+namespace+"/theirs"))
	assertFences(t, crd, 0)
}

func patchOf(crd *apiextensionsv1.CustomResourceDefinition) controlplane.Request {
	return controlplane.Request{Verb: "patch", Path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" +
		crd.Name}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Hammer"))
	namespace := plane.Namespace(t)
	theirs := instance(crd, namespace, "theirs", "them")
	create(t, theirs)
	mine := instance(crd, namespace, "mine", ours)
	mine.SetFinalizers([]string{"example.com/wait"})
	create(t, mine)
	g, requests := guarded(t, interceptor.Funcs{})
	uid := stored(t, crd).UID

	use, err := deleteOne(t.Context(), g, keyOf(crd), uid)
	assertUse(t, use, err, blocking(0, "Hammer "+namespace+"/theirs"))
	if n := requests.Writes(); n != 0 {
		t.Errorf("there are %d writes, want none: %v", n, requests.Counts())
	}
	if err := live(t).Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	use, err = deleteOne(t.Context(), g, keyOf(crd), "another")
	assertUse(t, use, err, none)
	if n := requests.Writes(); n != 0 {
		t.Errorf("there are %d writes to what is not meant, want none: %v", n, requests.Counts())
	}

	use, err = deleteOne(t.Context(), g, keyOf(crd), uid)
	assertUse(t, use, err, none)
	fresh := stored(t, crd)
	if fresh == nil || fresh.DeletionTimestamp == nil {
		t.Fatalf("the definition is %v, want it being deleted and waiting for the instance with a finalizer", fresh)
	}

	// It is being deleted already, so it is only checked.
	requests.Reset()
	use, err = deleteOne(t.Context(), g, keyOf(crd), uid)
	assertUse(t, use, err, none)
	use, err = checkOne(t.Context(), g, keyOf(crd), true)
	assertUse(t, use, err, none)
	if err := g.Lift(t.Context(), keyOf(crd)); err != nil {
		t.Error(err)
	}
	if n := requests.Writes(); n != 0 {
		t.Errorf("there are %d writes, want none: %v", n, requests.Counts())
	}
	controlplanetest.Eventually(t, "the instance does not go", func(context.Context) error {
		if err := live(t).Get(context.Background(), client.ObjectKeyFromObject(mine), mine); err != nil {
			return client.IgnoreNotFound(err)
		}
		mine.SetFinalizers(nil)
		return client.IgnoreNotFound(live(t).Update(context.Background(), mine))
	})
	assertGone(t, crd)
}

func TestCheckOfADefinitionThatIsDeleted(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Iron"))
	namespace := plane.Namespace(t)
	theirs := instance(crd, namespace, "theirs", "them")
	theirs.SetFinalizers([]string{"example.com/wait"})
	create(t, theirs)
	if err := live(t).Delete(t.Context(), crd.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	g, requests := guarded(t, interceptor.Funcs{})
	use, err := checkOne(t.Context(), g, keyOf(crd), true)
	assertUse(t, use, err, blocking(0, "Iron "+namespace+"/theirs"))
	if n := requests.Writes(); n != 0 {
		t.Errorf("there are %d writes, want none: %v", n, requests.Counts())
	}
	controlplanetest.Eventually(t, "the instance does not go", func(context.Context) error {
		if err := live(t).Get(context.Background(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
			return client.IgnoreNotFound(err)
		}
		theirs.SetFinalizers(nil)
		return client.IgnoreNotFound(live(t).Update(context.Background(), theirs))
	})
	assertGone(t, crd)
}

// An instance that is created between the first check and the fence is found by the second check.
func TestSecondCheck(t *testing.T) {
	t.Parallel()
	for i, fence := range []bool{true, false} {
		t.Run(fmt.Sprintf("check %v", fence), func(t *testing.T) {
			t.Parallel()
			crd := install(t, crdOf(fmt.Sprintf("Jig%d", i)))
			theirs := instance(crd, plane.Namespace(t), "theirs", "")
			var once sync.Once
			g, _ := guarded(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object,
				patch client.Patch, opts ...client.PatchOption) error {
				once.Do(func() { create(t, theirs) })
				return c.Patch(ctx, obj, patch, opts...)
			}})
			var use plan.Use
			var err error
			if fence {
				use, err = checkOne(t.Context(), g, keyOf(crd), true)
			} else {
				use, err = deleteOne(t.Context(), g, keyOf(crd), stored(t, crd).UID)
			}
			assertUse(t, use, err, blocking(0, crd.Spec.Names.Kind+" "+theirs.GetNamespace()+"/theirs"))
			assertFences(t, crd, 0)
			if fresh := stored(t, crd); fresh.DeletionTimestamp != nil {
				t.Errorf("the definition was deleted at %v, want it left", fresh.DeletionTimestamp)
			}
		})
	}
}

// What others write to the definition at the same time is kept, and the definition is not deleted without another
// check.
func TestOthersWriteToTheDefinition(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Kiln"))
	namespace, n := plane.Namespace(t), atomic.Int64{}
	touch := func() {
		fresh := stored(t, crd)
		patch := fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, n.Add(1))
		if err := live(t).Patch(t.Context(), fresh, client.RawPatch("application/merge-patch+json",
			[]byte(patch))); err != nil {
			t.Error(err)
		}
	}
	var patched, deleted sync.Once
	g, _ := guarded(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch,
			opts ...client.PatchOption) error {
			patched.Do(touch)
			return c.Patch(ctx, obj, patch, opts...)
		},
		// Between the second check and the DELETE another writer removes the fence and creates an instance.
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			deleted.Do(func() {
				fresh := stored(t, crd)
				fresh.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = nil
				if err := live(t).Update(t.Context(), fresh); err != nil {
					t.Error(err)
				}
				eventuallyCreates(t, instance(crd, namespace, "theirs", ""))
			})
			return c.Delete(ctx, obj, opts...)
		},
	})
	use, err := deleteOne(t.Context(), g, keyOf(crd), stored(t, crd).UID)
	assertUse(t, use, err, blocking(0, "Kiln "+namespace+"/theirs"))
	assertFences(t, crd, 0)
	if stored(t, crd).Labels["touched"] != "1" {
		t.Errorf(`the label of another writer is %q, want "1"`, stored(t, crd).Labels["touched"])
	}

	restless, _ := guarded(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch,
			opts ...client.PatchOption) error {
			touch()
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	if err := live(t).Delete(t.Context(), instance(crd, namespace, "theirs", "")); err != nil {
		t.Fatal(err)
	}
	_, err = checkOne(t.Context(), restless, keyOf(crd), true)
	if !apierrors.IsConflict(err) || !strings.HasPrefix(err.Error(),
		"CustomResourceDefinition kilns.smithy.example.com keeps changing: ") {
		t.Errorf("the error is %v, want the conflict that the definition keeps changing", err)
	}
	assertFences(t, crd, 0)
}

// Another definition of the same name is not touched, even if it replaces the first one just before the DELETE.
func TestDefinitionIsReplaced(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Lathe"))
	var once sync.Once
	g, _ := guarded(t, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, obj client.Object,
		opts ...client.DeleteOption) error {
		once.Do(func() {
			uninstall(t, crd)
			assertGone(t, crd)
			create(t, crdOf("Lathe"))
		})
		return c.Delete(ctx, obj, opts...)
	}})
	use, err := deleteOne(t.Context(), g, keyOf(crd), stored(t, crd).UID)
	assertUse(t, use, err, none)
	assertFences(t, crd, 0)
	if stored(t, crd).DeletionTimestamp != nil {
		t.Errorf("another definition was deleted at %v, want it left", stored(t, crd).DeletionTimestamp)
	}
}

var errDown = errors.New("the connection is lost")

// failing fails the n-th request, before it is sent or after it was answered, and each that follows: the process is
// gone.
func failing(n int64, after bool) (interceptor.Funcs, *atomic.Int64) {
	count := &atomic.Int64{}
	call := func(do func() error) error {
		mine := count.Add(1)
		if mine > n || mine == n && !after {
			return errDown
		}
		err := do()
		if mine == n {
			return errDown
		}
		return err
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			opts ...client.GetOption) error {
			return call(func() error { return c.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return call(func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return call(func() error { return c.Create(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch,
			opts ...client.PatchOption) error {
			return call(func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return call(func() error { return c.Delete(ctx, obj, opts...) })
		},
	}, count
}

// After a failure of any request, the next call deletes the type, or, if others have an instance by then, leaves it
// without a fence.
func TestCrash(t *testing.T) {
	t.Parallel()
	step := 1
	if raceDetector {
		step = 2
	}
	// The requests are: get, list, patch, one or more creations for trial, patch, list, delete.
	for n := int64(1); n <= 8; n++ {
		for _, after := range []bool{false, true} {
			for _, used := range []bool{false, true} {
				if (int(n)+index(after)+index(used))%step != 0 {
					continue
				}
				t.Run(fmt.Sprintf("request %d, answered %v, used %v", n, after, used), func(t *testing.T) {
					t.Parallel()
					kind := fmt.Sprintf("Mill%d%d", n, index(after)+2*index(used))
					crd := install(t, crdOf(kind))
					crash(t, crd, n, after, used)
				})
			}
		}
	}
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

func crash(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, n int64, after, used bool) {
	t.Helper()
	uid := stored(t, crd).UID
	theirs := instance(crd, plane.Namespace(t), "theirs", "")
	funcs, count := failing(n, after)
	if used {
		// An instance of another owner is created before the fence.
		patch := funcs.Patch
		var once sync.Once
		funcs.Patch = func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			once.Do(func() { create(t, theirs) })
			return patch(ctx, c, obj, p, opts...)
		}
	}
	g, _ := guarded(t, funcs)
	use, err := deleteOne(t.Context(), g, keyOf(crd), uid)
	if count.Load() >= n && !errors.Is(err, errDown) {
		t.Fatalf("request %d of %d failed, and the use is %+v and the error %v, want %v", n, count.Load(), use, err,
			errDown)
	}

	healthy := newGuard(t, plane.Config(t))
	use, err = deleteOne(t.Context(), healthy, keyOf(crd), uid)
	// Without a try to fence there is no instance.
	if err := live(t).Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); used && err == nil {
		assertUse(t, use, nil, blocking(0, crd.Spec.Names.Kind+" "+theirs.GetNamespace()+"/theirs"))
		assertFences(t, crd, 0)
		return
	}
	assertUse(t, use, err, none)
	assertGone(t, crd)
}

// A policy may come into force when the fence is up already. It then refuses to record the proof, which is not needed,
// and to lift the fence, which is reported in its words.
func TestFenceThatMayNotBeChanged(t *testing.T) {
	t.Parallel()
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "definitions"}, "x",
		errors.New("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: Leave it."))
	for kind, used := range map[string]bool{"Burin": false, "Chisel": true} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			crd := install(t, crdOf(kind))
			theirs := instance(crd, plane.Namespace(t), "theirs", "")
			var writes atomic.Int64
			g, _ := guarded(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object,
				patch client.Patch, opts ...client.PatchOption) error {
				if writes.Add(1) > 1 {
					return refused
				}
				if used {
					create(t, theirs)
				}
				return c.Patch(ctx, obj, patch, opts...)
			}})
			use, err := deleteOne(t.Context(), g, keyOf(crd), stored(t, crd).UID)
			if !used {
				assertUse(t, use, err, none)
				assertGone(t, crd)
				return
			}
			want := unknown("the fence of Chisel could not be lifted: " +
				"refused by the ValidatingAdmissionPolicy 'p': Leave it.")
			want.Unfenced = true
			assertUse(t, use, err, want)
		})
	}
}

// A lost answer to an instance that is tried says nothing about the fence, so the proof goes on.
func TestProofWithLostAnswers(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Gouge"))
	var tried, written atomic.Int64
	g, _ := guarded(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if tried.Add(1)%2 == 1 {
				return errDown
			}
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch,
			opts ...client.PatchOption) error {
			written.Add(1)
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	use, err := deleteOne(t.Context(), g, keyOf(crd), stored(t, crd).UID)
	assertUse(t, use, err, none)
	assertGone(t, crd)
	if tried.Load() < 2 || written.Load() != 2 {
		t.Errorf("%d instances were tried and the definition was written %d times, want at least 2 and 2",
			tried.Load(), written.Load())
	}
}

// Others create instances as fast as they can while the type is removed. Either it is removed, and no creation
// succeeded, or it stays with all instances.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	const workers = 20
	rounds := 12
	if raceDetector {
		rounds = 3 // a round differs from the next two
	}
	for round := range rounds {
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) {
			t.Parallel()
			race(t, install(t, crdOf(fmt.Sprintf("Nail%d", round))), workers, round)
		})
	}
}

func race(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, workers, round int) {
	t.Helper()
	kind, namespace, c := crd.Spec.Names.Kind, plane.Namespace(t), live(t)
	if err := c.List(t.Context(), listOf(crd)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var created []string
	var group sync.WaitGroup
	start := make(chan struct{})
	for w := range workers {
		group.Go(func() {
			<-start
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("n-%d-%d", w, i)
				if err := c.Create(ctx, instance(crd, namespace, name, "")); err == nil {
					mu.Lock()
					created = append(created, name)
					mu.Unlock()
				}
			}
		})
	}
	g := newGuard(t, plane.Config(t))
	g.Margin = 0
	uid := stored(t, crd).UID
	// The creations start before, at about the same time as, or after the fence.
	var begin sync.Once
	g.Client = interceptor.NewClient(g.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch,
			opts ...client.PatchOption) error {
			if round%3 == 0 {
				begin.Do(func() { close(start) })
			}
			err := c.Patch(ctx, obj, patch, opts...)
			begin.Do(func() { close(start) })
			return err
		},
		// With a fence they have begun by then.
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			begin.Do(func() { close(start) })
			return c.Delete(ctx, obj, opts...)
		},
	})
	use, err := deleteOne(t.Context(), g, keyOf(crd), uid)
	if err != nil {
		t.Errorf("%s: %v", kind, err)
	}
	begin.Do(func() { close(start) })
	if use.State == plan.ForeignNone {
		// They go on until there is nothing left to create instances of.
		assertGone(t, crd)
	}
	cancel()
	group.Wait()

	switch use.State {
	case plan.ForeignNone:
		assertGone(t, crd)
		if len(created) > 0 {
			t.Errorf("%s: %d instances were lost, want none", kind, len(created))
		}
	case plan.ForeignBlocking:
		assertFences(t, crd, 0)
		list := listOf(crd)
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		there := map[string]bool{}
		for _, item := range list.Items {
			there[item.Name] = true
		}
		for _, name := range created {
			if !there[name] {
				t.Errorf("%s: %s was lost, want it there", kind, name)
			}
		}
		if len(created) == 0 {
			t.Errorf("%s: the deletion is blocked by no instance, want one at least: %+v", kind, use)
		}
	default:
		t.Errorf("%s: the use is %+v, want a known state", kind, use)
	}
	t.Logf("%s: state %d, %d created", kind, use.State, len(created))
}

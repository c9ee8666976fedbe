package execute_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/plan"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// creations desires n ConfigMaps, and returns the stage that creates them.
func (b *bench) creations(n int) plan.Stage {
	b.Helper()
	var stage plan.Stage
	for i := range n {
		o := b.desire(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x%d}}`, i), "d1")
		stage.Operations = append(stage.Operations, operation(plan.ActionCreate, o))
	}
	return stage
}

// G-09: one that fails does not keep the others from being tried, and the results are in the order of the operations.
func TestRun(t *testing.T) {
	b := newBench(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetName() == "x3" {
				return apierrs.NewInternalError(errors.New("because"))
			}
			return c.Create(ctx, o, opts...)
		},
	})
	stage := b.creations(40)
	results := b.executor.Run(t.Context(), stage)
	if len(results) != len(stage.Operations) {
		t.Fatalf("got %d results", len(results))
	}
	for i, result := range results {
		if result.Operation != stage.Operations[i] {
			t.Errorf("result %d is that of %s", i, result.Operation.Key)
		}
		if failed := result.Err != nil; failed != (i == 3) {
			t.Errorf("operation %d: got the error %v", i, result.Err)
		}
		if i != 3 && result.Object.GetName() != stage.Operations[i].Key.Name {
			t.Errorf("operation %d: got the object %s", i, result.Object.GetName())
		}
	}
	b.wantText(results[3].Err, "unable to create ConfigMap NS/x3: Internal error occurred: because")
	if got := b.executor.Run(t.Context(), plan.Stage{}); len(got) != 0 {
		t.Errorf("no operations have %d results", len(got))
	}
}

// As many operations as allowed are carried out at the same time, and no more.
func TestRunInParallel(t *testing.T) {
	for _, test := range []struct{ parallel, want int }{{0, 16}, {1, 1}, {5, 5}} {
		var mu sync.Mutex
		running, most := 0, 0
		full := make(chan struct{})
		b := newBench(t, interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				mu.Lock()
				running++
				if most = max(most, running); most == test.want && running == most {
					select {
					case <-full:
					default:
						close(full)
					}
				}
				mu.Unlock()
				<-full
				mu.Lock()
				running--
				mu.Unlock()
				return nil
			},
		})
		b.executor.Parallel = test.parallel
		b.executor.Run(t.Context(), b.creations(40))
		if most != test.want {
			t.Errorf("with %d, at most %d were carried out at the same time, want %d", test.parallel, most, test.want)
		}
	}
}

// Once the context is done, nothing more is begun.
func TestRunCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	b := newBench(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			calls++
			err := c.Create(ctx, o, opts...)
			cancel()
			return err
		},
	})
	b.executor.Parallel = 1
	results := b.executor.Run(ctx, b.creations(4))
	if calls != 1 || results[0].Err != nil {
		t.Errorf("%d operations were begun; the first one failed with %v", calls, results[0].Err)
	}
	for i, result := range results[1:] {
		if !errors.Is(result.Err, context.Canceled) {
			t.Errorf("operation %d: got the error %v", i+1, result.Err)
		}
	}
	b.wantText(results[3].Err, "unable to create ConfigMap NS/x3: context canceled")
	failed := b.executor.EnsureNamespaces(ctx, []string{"default"})
	if !errors.Is(failed["default"], context.Canceled) {
		t.Errorf("got the error %v", failed["default"])
	}
}

// G-24: operations that make no sense are errors.
func TestRunNonsense(t *testing.T) {
	b := newBench(t)
	key := plan.Key{Kind: "ConfigMap", Namespace: b.namespace, Name: "x"}
	for _, action := range []plan.Action{plan.ActionCreate, plan.ActionApply, plan.ActionAdopt, plan.ActionReplace} {
		b.wantText(b.run(plan.Operation{Action: action, Key: key, UID: "1"}).Err, "unable to "+string(action)+" ConfigMap NS/x: there is no manifest for it")
	}
	b.wantText(b.run(plan.Operation{Action: "dance", Key: key, UID: "1"}).Err, "unable to dance ConfigMap NS/x: the action is not known")
}

// Nothing that may be in a Secret is in an error about it, not even in what the error wraps.
func TestErrorsTellNoSecret(t *testing.T) {
	b := newBench(t)
	secret := func(spec string) plan.Operation {
		o := b.desire(`{apiVersion: v1, kind: Secret, metadata: {name: x}, `+spec+`}`, "d1")
		live := named(o)
		if b.Get(t.Context(), client.ObjectKeyFromObject(o), live) == nil {
			o.SetUID(live.GetUID())
		}
		return operation(plan.ActionApply, o)
	}
	created := b.create(b.desire(`{apiVersion: v1, kind: Secret, metadata: {name: x}, stringData: {a: "1"}}`, "d1"))
	b.observeManaged(created)
	for _, spec := range []string{`data: {a: {b: HUSH}}`, `stringData: {a: HUSH}, type: HUSH`, `immutable: HUSH`, `data: {a: "!HUSH"}`} {
		op := secret(spec)
		for _, action := range []plan.Action{plan.ActionApply, plan.ActionReplace, plan.ActionCreate} {
			op.Action = action
			err := b.run(op).Err
			var exists *execute.ExistsError
			if err == nil || action == plan.ActionCreate && errors.As(err, &exists) {
				continue
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				if strings.Contains(fmt.Sprintf("%v %+v %#v", e, e, e), "HUSH") {
					t.Errorf("%s of %s: the error tells: %v", action, spec, e)
				}
			}
			var status apierrs.APIStatus
			if !errors.As(err, &status) {
				t.Errorf("%s of %s: the error does not wrap the answer: %v", action, spec, err)
			} else if got := fmt.Sprintf("%+v", status.Status()); strings.Contains(got, "HUSH") {
				t.Errorf("%s of %s: the answer tells: %s", action, spec, got)
			}
		}
	}
	err := b.run(secret(`stringData: {a: HUSH}, type: HUSH`)).Err
	b.wantText(err, "unable to apply Secret NS/x: Invalid: type (FieldValueInvalid); the details are withheld, as they may quote what is secret")
	if !apierrs.IsInvalid(err) {
		t.Errorf("the error is not known as one: %v", err)
	}
}

// What an error about a Secret may be is a matter of what is known not to quote it.
func TestErrorsOfSecretsAreWithheld(t *testing.T) {
	var failure error
	b := newBench(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return failure },
	})
	op := operation(plan.ActionCreate, b.desire(`{apiVersion: v1, kind: Secret, metadata: {name: x}}`, "d1"))
	const withheld = "the details are withheld, as they may quote what is secret"
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("HUSH"), withheld},
		{runtime.NewMissingKindErr("HUSH"), withheld},
		{apierrs.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("HUSH")), "Forbidden; " + withheld},
		{&apierrs.StatusError{}, "status 0; " + withheld},
		{context.DeadlineExceeded, "context deadline exceeded"},
		{&url.Error{Op: "Post", URL: "https://api", Err: errors.New("refused")}, "there was no answer from the API server: refused"},
	} {
		failure = test.err
		b.wantText(b.run(op).Err, "unable to create Secret NS/x: "+test.want)
	}
}

// An error of the connection reads the same each time.
func TestConnectionErrors(t *testing.T) {
	var port int
	b := newBench(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			port++
			reset := &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: port}, Err: os.NewSyscallError("read", syscall.ECONNRESET)}
			return fmt.Errorf("unexpected error: %w", &url.Error{Op: "Post", URL: "https://api", Err: reset})
		},
	})
	op := operation(plan.ActionCreate, b.desire(configMap, "d1"))
	for range 2 {
		err := b.run(op).Err
		b.wantText(err, "unable to create ConfigMap NS/x: there was no answer from the API server: read: connection reset by peer")
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Error("the cause is lost")
		}
	}
}

// G-20: a namespace that is there is no error, and one that is being deleted is waited for.
func TestEnsureNamespaces(t *testing.T) {
	b := newBench(t)
	fresh, going := "new-"+b.namespace, "going-"+b.namespace
	gone := b.put(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + going + `}}`)
	if err := b.Delete(t.Context(), named(gone)); err != nil {
		t.Fatal(err)
	}
	b.warm(operation(plan.ActionCreate, gone))
	failed := b.executor.EnsureNamespaces(t.Context(), []string{fresh, going, "default", "NOT_ONE", fresh})
	if got := b.requests.Total(); got != 4 {
		t.Errorf("made %d requests:\n%s", got, b.requests)
	}
	var wait *execute.WaitError
	if len(failed) != 2 || failed["NOT_ONE"] == nil || !errors.As(failed[going], &wait) || wait.Namespace != going {
		t.Errorf("got the errors %v", failed)
	}
	b.wantText(failed[going], "unable to create Namespace going-NS: the namespace going-NS is being deleted")
	live := b.live(b.object(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + fresh + `}}`))
	if len(live.GetAnnotations()) != 0 || live.GetLabels()[ownerLabel] != "" {
		t.Errorf("the namespace is not bare: %v", live.Object["metadata"])
	}
	if failed := b.executor.EnsureNamespaces(t.Context(), nil); len(failed) != 0 {
		t.Errorf("got the errors %v", failed)
	}
}

// G-20: who may not create namespaces can use those that are there.
func TestEnsureNamespacesWithoutPermission(t *testing.T) {
	b := newBench(t, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			return apierrs.NewForbidden(schema.GroupResource{Resource: "namespaces"}, o.GetName(), errors.New("because"))
		},
	})
	going := "going-" + b.namespace
	gone := b.put(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + going + `}}`)
	if err := b.Delete(t.Context(), named(gone)); err != nil {
		t.Fatal(err)
	}
	failed := b.executor.EnsureNamespaces(t.Context(), []string{"nowhere", "default", going})
	var wait *execute.WaitError
	if len(failed) != 2 || !apierrs.IsForbidden(failed["nowhere"]) || errors.As(failed["nowhere"], &wait) || !errors.As(failed[going], &wait) {
		t.Errorf("got the errors %v", failed)
	}
}

package execute_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
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

// An error about a Secret contains nothing of its data, not even in the errors that it wraps.
func TestErrorsContainNoSecret(t *testing.T) {
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
	for _, spec := range []string{`data: {a: {b: HUSH}}`, `stringData: {a: HUSH}, type: HUSH`, `immutable: HUSH`,
		`data: {a: "!HUSH"}`} {
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
					t.Errorf("%s of %s: the error contains the secret, want it without: %v", action, spec, e)
				}
			}
			var status apierrs.APIStatus
			if !errors.As(err, &status) {
				t.Errorf("%s of %s: the error wraps no answer of the API server, want one: %v", action, spec, err)
			} else if got := fmt.Sprintf("%+v", status.Status()); strings.Contains(got, "HUSH") {
				t.Errorf("%s of %s: the answer contains the secret, want it without: %s", action, spec, got)
			}
		}
	}
	err := b.run(secret(`stringData: {a: HUSH}, type: HUSH`)).Err
	b.wantText(err,
		"unable to apply Secret NS/x: Invalid: type (FieldValueInvalid); "+
			"the details are withheld, as they may quote what is secret "+
			"(update-policy: recreate deletes the object and creates it anew)")
	if !apierrs.IsInvalid(err) {
		t.Errorf("the error is %v, want an invalid one", err)
	}
}

// An error about a Secret is withheld unless it is known not to quote the Secret.
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
		{apierrs.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("HUSH")), "Forbidden; " +
			withheld},
		{apierrs.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New(
			`User "system:serviceaccount:n:a" cannot create resource "secrets" in API group "" in the namespace "n": HUSH`)),
			`forbidden: User "system:serviceaccount:n:a" cannot create resource "secrets" in API group "" ` +
				`in the namespace "n"`},
		{apierrs.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New(
			`User "a" cannot create resource "HUSH HUSH" in API group "" in the namespace "n"`)), "Forbidden; " + withheld},
		{&apierrs.StatusError{}, "status 0; " + withheld},
		{apierrs.NewInternalError(errors.New(`failed calling webhook "guard.example.com": HUSH`)),
			`Internal error occurred: failed calling webhook "guard.example.com"; ` + withheld},
		{apierrs.NewBadRequest(`admission webhook "guard.example.com" denied the request: HUSH`),
			`admission webhook "guard.example.com" denied the request; ` + withheld},
		{apierrs.NewBadRequest(`admission webhook "HUSH HUSH" denied the request`), "BadRequest; " + withheld},
		{apierrs.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New(
			`ValidatingAdmissionPolicy 'p' with binding 'b' denied request: HUSH`)),
			`forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request; ` + withheld},
		{context.DeadlineExceeded, "context deadline exceeded"},
		{&url.Error{Op: "Post", URL: "https://api", Err: errors.New("refused")},
			"there was no answer from the API server: refused"},
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
			reset := &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: port},
				Err: os.NewSyscallError("read", syscall.ECONNRESET)}
			return fmt.Errorf("unexpected error: %w", &url.Error{Op: "Post", URL: "https://api", Err: reset})
		},
	})
	op := operation(plan.ActionCreate, b.desire(configMap, "d1"))
	for range 2 {
		err := b.run(op).Err
		b.wantText(err,
			"unable to create ConfigMap NS/x: there was no answer from the API server: read: connection reset by peer")
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the error is %v, want it to wrap %v", err, syscall.ECONNRESET)
		}
	}
}

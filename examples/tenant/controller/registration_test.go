package controller_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// brokenDirectory takes nothing and gives nothing up, for that reason.
type brokenDirectory struct{ reason error }

var errBroken = errors.New("broken")

func (d brokenDirectory) Register(context.Context, directory.Entry) error { return d.reason }

func (d brokenDirectory) Unregister(context.Context, string, string) error { return d.reason }

func (d brokenDirectory) Members(context.Context, string, string) ([]directory.Member, error) {
	return nil, d.reason
}

func (d brokenDirectory) Join(context.Context, string, string, directory.Member) error {
	return d.reason
}

func (d brokenDirectory) Leave(context.Context, string, string, directory.Member) error {
	return d.reason
}

func TestRegistration(t *testing.T) {
	entry := directory.Entry{Tenant: "acme", UID: "acme-uid", DisplayName: "acme", Owner: "ann@example.com"}
	another := directory.Entry{Tenant: "acme", UID: "another"}
	settled := tenant.With(isTrue(v1alpha1.NamespaceReady, "Ready"))
	listed := isTrue(v1alpha1.Registered, "Succeeded")

	for name, tc := range map[string]struct {
		rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]
		// entries are in the directory before, and afterwards.
		before, after []directory.Entry
		broken        bool
	}{
		"it has no namespace yet": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{
				Resource: tenant.Object(),
				ExpectResource: tenant.With(isFalse(v1alpha1.Registered, "NoNamespace",
					"a tenant is listed when it has its namespace")).Object(),
			},
		},
		"it has a namespace": {
			after: []directory.Entry{entry},
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{
				Resource:       settled.Object(),
				ExpectResource: settled.With(listed).Object(),
			},
		},
		"it is listed and has a new owner": {
			before: []directory.Entry{{Tenant: "acme", UID: "acme-uid", DisplayName: "acme", Owner: "bob@example.com"}},
			after:  []directory.Entry{entry},
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{
				Resource:       settled.Object(),
				ExpectResource: settled.With(listed).Object(),
			},
		},
		"another is listed under its name": {
			before: []directory.Entry{another},
			after:  []directory.Entry{another},
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{
				Resource: settled.Object(),
				ExpectResource: settled.With(isFalse(v1alpha1.Registered, "NotOurs",
					"the name belongs to another tenant in the directory")).Object(),
				ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
			},
		},
		"the directory is broken": {
			broken: true,
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{
				Resource: settled.Object(),
				ExpectResource: settled.With(isFalse(v1alpha1.Registered, "Failed",
					"unable to register tenant acme: broken")).Object(),
				ShouldErr: true,
				Verify:    isBroken,
			},
		},
		"it is being deleted": {
			before: []directory.Entry{entry},
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{
				Resource: settled.With(terminating).Object(),
			},
		},
		"it is being deleted and another is listed": {
			before: []directory.Entry{another},
			after:  []directory.Entry{another},
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{
				Resource: settled.With(terminating).Object(),
			},
		},
		"it is being deleted and the directory is broken": {
			broken: true,
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{
				Resource:  settled.With(terminating).Object(),
				ShouldErr: true,
				Verify:    isBroken,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			memory := directoryOf(t, tc.before)
			var dir directory.Directory = memory
			if tc.broken {
				dir = brokenDirectory{errBroken}
			}
			run(t, tests{"": tc.SubReconcilerTestCase}, func() node {
				return espalier.Steps(controller.Registration(dir), controller.Unregistration(dir))
			})
			var after []directory.Entry
			if got, _, ok := memory.Lookup("acme"); ok {
				after = append(after, got)
			}
			if diff := cmp.Diff(tc.after, after); diff != "" {
				t.Errorf("the directory differs (-want +got)\n%s", diff)
			}
		})
	}
}

func isBroken(t *testing.T, _ reconcilers.Result, err error) {
	t.Helper()
	if !errors.Is(err, errBroken) {
		t.Errorf("the error is %v", err)
	}
}

func directoryOf(t *testing.T, entries []directory.Entry) *directory.Memory {
	t.Helper()
	var memory directory.Memory
	for _, entry := range entries {
		if err := memory.Register(t.Context(), entry); err != nil {
			t.Fatal(err)
		}
	}
	return &memory
}

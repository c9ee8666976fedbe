package controller_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

var (
	ann       = directory.Member{Kind: "User", Name: "ann"}
	bob       = directory.Member{Kind: "User", Name: "bob"}
	teamGroup = directory.Member{Kind: "Group", Name: "team"}
)

// watchedDirectory notes what it is told about members. It fails when it is told about one of them.
type watchedDirectory struct {
	*directory.Memory
	told  []string
	fails directory.Member
}

func (d *watchedDirectory) Join(ctx context.Context, tenant, uid string, member directory.Member) error {
	return d.note("join ", member, d.Memory.Join(ctx, tenant, uid, member))
}

func (d *watchedDirectory) Leave(ctx context.Context, tenant, uid string, member directory.Member) error {
	return d.note("leave ", member, d.Memory.Leave(ctx, tenant, uid, member))
}

func (d *watchedDirectory) note(what string, member directory.Member, err error) error {
	d.told = append(d.told, what+member.Kind+" "+member.Name)
	if member == d.fails {
		return errBroken
	}
	return err
}

func TestMemberships(t *testing.T) {
	entry := directory.Entry{Tenant: "acme", UID: "acme-uid"}

	for name, tc := range map[string]struct {
		rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]
		entry  *directory.Entry
		before []directory.Member
		fails  directory.Member
		told   []string
	}{
		"they join": {
			entry:                 &entry,
			told:                  []string{"join User ann", "join Group team"},
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{Resource: team("guest").Object()},
		},
		"they are known": {
			entry:                 &entry,
			before:                []directory.Member{ann, teamGroup},
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{Resource: team("").Object()},
		},
		"one came and one left": {
			entry:                 &entry,
			before:                []directory.Member{ann, bob},
			told:                  []string{"join Group team", "leave User bob"},
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{Resource: team("").Object()},
		},
		"one cannot join": {
			entry: &entry,
			fails: ann,
			told:  []string{"join User ann"},
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{
				Resource: team("").Object(), ShouldErr: true,
				Verify: isError("unable to have member ann join tenant acme, which is change 1 of 2: broken", errBroken),
			},
		},
		"one cannot leave": {
			entry:  &entry,
			before: []directory.Member{bob},
			fails:  bob,
			told:   []string{"join User ann", "join Group team", "leave User bob"},
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{
				Resource: team("").Object(), ShouldErr: true,
				Verify: isError("unable to have member bob leave tenant acme, which is change 3 of 3: broken", errBroken),
			},
		},
		"the tenant is not listed": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{
				Resource: team("").Object(), ShouldErr: true,
				Verify: isError("unable to ask for the members of tenant acme: the directory does not list the tenant", directory.ErrNotListed),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := &watchedDirectory{Memory: directoryOf(t, nil), fails: tc.fails}
			if tc.entry != nil {
				dir.Memory = directoryOf(t, []directory.Entry{*tc.entry})
			}
			for _, member := range tc.before {
				if err := dir.Memory.Join(t.Context(), "acme", "acme-uid", member); err != nil {
					t.Fatal(err)
				}
			}
			run(t, tests{"": tc.SubReconcilerTestCase}, func() node { return controller.Memberships(dir) })
			if diff := cmp.Diff(tc.told, dir.told); diff != "" {
				t.Errorf("what the directory is told differs (-want +got)\n%s", diff)
			}
		})
	}
}

func isError(text string, cause error) rtesting.VerifyFunc {
	return func(t *testing.T, _ reconcilers.Result, err error) {
		t.Helper()
		if !errors.Is(err, cause) || err.Error() != text {
			t.Errorf("the error is %q, not %q", err, text)
		}
	}
}

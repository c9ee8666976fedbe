package directory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/examples/tenant/directory"
)

var (
	acme = directory.Entry{Tenant: "acme", UID: "1", DisplayName: "Acme", Owner: "ann@example.com"}
	ann  = directory.Member{Kind: "User", Name: "ann"}
	bob  = directory.Member{Kind: "User", Name: "bob"}
	team = directory.Member{Kind: "Group", Name: "team"}
)

func TestMemoryListsEntries(t *testing.T) {
	var memory directory.Memory
	acme := acme

	if err := memory.Unregister(t.Context(), "acme", "1"); err != nil {
		t.Errorf("unregister from an empty directory: %v", err)
	}
	for range 2 {
		if err := memory.Register(t.Context(), acme); err != nil {
			t.Fatalf("register: %v", err)
		}
	}
	acme.Owner = "bob@example.com"
	if err := memory.Register(t.Context(), acme); err != nil {
		t.Fatalf("change the owner: %v", err)
	}
	if err := memory.Register(t.Context(), directory.Entry{Tenant: "acme", UID: "2"}); !errors.Is(err, directory.ErrTaken) {
		t.Errorf("register a name that is taken: %v", err)
	}
	if err := memory.Unregister(t.Context(), "acme", "2"); err != nil {
		t.Errorf("unregister another: %v", err)
	}
	got, _, ok := memory.Lookup("acme")
	if diff := cmp.Diff(acme, got); diff != "" || !ok {
		t.Errorf("entry (-want +got, ok is %t)\n%s", ok, diff)
	}
	if err := memory.Unregister(t.Context(), "acme", "1"); err != nil {
		t.Errorf("unregister: %v", err)
	}
	if _, _, ok := memory.Lookup("acme"); ok {
		t.Error("the entry is still there")
	}
}

func TestMemoryKnowsMembers(t *testing.T) {
	var memory directory.Memory
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(memory.Register(ctx, acme))
	for _, member := range []directory.Member{bob, ann, team, ann} {
		must(memory.Join(ctx, "acme", "1", member))
	}
	for range 2 {
		must(memory.Leave(ctx, "acme", "1", bob))
	}
	must(memory.Register(ctx, acme))

	members, err := memory.Members(ctx, "acme", "1")
	must(err)
	_, seen, _ := memory.Lookup("acme")
	for what, got := range map[string][]directory.Member{"Members": members, "Lookup": seen} {
		if diff := cmp.Diff([]directory.Member{team, ann}, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}

	must(memory.Unregister(ctx, "acme", "1"))
	must(memory.Register(ctx, acme))
	if members, err := memory.Members(ctx, "acme", "1"); err != nil || len(members) > 0 {
		t.Errorf("members of an entry before this one: %v, %v", members, err)
	}
}

func TestMemoryFails(t *testing.T) {
	var memory directory.Memory
	if err := memory.Register(t.Context(), acme); err != nil {
		t.Fatal(err)
	}
	calls := map[string]func(ctx context.Context, uid string) error{
		"members": func(ctx context.Context, uid string) error {
			_, err := memory.Members(ctx, "acme", uid)
			return err
		},
		"join":  func(ctx context.Context, uid string) error { return memory.Join(ctx, "acme", uid, ann) },
		"leave": func(ctx context.Context, uid string) error { return memory.Leave(ctx, "acme", uid, ann) },
	}
	for name, call := range calls {
		if err := call(t.Context(), "2"); !errors.Is(err, directory.ErrNotListed) {
			t.Errorf("%s of another tenant of the name: %v", name, err)
		}
	}

	calls["register"] = func(ctx context.Context, _ string) error { return memory.Register(ctx, acme) }
	calls["unregister"] = func(ctx context.Context, uid string) error { return memory.Unregister(ctx, "acme", uid) }
	for _, outage := range []bool{true, false} {
		memory.SetOutage(outage)
		for _, name := range []string{"register", "join", "leave", "members", "unregister"} {
			if err := calls[name](t.Context(), "1"); errors.Is(err, directory.ErrUnavailable) != outage {
				t.Errorf("%s, when there is an outage (%t): %v", name, outage, err)
			}
		}
		if _, _, ok := memory.Lookup("acme"); ok != outage {
			t.Errorf("there is an entry: %t, after an outage: %t", ok, !outage)
		}
	}
}

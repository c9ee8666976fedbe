package directory_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/examples/tenant/directory"
)

func TestMemory(t *testing.T) {
	var memory directory.Memory
	acme := directory.Entry{Tenant: "acme", UID: "1", DisplayName: "Acme", Owner: "ann@example.com"}

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
	got, ok := memory.Lookup("acme")
	if diff := cmp.Diff(acme, got); diff != "" || !ok {
		t.Errorf("entry (-want +got, ok is %t)\n%s", ok, diff)
	}
	if err := memory.Unregister(t.Context(), "acme", "1"); err != nil {
		t.Errorf("unregister: %v", err)
	}
	if _, ok := memory.Lookup("acme"); ok {
		t.Error("the entry is still there")
	}
}

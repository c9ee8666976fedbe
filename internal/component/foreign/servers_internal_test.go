package foreign

import (
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// How many refusals it takes until all servers were met, or most likely were.
func TestTally(t *testing.T) {
	a, b, c := server{1}, server{2}, server{3}
	for name, test := range map[string]struct {
		servers int
		met     []server
		want    int
	}{
		"one":                   {1, []server{{}}, 1},
		"two, told apart":       {2, []server{a, a, a, b}, 4},
		"three, told apart":     {3, []server{a, b, a, c}, 4},
		"two, one certificate":  {2, []server{a, a, a, a, a, a}, 6},
		"two, no certificates":  {2, []server{{}, {}, {}, {}, {}, {}}, 6},
		"not known":             {0, []server{a, b, c, a, b, c, a, b, c}, 9},
		"seven, which is a lot": {7, make([]server, 12), 12},
	} {
		t.Run(name, func(t *testing.T) {
			tally := tally{servers: test.servers}
			for i, s := range test.met {
				if done := tally.refusedBy(s); done != (i+1 == test.want) {
					t.Errorf("after %d refusals, done is %t, want %t", i+1, done, !done)
				}
			}
		})
	}
	// An instance that was not refused begins the count anew, but a server that was met stays met.
	two := tally{servers: 2}
	for range 5 {
		two.refusedBy(a)
	}
	two.inARow = 0
	if two.refusedBy(a) || !two.refusedBy(b) {
		t.Error("the count goes on or a server is forgotten, want it done with the second server's refusal")
	}
}

func TestValidLeases(t *testing.T) {
	now := time.Now()
	lease := func(age time.Duration, seconds int32) coordinationv1.Lease {
		return coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			RenewTime: new(metav1.NewMicroTime(now.Add(-age))), LeaseDurationSeconds: &seconds,
		}}
	}
	leases := []coordinationv1.Lease{lease(0, 3600), lease(time.Minute, 3600), lease(2*time.Hour, 3600), {}}
	if n := validLeases(leases); n != 2 {
		t.Errorf("%d leases are valid, want 2", n)
	}
	// The clock of this machine does not matter.
	for i := range leases[:3] {
		leases[i].Spec.RenewTime = new(metav1.NewMicroTime(leases[i].Spec.RenewTime.Add(-48 * time.Hour)))
	}
	if n := validLeases(leases); n != 2 {
		t.Errorf("%d leases are valid, want 2", n)
	}
	if n := validLeases(nil); n != 0 {
		t.Errorf("%d leases of none are valid, want 0", n)
	}
}

// The words of who refuses a write are quoted in one line, and no more of them than has room.
func TestRefusalWords(t *testing.T) {
	crds := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	refused := func(text string) error { return apierrors.NewForbidden(crds, "x", errors.New(text)) }
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"policy": {
			refused("ValidatingAdmissionPolicy 'safe' with binding 'safe' denied request: Too old.\n\tUninstall\x00 it."),
			"refused by the ValidatingAdmissionPolicy 'safe': Too old. Uninstall it.",
		},
		"webhook": {
			refused(`admission webhook "w.example.com" denied the request: not on a Friday`),
			`refused by the webhook "w.example.com": not on a Friday`,
		},
		"no rights":   {refused(`User "u" cannot patch resource`), ""},
		"no answer":   {errors.New("denied request: no"), ""},
		"no message":  {apierrors.NewConflict(crds, "x", nil), ""},
		"no refusals": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := refusalWords(test.err); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	long := refusalWords(refused("ValidatingAdmissionPolicy 'p' denied request: " + strings.Repeat("ä", 1000)))
	if len(long) > maxWords || !strings.HasSuffix(long, "…") {
		t.Errorf("the words have %d bytes, want at most %d and … at the end: %s", len(long), maxWords, long)
	}
}

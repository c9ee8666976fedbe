package simulation

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/testing/internal/transport"
)

// logOf returns a log with an entry in each second. A text is a note, or "actor verb Kind name status", with an error
// instead of the status, and a kind of fault as the last word.
func logOf(texts ...string) transport.Log {
	var log transport.Log
	for i, text := range texts {
		e := transport.Entry{At: time.Duration(i) * time.Second}
		if note, ok := strings.CutPrefix(text, "= "); ok {
			e.Note = note
		} else {
			text, fault, _ := strings.Cut(text, " ! ")
			words := strings.SplitN(text, " ", 5)
			e.Call.Actor, e.Call.Verb, e.Kind, e.Name = words[0], words[1], words[2], words[3]
			e.Resource = schema.GroupResource{Resource: words[2]}
			e.Fault.Kind = FaultKind(fault)
			if _, err := fmt.Sscan(words[4], &e.Status); err != nil {
				e.Error = words[4]
			}
		}
		log.Entries = append(log.Entries, e)
	}
	return log
}

func TestTell(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		log  []string
		want string
	}{
		"reads that found something": {
			log: []string{
				"operator watch Pod  200", "operator get Pod a 200", "operator list Pod  200", "user get Pod a 200",
				"operator get Pod b 404", "operator discover Pod  200", "operator discover Pod  503",
			},
			want: `
00:00:03.000 user get Pod a → 200
00:00:04.000 operator get Pod b → 404
00:00:06.000 operator discover Pod → 503`,
		},
		"faults of reads": {
			log: []string{"operator watch Pod  200 ! CutsWatch", "operator get Pod a 200 ! DiesAfter"},
			want: `
00:00:00.000 operator watch Pod → 200 ! the watch is cut
00:00:01.000 operator get Pod a → 200 ! the actor dies after it`,
		},
		"failures until something succeeds": {
			log: []string{
				"user create Pod a refused", "operator watch Pod  refused", "user create Pod a refused",
				"operator watch Pod  refused", "operator watch Pod  200", "user create Pod a 201",
				"user create Pod a refused",
			},
			want: `
00:00:00.000 user create Pod a → refused (2 times until 00:00:02.000)
00:00:01.000 operator watch Pod → refused (2 times until 00:00:03.000)
00:00:05.000 user create Pod a → 201
00:00:06.000 user create Pod a → refused`,
		},
		"faults are not merged with failures": {
			log: []string{"user get Pod a 500", "user get Pod a 500 ! Fails", "user get Pod a 500"},
			want: `
00:00:00.000 user get Pod a → 500
00:00:01.000 user get Pod a → 500 ! an internal error, without effect
00:00:02.000 user get Pod a → 500`,
		},
		"errors of the operator": {
			log: []string{"= operator error: no", "user get Pod a 409", "= operator error: no", "= rest", "= rest"},
			want: `
00:00:00.000 = operator error: no = (2 times until 00:00:02.000)
00:00:01.000 user get Pod a → 409
00:00:03.000 = rest = (2 times until 00:00:04.000)`,
		},
		"what the cluster does": {
			log: []string{
				"cluster update Pod a 200", "cluster update Node n 200", "cluster update Pod a 200",
				"user delete Pod a 200", "cluster update Pod a 200",
			},
			want: `
00:00:00.000 cluster update Pod a → 200 (2 times until 00:00:02.000)
00:00:01.000 cluster update Node n → 200
00:00:03.000 user delete Pod a → 200
00:00:04.000 cluster update Pod a → 200`,
		},
		"two who undo what the other does": {
			log: append(slicesRepeat(5, "operator update Pod a 200", "other update Pod a 200"), "= the end"),
			want: `
00:00:00.000 operator update Pod a → 200
00:00:01.000 other update Pod a → 200
(the last 2 lines 4 times more until 00:00:09.000)
00:00:10.000 = the end =`,
		},
		"a sequence that is there twice": {
			log: slicesRepeat(2, "operator update Pod a 200", "user update Pod a 200"),
			want: `
00:00:00.000 operator update Pod a → 200
00:00:01.000 user update Pod a → 200
00:00:02.000 operator update Pod a → 200
00:00:03.000 user update Pod a → 200`,
		},
		"leases": {
			log: []string{
				"operator get Lease x 404", "operator create Lease x 201", "operator update Lease x 200",
				"operator-2 get Lease x 200", "operator update Lease x refused", "operator-2 update Lease x 200",
				"operator-2 update Lease x 200",
			},
			want: `
00:00:00.000 operator get Lease x → 404
00:00:01.000 operator create Lease x → 201
00:00:04.000 operator update Lease x → refused
00:00:05.000 operator-2 update Lease x → 200`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.TrimSpace(tell(logOf(test.log...))); got != strings.TrimSpace(test.want) {
				t.Errorf("got:\n%s\nwant:%s", got, test.want)
			}
		})
	}
}

func slicesRepeat(times int, texts ...string) []string {
	var all []string
	for range times {
		all = append(all, texts...)
	}
	return all
}

func TestTellLong(t *testing.T) {
	t.Parallel()
	var texts []string
	for i := range 1000 {
		texts = append(texts, fmt.Sprintf("user create Pod p%d 201", i))
	}
	log := logOf(texts...)
	log.Dropped = 7
	lines := strings.Split(strings.TrimSpace(tell(log)), "\n")
	if len(lines) != 2+head+tail {
		t.Fatalf("there are %d lines", len(lines))
	}
	for i, want := range map[int]string{
		0: "(7 requests before are not kept)", 1: "00:00:00.000 user create Pod p0 → 201",
		1 + head: "(800 lines are left out)", len(lines) - 1: "00:16:39.000 user create Pod p999 → 201",
	} {
		if lines[i] != want {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
}

func TestErrorLine(t *testing.T) {
	t.Parallel()
	for want, test := range map[string]struct {
		err    error
		values []any
	}{
		"Reconciler error: App shop/one: it is\tbad, twice": {
			err: errors.New("it is\tbad,\n twice"),
			values: []any{
				"controllerKind", "App", "namespace", "shop", "name", "one", "reconcileID", "1-2", "odd",
			},
		},
		"Reconciler error: Tenant one: no": {
			err: errors.New("no"), values: []any{"controllerKind", "Tenant", "namespace", "", "name", "one"},
		},
		"Reconciler error": {},
		"Reconciler error: " + strings.Repeat("x", longestError-18) + "…": {
			err: errors.New(strings.Repeat("x", 1000)),
		},
	} {
		got := errorLine(test.err, "Reconciler error", test.values)
		if strings.ReplaceAll(want, "\t", " ") != got {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

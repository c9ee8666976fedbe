package testing_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rtesting "github.com/espalier-dev/espalier/testing"
)

// A request that fails is answered as by a service that is overloaded, and does not reach the handler. Code that does
// not look at the status would take the answer for one.
func TestHTTPFailsWithAStatus(t *testing.T) {
	t.Parallel()
	charged := bank{}
	web := rtesting.HTTP(charged)
	var answers []string
	runNodes(t, cmNodes{"a request fails": {
		Resource:  settings.Object(),
		Externals: []rtesting.External{charged.external()},
		Fault:     rtesting.Fails("POST bank.example.com/charge"),
		Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
			const charge = "https://bank.example.com/charge?of=me"
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, charge, strings.NewReader("me"))
			if err != nil {
				return err
			}
			before := len(charged)
			response, err := web.Do(request)
			if err != nil {
				return errors.Join(err, errors.ErrUnsupported)
			}
			defer func() { _ = response.Body.Close() }()
			text, err := io.ReadAll(response.Body)
			if response.StatusCode == http.StatusOK {
				return err
			}
			if len(charged) != before || response.Request != request {
				t.Errorf("want no charge, got %v for %v", charged, response.Request)
			}
			answers = append(answers, response.Status+": "+string(text))
			return errors.Join(err, errors.New(response.Status))
		}),
	}})
	want := "503 Service Unavailable: POST bank.example.com/charge fails in this replay\n"
	if !slices.Equal(answers, []string{want}) {
		t.Errorf("want %q once, got %q", want, answers)
	}
}

// The calls of somebody else are not calls of the row. With a client that is wrapped they would be.
func TestAsNeedsAClientOfTheHarness(t *testing.T) {
	t.Parallel()
	c := newExpectConfig().Config()
	c.Client = client.WithFieldOwner(c.Client, "me")
	defer func() {
		text := fmt.Sprint(recover())
		if !strings.HasPrefix(text, "As: want the config of a row, but its client is a *client.") {
			t.Errorf("got %q", text)
		}
	}()
	rtesting.As(c, "kubelet")
}

const notesVariable = "RTESTING_NOTES"

// callingRows are rows that make calls beside the cluster, and what is noted about them.
var callingRows = map[string]struct {
	row  cmCase
	note string
}{
	"forgotten": {
		cmCase{Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
			return errors.Join(
				rtesting.Call(ctx, "charge me", func() error { return nil }),
				rtesting.Call(ctx, "ask me", func() error { return nil }),
			)
		})},
		`Note: the row has no Externals, so replays do not compare what these calls do: ["ask me" "charge me"]`,
	},
	"listed": {
		cmCase{
			Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
				return rtesting.Call(ctx, "charge me", func() error { return nil })
			}),
			Externals: []rtesting.External{bank{}.external()},
		},
		"",
	},
	"none": {cmCase{Metadata: makes("one"), ExpectCreates: oneChild}, ""},
	"not replayed": {
		cmCase{
			Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
				return rtesting.Call(ctx, "charge me", func() error { return nil })
			}),
			Replays: rtesting.NoReplays("it is about the first request"),
		},
		"",
	},
}

func TestNotedCalls(t *testing.T) {
	name := os.Getenv(notesVariable)
	if name == "" {
		t.Skip("runs in a process of its own")
	}
	row := callingRows[name].row
	row.Resource = settings.Object()
	runNodes(t, cmNodes{"case": row})
}

// A double charge is found only if the row lists the state of the bank. A row that forgets it is told.
func TestForgottenExternalsAreNoted(t *testing.T) {
	t.Parallel()
	for name, tc := range callingRows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNotedCalls$", "-test.v")
			command.Env = append(os.Environ(), notesVariable+"="+name)
			output, err := printed(command)
			if err != nil {
				t.Errorf("the row fails: %v", err)
			}
			if tc.note == "" && strings.Contains(output, "Externals") || !strings.Contains(output, tc.note) {
				t.Errorf("want the note %q, got\n%s", tc.note, output)
			}
		})
	}
}

package transport_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/testing/internal/plan"
	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/transport"
)

// wrong has the clocks of two replicas wrong.
var wrong = transport.Options{Plan: plan.Plan{Clocks: []plan.Clock{
	{Actor: "fast", Ahead: 5 * time.Minute}, {Actor: "behind", Ahead: -90 * time.Second},
}}}

// TestWrongClocks has a server that keeps what is written and gives it to everybody.
func TestWrongClocks(t *testing.T) {
	const written = `{"a":"2000-01-01T00:00:00Z","b":["2000-01-01T00:00:00.000000Z","1999-12-31T23:00:00.5-01:00"],` +
		`"c":"at 2000-01-01T00:00:00Z","d":"2000-13-01T00:00:00Z","e":"{\"2000-01-01T00:00:00Z\"}"}`
	run(t, wrong, func(f *fixture) {
		var kept string
		f.Serve(server.RoundTripper(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.Method == http.MethodPut {
				if n, err := fmt.Fscan(r.Body, &kept); n != 1 {
					f.Error(err)
				}
			}
			_, _ = fmt.Fprint(w, kept)
		})))
		for _, row := range []struct{ actor, a, b0, b1 string }{
			{"fast", "2000-01-01T00:05:00Z", "2000-01-01T00:05:00.000000Z", "1999-12-31T23:05:00.5-01:00"},
			{"right", "2000-01-01T00:00:00Z", "2000-01-01T00:00:00.000000Z", "1999-12-31T23:00:00.5-01:00"},
			{"behind", "1999-12-31T23:58:30Z", "1999-12-31T23:58:30.000000Z", "1999-12-31T22:58:30.5-01:00"},
		} {
			c := f.Client(row.actor)
			compact := strings.ReplaceAll(written, "at ", "at-")
			if got := f.ask(c, http.MethodPut, one, compact).body; got != compact {
				f.Errorf("%s reads %s", row.actor, got)
			}
			want := strings.NewReplacer(
				`"2000-01-01T00:00:00Z",`, `"`+row.a+`",`, `"2000-01-01T00:00:00.000000Z"`, `"`+row.b0+`"`,
				`"1999-12-31T23:00:00.5-01:00"`, `"`+row.b1+`"`,
			).Replace(compact)
			want = strings.Replace(want, "at-"+row.a, "at-2000-01-01T00:00:00Z", 1)
			if got := f.get(f.Client("reader")).body; got != want {
				f.Errorf("%s has written\n%s, not\n%s", row.actor, got, want)
			}
		}
	})
}

// TestWatchOfAWrongClock gets each line of a watch in the moment in which it is sent.
func TestWatchOfAWrongClock(t *testing.T) {
	run(t, wrong, func(f *fixture) {
		f.Serve(server.RoundTripper(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json;stream=watch")
			for range 3 {
				now := time.Now().UTC().Format(time.RFC3339)
				_, _ = fmt.Fprintf(w, "%q", now[:9])
				time.Sleep(time.Second)
				_, _ = fmt.Fprintf(w, "%q\n", now)
			}
		})))
		lines := bufio.NewScanner(f.open(f.Client("fast")))
		n := 0
		for ; lines.Scan(); n++ {
			now := time.Now().UTC().Add(-time.Second)
			want := fmt.Sprintf("%q%q", now.Format(time.RFC3339)[:9], now.Add(-5*time.Minute).Format(time.RFC3339))
			if lines.Text() != want {
				f.Errorf("line %d is %s, not %s", n, lines.Text(), want)
			}
		}
		if err := lines.Err(); n != 3 || err != nil {
			f.Errorf("there are %d lines (%v)", n, err)
		}
	})
}

func TestWrongClockNeedsJSON(t *testing.T) {
	run(t, wrong, func(f *fixture) {
		body := inProtobuf(t, &corev1.ConfigMap{})
		if a := f.ask(f.Client("fast"), http.MethodPut, one, body); a.err == nil || f.had() != "" {
			f.Errorf("the answer is %v", a)
		}
		if a := f.ask(f.Client("right"), http.MethodPut, one, body); a.err != nil || f.had() == "" {
			f.Errorf("the answer is %v", a)
		}
		var accepted string
		f.Serve(roundTripperFunc(func(r *http.Request) (*http.Response, error) {
			accepted = r.Header.Get("Accept")
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		}))
		for accept, want := range map[string]string{
			"application/vnd.kubernetes.protobuf":                  "application/json",
			"application/vnd.kubernetes.protobuf,application/json": "application/json",
			"application/json;as=Table":                            "application/json;as=Table",
			"application/vnd.kubernetes.protobuf;as=A,text/plain":  "text/plain",
		} {
			r := f.newRequest(f.Context(), http.MethodGet, one, "")
			r.Header.Set("Accept", accept)
			if _, err := f.Client("fast").RoundTrip(r); err != nil || accepted != want {
				f.Errorf("%s becomes %s", accept, accepted)
			}
		}
	})
}

// TestConfig has clients made for each actor, who can write.
func TestConfig(t *testing.T) {
	run(t, wrong, func(f *fixture) {
		for _, actor := range []string{"fast", "right"} {
			config := f.Client(actor).Config(host)
			config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
			config.NegotiatedSerializer = clientgoscheme.Codecs
			if config.ContentType == "" {
				config.ContentType = "application/vnd.kubernetes.protobuf"
			}
			c, err := rest.RESTClientFor(config)
			if err != nil {
				f.Fatal(err)
			}
			obj := &corev1.ConfigMap{}
			obj.Name = actor
			if err := c.Post().Namespace("shop").Resource("configmaps").Body(obj).Do(f.Context()).Error(); err != nil {
				f.Error(err)
			}
		}
		f.logged(`
00:00:00.000 fast create configmaps shop/fast → 201
00:00:00.001 right create configmaps shop/right → 201
`)
	})
}

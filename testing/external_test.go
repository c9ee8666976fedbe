package testing_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	rtesting "github.com/espalier-dev/espalier/testing"
)

// A request that fails is answered as by a service that is overloaded, and does not reach the handler. Code that does
// not look at the status would take the answer for one.
func TestHTTPFailsWithAStatus(t *testing.T) {
	t.Parallel()
	charged := bank{}
	web := rtesting.HTTP(charged)
	var answers []string
	runFaithful(t, cmNodes{"a request fails": {
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

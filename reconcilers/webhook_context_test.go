package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func TestAdmissionWebhookAdapterContext(t *testing.T) {
	config := expectWidget().Config()
	call := &http.Request{URL: &url.URL{Path: "/gauges"}}
	req := gaugeRequest(admissionv1.Create)
	ran := false
	hook := gaugeTree(func(ctx context.Context, g *gauge) error {
		ran = true
		for what, same := range map[string]bool{
			"config":                 reconcilers.RetrieveConfigOrDie(ctx) == config,
			"original config":        reconcilers.RetrieveOriginalConfigOrDie(ctx) == config,
			"request":                reconcilers.RetrieveRequest(ctx) == widgetRequest,
			"admission request":      cmp.Equal(reconcilers.RetrieveAdmissionRequest(ctx), req),
			"admission response":     reconcilers.RetrieveAdmissionResponse(ctx).UID == req.UID,
			"HTTP request":           reconcilers.RetrieveHTTPRequest(ctx) == call,
			"time that is pinned":    rtime.RetrieveNow(ctx).Equal(requestTime),
			"path":                   reconcilers.RetrievePath(ctx) == "gaugeAdmissionWebhookAdapter/Node",
			"no dry run":             !reconcilers.IsDryRun(ctx),
			"empty stash":            !reconcilers.HasValue(ctx, "outside"),
			"type":                   cmp.Equal(reconcilers.RetrieveResourceType(ctx), client.Object(&gauge{})),
			"original type":          cmp.Equal(reconcilers.RetrieveOriginalResourceType(ctx), client.Object(&gauge{})),
			"defaults of the object": g.Unit == "m",
		} {
			if !same {
				t.Errorf("the %s is another, want the node to have that of the request", what)
			}
		}
		return errBoom
	})
	hook.Config = config
	webhook, err := hook.BuildWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	outside := reconcilers.WithStash(rtime.StashNow(t.Context(), requestTime))
	reconcilers.StashValue(outside, "outside", 1)
	webhook.Handle(webhook.WithContextFunc(outside, call), req)
	if !ran {
		t.Error("the tree did not run, want it to")
	}
}

func TestAdmissionWebhookAdapterPinsTheTime(t *testing.T) {
	hook := gaugeTree(func(ctx context.Context, _ *gauge) error {
		first, second := rtime.RetrieveNow(ctx), rtime.RetrieveNow(ctx)
		if !first.Equal(second) {
			return errors.New("time goes by")
		}
		return nil
	})
	actual, _ := handle(t, hook, gaugeRequest(admissionv1.Create))
	compareAnswers(t, allowed(), actual)
}

func TestAdmissionWebhookAdapterContextFunc(t *testing.T) {
	var heard strings.Builder
	logger := funcr.New(func(prefix, args string) { fmt.Fprintln(&heard, prefix, args) }, funcr.Options{})
	config := expectWidget().Config()
	hook := gaugeTree(func(context.Context, *gauge) error { return nil })
	hook.Config = config
	webhook, err := hook.BuildWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if webhook.Handler != ctrladmission.Handler(hook) {
		t.Errorf("the handler is %v, want the adapter itself", webhook.Handler)
	}
	ctx := webhook.WithContextFunc(logr.NewContext(t.Context(), logger), &http.Request{URL: &url.URL{Path: "/gauges"}})
	logr.FromContextOrDiscard(ctx).Info("hello")
	const expected = `controller-runtime.webhook.webhooks "level"=0 "msg"="hello" "webhook"="/gauges"`
	if strings.TrimSpace(heard.String()) != expected {
		t.Errorf("logged %s, expected %s", heard.String(), expected)
	}
	reconcilers.StashValue(ctx, "key", 1)
	if reconcilers.RetrieveConfigOrDie(ctx) != config || reconcilers.RetrieveOriginalConfigOrDie(ctx) != config {
		t.Error("the context does not have the config, want it there")
	}
	// What was put on the context in between is still there.
	hook.BeforeHandle = func(ctx context.Context, _ ctrladmission.Request, resp *ctrladmission.Response) context.Context {
		resp.Warnings = append(resp.Warnings, fmt.Sprint(reconcilers.RetrieveValue(ctx, "key")))
		return ctx
	}
	if resp := webhook.Handle(ctx, gaugeRequest(admissionv1.Create)); len(resp.Warnings) != 1 || resp.Warnings[0] != "1" {
		t.Errorf("the answer is %v, want the warning 1 alone", resp)
	}
	// Neither of these is a request that a server makes.
	for _, call := range []*http.Request{nil, {}} {
		webhook.Handle(webhook.WithContextFunc(t.Context(), call), gaugeRequest(admissionv1.Create))
	}
}

func TestAdmissionWebhookAdaptersShareAWebhook(t *testing.T) {
	hooks := map[string]*gaugeHook{}
	for _, name := range []string{"one", "two"} {
		config := expectWidget().Config()
		hooks[name] = gaugeTree(func(ctx context.Context, g *gauge) error {
			if reconcilers.RetrieveConfigOrDie(ctx) != config {
				return fmt.Errorf("%s has the config of another one", name)
			}
			return nil
		})
		hooks[name].Config = config
	}
	webhook, err := hooks["one"].BuildWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	webhook.Handler = ctrladmission.MultiValidatingHandler(hooks["one"], hooks["two"])
	ctx := webhook.WithContextFunc(t.Context(), &http.Request{URL: &url.URL{Path: "/"}})
	if resp := webhook.Handle(ctx, gaugeRequest(admissionv1.Create)); !resp.Allowed {
		t.Errorf("the answer is %v, want it allowed", resp.Result)
	}
}

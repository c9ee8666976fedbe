package oci

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/generator"
)

// artifact is what a component asks for.
type artifact struct {
	reference registry.Reference
	registry  *Registry
	// secret is the name of the pull secret, or empty.
	secret    string
	component client.Object
}

const (
	scheme = "oci://"
	// maxURL is the length of a URL that can be shown in an error.
	maxURL = 512
)

var errNoReference = errors.New("the URL is not of the form oci://host/repository@sha256:digest")

// artifactOf decides whether what the component asks for may be fetched. It makes no request.
func (s *Source) artifactOf(ctx context.Context) (*artifact, error) {
	component, err := generator.ComponentFromContext(ctx)
	if err != nil {
		return nil, err
	}
	asked, err := s.reference(component)
	if err != nil {
		return nil, err
	}
	reference, err := parseURL(asked.URL)
	if err != nil {
		return nil, &terminalError{err}
	}
	a := &artifact{reference: reference, secret: asked.PullSecretName, component: component}
	listed := func(r Registry) bool { return r.Host == reference.Registry }
	if i := slices.IndexFunc(s.options.Registries, listed); i >= 0 {
		a.registry = &s.options.Registries[i]
	}
	switch {
	case a.registry == nil:
		err = terminal("the operator does not allow the host %s", reference.Registry)
	case reference.Reference == "":
		err = terminal("it has neither a tag nor a digest: append @sha256:digest")
	case reference.ValidateReferenceAsDigest() != nil && len(s.keys) == 0:
		err = terminal("a tag can be moved, and the operator has no key to verify a signature: append @sha256:digest")
	case a.secret != "" && component.GetNamespace() == "":
		err = terminal("the resource is in no namespace in which the pull secret %q could be", a.secret)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a, err)
	}
	return a, nil
}

// parseURL returns the parts of a URL. An error does not have the URL, which may be anything.
func parseURL(url string) (registry.Reference, error) {
	rest, ok := strings.CutPrefix(url, scheme)
	if !ok || len(url) > maxURL {
		return registry.Reference{}, errNoReference
	}
	if host, _, _ := strings.Cut(rest, "/"); strings.Contains(host, "@") {
		return registry.Reference{}, errors.New("the URL has a user: name a pull secret instead")
	}
	reference, err := registry.ParseReference(rest)
	if err != nil {
		return registry.Reference{}, errNoReference
	}
	if strings.Contains(reference.Reference, ":") && !strings.HasPrefix(reference.Reference, "sha256:") {
		return registry.Reference{}, errors.New("the URL has another digest than sha256")
	}
	return reference, nil
}

// String is the URL without a tag that does not count.
func (a *artifact) String() string { return scheme + a.reference.String() }

// terminalError says that another attempt would fail in the same way.
type terminalError struct{ error }

func (e *terminalError) Unwrap() []error { return []error{e.error, reconcile.TerminalError(nil)} }

func terminal(format string, args ...any) error {
	return &terminalError{fmt.Errorf(format, args...)}
}

// retryAfter is when something is asked for again that may come.
var retryAfter = 30 * time.Second

// waiting returns an error with a stable text; that of the cause may name ports and times.
func waiting(cause error, format string, args ...any) error {
	return generator.NewRetriableError(&causedError{fmt.Sprintf(format, args...), cause}, &retryAfter)
}

type causedError struct {
	text  string
	cause error
}

func (e *causedError) Error() string { return e.text }
func (e *causedError) Unwrap() error { return e.cause }

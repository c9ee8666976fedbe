package generator_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"github.com/espalier-dev/espalier/generator"
)

type askedFor struct{}

// asking returns a context of a component that asks for a content.
func asking(ctx context.Context, reference string) context.Context {
	return context.WithValue(ctx, askedFor{}, reference)
}

// memorySource has a content for each reference, whose digest is the first letter. It counts.
type memorySource struct {
	size    int64
	fetched []string
	mu      sync.Mutex
	// before is called by each fetch.
	before func(ctx context.Context) error
}

func (s *memorySource) Reference(ctx context.Context) (string, error) {
	reference, _ := ctx.Value(askedFor{}).(string)
	if reference == "" {
		return "", errors.New("there is no reference")
	}
	return reference, nil
}

func (s *memorySource) Fetch(ctx context.Context) (generator.Content, error) {
	reference, err := s.Reference(ctx)
	s.mu.Lock()
	s.fetched = append(s.fetched, reference)
	s.mu.Unlock()
	if s.before != nil {
		err = errors.Join(err, s.before(ctx))
	}
	return generator.Content{Digest: reference[:1], Files: fstest.MapFS{reference[:1]: {}}, Size: s.size}, err
}

// named is a generator for a content.
type named struct {
	reporting
	deterministic bool
}

func (n named) Deterministic() bool { return n.deterministic }

func parse(files fs.FS) (generator.Generator, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil || entries[0].Name() == "x" {
		return nil, errors.Join(err, errors.New("file x: it cannot be parsed"))
	}
	return named{reporting{inputs: entries[0].Name()}, entries[0].Name() != "n"}, nil
}

// A content is fetched once for each reference, and parsed once for each digest.
func TestSourceGeneratorFetchesOnce(t *testing.T) {
	source, parsed := &memorySource{}, 0
	g := &generator.SourceGenerator{Source: source, Parse: func(files fs.FS) (generator.Generator, error) {
		parsed++
		return parse(files)
	}}
	for _, reference := range []string{"a1", "a1", "a2", "b1", "a1", "a2", "b1"} {
		ctx := asking(t.Context(), reference)
		if digest, err := g.ContentDigest(ctx); digest != reference[:1] || err != nil {
			t.Errorf("%s: the digest is %q with the error %v", reference, digest, err)
		}
		if _, err := g.Generate(ctx, "ns", "n", nil); err != nil {
			t.Error(err)
		}
		want := reference[:1] + " ns/n " + reference[:1]
		if inputs, err := g.Inputs(ctx, "ns", "n"); inputs != want || err != nil {
			t.Errorf("%s: the inputs are %q with the error %v, want %q", reference, inputs, err, want)
		}
	}
	if want := []string{"a1", "a2", "b1"}; !slices.Equal(source.fetched, want) || parsed != 2 {
		t.Errorf("%v are fetched, and %d contents are parsed, want %v and 2", source.fetched, parsed, want)
	}
	if !generator.IsDeterministic(g) || !generator.ReportsInputs(generator.NewGenerator(g)) {
		t.Error("want a deterministic generator that reports inputs")
	}
	// A generator that is not deterministic is called each time.
	ctx := asking(t.Context(), "n")
	first, _ := g.Inputs(ctx, "ns", "n")
	if second, err := g.Inputs(ctx, "ns", "n"); first == second || err != nil {
		t.Errorf("the inputs are %q and %q with the error %v, want different ones", first, second, err)
	}
}

// What was not used for the longest time is dropped when there is too much.
func TestSourceGeneratorIsBounded(t *testing.T) {
	source := &memorySource{size: 1 << 20}
	g := &generator.SourceGenerator{Source: source, Parse: parse, MaxBytes: 2<<20 + 200<<10}
	for _, reference := range []string{"a", "b", "a", "c", "a", "b"} {
		if _, err := g.ContentDigest(asking(t.Context(), reference)); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"a", "b", "c", "b"}; !slices.Equal(source.fetched, want) {
		t.Errorf("%v are fetched, want %v", source.fetched, want)
	}
	source.size = 3 << 20
	_, err := g.ContentDigest(asking(t.Context(), "d"))
	want := "content d: it needs 3211264 bytes of memory, and MaxBytes of the operator is 2301952"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// An error is that of all who wait for the fetch, and the next request fetches again. It is not, if the request that
// fetches is canceled.
func TestSourceGeneratorSharesFetches(t *testing.T) {
	failure := errors.New("the registry cannot be reached")
	for name, row := range map[string]struct {
		// begins is what the first fetch does, which others wait for.
		begins  func(cancel func()) error
		first   error
		others  error
		fetches int
	}{
		"it succeeds": {func(func()) error { return nil }, nil, nil, 1},
		"it fails":    {func(func()) error { return failure }, failure, failure, 1},
		"it is canceled": {func(cancel func()) error {
			cancel()
			return context.Canceled
		}, context.Canceled, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				waiting := make(chan struct{})
				var calls atomic.Int64
				source := &memorySource{before: func(context.Context) error {
					if calls.Add(1) > 1 {
						return nil
					}
					<-waiting
					return row.begins(cancel)
				}}
				g := &generator.SourceGenerator{Source: source, Parse: parse}
				ask := func(ctx context.Context, want error) {
					if _, err := g.ContentDigest(asking(ctx, "a")); !errors.Is(err, want) {
						t.Errorf("the error is %v, want %v", err, want)
					}
				}
				go ask(ctx, row.first)
				synctest.Wait()
				for range 4 {
					go ask(t.Context(), row.others)
				}
				synctest.Wait()
				close(waiting)
				synctest.Wait()
				if n := len(source.fetched); n != row.fetches {
					t.Errorf("there are %d fetches, want %d", n, row.fetches)
				}
				ask(t.Context(), nil)
			})
		})
	}
}

func TestSourceGeneratorFails(t *testing.T) {
	source := &memorySource{}
	for name, row := range map[string]struct {
		generator *generator.SourceGenerator
		reference string
		want      string
	}{
		"no generator":    {nil, "a", "there is no generator"},
		"no source":       {&generator.SourceGenerator{Parse: parse}, "a", "the field Source is required"},
		"no parser":       {&generator.SourceGenerator{Source: source}, "a", "the field Parse is required"},
		"a negative size": {&generator.SourceGenerator{Source: source, Parse: parse, MaxBytes: -1}, "a", "the field MaxBytes is negative"},
		"no reference":    {&generator.SourceGenerator{Source: source, Parse: parse}, "", "there is no reference"},
		"no content":      {&generator.SourceGenerator{Source: source, Parse: parse}, "x", "content x: file x: it cannot be parsed"},
		"no generator of the content": {&generator.SourceGenerator{Source: source, Parse: func(fs.FS) (generator.Generator, error) {
			return nil, nil
		}}, "a", "content a: there is no generator"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := asking(t.Context(), row.reference)
			objects, err := row.generator.Generate(ctx, "ns", "n", nil)
			_, inputsErr := row.generator.Inputs(ctx, "ns", "n")
			if err == nil || err.Error() != row.want || inputsErr == nil || inputsErr.Error() != row.want || objects != nil {
				t.Errorf("the errors are %v and %v, want %s", err, inputsErr, row.want)
			}
		})
	}
}

// A panic of a source is that of the request, and the next one fetches again.
func TestSourceGeneratorPanics(t *testing.T) {
	source := &memorySource{before: func(context.Context) error { panic("broken") }}
	g := &generator.SourceGenerator{Source: source, Parse: parse}
	func() {
		defer func() {
			if p := fmt.Sprint(recover()); !strings.Contains(p, "broken") {
				t.Errorf("the panic is %s, want that of the source", p)
			}
		}()
		_, _ = g.ContentDigest(asking(t.Context(), "a"))
	}()
	source.before = nil
	if _, err := g.ContentDigest(asking(t.Context(), "a")); err != nil {
		t.Errorf("the next request has the error %v", err)
	}
}

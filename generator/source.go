package generator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/validation"
)

// Source has the content of generators, such as charts, outside of the operator. A [SourceGenerator] uses it. It must
// be safe for concurrent use. ctx is that of a generator, see [Context]: the resource in it says what the component
// asks for.
//
// Fetch does so as the component: with the local client, and with what is in the namespace of the resource. The errors
// of both methods name the content and say what to do. They have a stable text and nothing secret. An error is a
// [RetriableError] if the content may come without a change of the resource: it does not exist yet, or nothing answers.
// It wraps [sigs.k8s.io/controller-runtime/pkg/reconcile.TerminalError] if only a change of the resource or of the
// operator helps. After any other error, there is another attempt, with back-off.
type Source interface {
	// Reference returns a text that identifies what the component asks for. It is called in each request, and reads
	// nothing but ctx. What was fetched for a reference is used for all components with the same one. If only some may
	// read the content, the reference must tell them apart.
	Reference(ctx context.Context) (string, error)
	// Fetch fetches the content. It is called once for a reference, and again after a restart of the operator, after an
	// error, and if the content was dropped from memory. It bounds the size of the content, and the time.
	Fetch(ctx context.Context) (Content, error)
}

// Content is what a [Source] returns.
type Content struct {
	// Digest identifies the files: the same files, or the archive with them, have the same digest. Required.
	Digest string
	// Files are the files. Only [SourceGenerator.Parse] reads them.
	Files fs.FS
	// Size is the number of bytes of all files.
	Size int64
}

// SourceGenerator is a [Generator] whose content is fetched from a [Source]. The resource of each component says which
// content it is. Content is kept in memory, and shared by all components, so use one SourceGenerator for all. If
// several components ask for the same reference at the same time, it is fetched once.
//
// At rest nothing is fetched. A reference that does not say exactly which content it is, such as a tag, may stand for
// another content after it was fetched again. Then the objects are generated again, and no other revision is started.
//
//	made := &generator.SourceGenerator{
//		Source: source,
//		Parse: func(files fs.FS) (generator.Generator, error) {
//			return helm.NewGenerator(files, "", helm.Options{})
//		},
//	}
//
// It must not be copied after first use.
type SourceGenerator struct {
	// Source has the content. Required.
	Source Source
	// Parse makes a generator from the root folder of the files. It is called once for each digest in memory. The
	// generator must not be a [SchemeExtender]. Required.
	Parse func(files fs.FS) (Generator, error)
	// MaxBytes is how many bytes of files are in memory. What a generator makes of them may take some times as much.
	// Content that is larger is an error. If components use more than that at the same time, it is fetched again and
	// again. Default: 256 MiB.
	MaxBytes int64

	mu sync.Mutex
	// digests has the digests of references, and parsed has the generators of digests.
	digests, parsed *lru.Cache
	bytes           int64
	fetches         singleflight.Group
	// unknown counts the answers for generators that are not deterministic.
	unknown atomic.Int64
}

var (
	_ Generator            = (*SourceGenerator)(nil)
	_ Deterministic        = (*SourceGenerator)(nil)
	_ InputReporter        = (*SourceGenerator)(nil)
	_ ContentDigester      = (*SourceGenerator)(nil)
	_ validation.Validator = (*SourceGenerator)(nil)
)

const (
	defaultSourceBytes = 256 << 20
	// maxReferences is how many references have their digests in memory.
	maxReferences = 10000
	// contentOverhead is what a content without files counts.
	contentOverhead = 64 << 10
)

// parsedContent is a generator with the content that it was made from.
type parsedContent struct {
	digest    string
	size      int64
	generator Generator
}

// Generate calls the generator of the content that the component asks for.
func (g *SourceGenerator) Generate(
	ctx context.Context, namespace, name string, parameters Unstructurable,
) ([]client.Object, error) {
	made, err := g.content(ctx)
	if err != nil {
		return nil, err
	}
	return made.generator.Generate(ctx, namespace, name, parameters)
}

// Deterministic is true. If a generator of a content is not, Inputs has another answer each time.
func (g *SourceGenerator) Deterministic() bool { return true }

// Inputs identifies the content, and what else its generator depends on.
func (g *SourceGenerator) Inputs(ctx context.Context, namespace, name string) (string, error) {
	made, err := g.content(ctx)
	if err != nil {
		return "", err
	}
	inputs := ""
	switch {
	case !IsDeterministic(made.generator):
		inputs = "unknown " + strconv.FormatInt(g.unknown.Add(1), 10)
	case ReportsInputs(made.generator):
		if inputs, err = made.generator.(InputReporter).Inputs(ctx, namespace, name); err != nil {
			return "", err
		}
	}
	return made.digest + " " + inputs, nil
}

// ContentDigest returns the digest of the content that the component asks for. So another content starts another
// revision.
func (g *SourceGenerator) ContentDigest(ctx context.Context) (string, error) {
	made, err := g.content(ctx)
	if err != nil {
		return "", err
	}
	return made.digest, nil
}

// Validate returns an error if a required field is not set, or MaxBytes is negative.
func (g *SourceGenerator) Validate(context.Context) error {
	switch {
	case g == nil:
		return errNoGenerator
	case gotype.IsNil(g.Source):
		return errors.New("the field Source is required")
	case g.Parse == nil:
		return errors.New("the field Parse is required")
	case g.MaxBytes < 0:
		return errors.New("the field MaxBytes is negative")
	}
	return nil
}

// errAbandoned says that the request that fetched has ended, which is no matter of others.
var errAbandoned = errors.New("the request has ended")

// content returns what is in memory for the component, or fetches it.
func (g *SourceGenerator) content(ctx context.Context) (*parsedContent, error) {
	if err := g.Validate(ctx); err != nil {
		return nil, err
	}
	reference, err := g.Source.Reference(ctx)
	if err != nil {
		return nil, err
	}
	if known := g.find(reference); known != nil {
		return known, nil
	}
	for {
		made, err, _ := g.fetches.Do(reference, func() (any, error) { return g.fetch(ctx, reference) })
		switch {
		case err == nil:
			return made.(*parsedContent), nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.Is(err, errAbandoned):
			return nil, err
		}
	}
}

// find returns what is in memory, or nil.
func (g *SourceGenerator) find(reference string) *parsedContent {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.digests == nil {
		g.digests = lru.New(maxReferences)
		g.parsed = lru.NewWithEvictionFunc(0, func(_ lru.Key, dropped any) { g.bytes -= dropped.(*parsedContent).size })
	}
	if digest, ok := g.digests.Get(reference); ok {
		if known, ok := g.parsed.Get(digest); ok {
			return known.(*parsedContent)
		}
	}
	return nil
}

// fetch fetches and keeps, unless another request has done so meanwhile.
func (g *SourceGenerator) fetch(ctx context.Context, reference string) (*parsedContent, error) {
	if known := g.find(reference); known != nil {
		return known, nil
	}
	made, err := g.parse(ctx)
	switch {
	case err == nil:
		g.keep(reference, made)
	case ctx.Err() != nil:
		err = errAbandoned
	}
	return made, err
}

func (g *SourceGenerator) parse(ctx context.Context) (*parsedContent, error) {
	content, err := g.Source.Fetch(ctx)
	if err != nil {
		return nil, err
	}
	if known, ok := g.parsed.Get(content.Digest); ok {
		return known.(*parsedContent), nil
	}
	size := max(content.Size, 0) + contentOverhead
	if limit := g.maxBytes(); size > limit {
		return nil, fmt.Errorf("content %s: it needs %d bytes of memory, and MaxBytes of the operator is %d",
			content.Digest, size, limit)
	}
	made, err := g.Parse(content.Files)
	if err == nil && gotype.IsNil(made) {
		err = errNoGenerator
	}
	if err != nil {
		return nil, fmt.Errorf("content %s: %w", content.Digest, err)
	}
	return &parsedContent{digest: content.Digest, size: size, generator: made}, nil
}

// keep adds content, and drops what was not used for the longest time.
func (g *SourceGenerator) keep(reference string, made *parsedContent) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.digests.Add(reference, made.digest)
	if _, ok := g.parsed.Get(made.digest); ok {
		return
	}
	g.parsed.Add(made.digest, made)
	for g.bytes += made.size; g.bytes > g.maxBytes(); {
		g.parsed.RemoveOldest()
	}
}

func (g *SourceGenerator) maxBytes() int64 { return cmp.Or(g.MaxBytes, defaultSourceBytes) }

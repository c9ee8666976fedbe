package generator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/validation"
)

var (
	_ Generator            = (*TransformableGenerator)(nil)
	_ Deterministic        = (*TransformableGenerator)(nil)
	_ InputReporter        = (*TransformableGenerator)(nil)
	_ ContentDigester      = (*TransformableGenerator)(nil)
	_ SchemeExtender       = (*TransformableGenerator)(nil)
	_ validation.Validator = (*TransformableGenerator)(nil)
)

// ParameterTransformer changes the parameters that a [Generator] gets. It must be safe for concurrent use.
type ParameterTransformer interface {
	// TransformParameters returns the parameters to use, which may be the given ones. It must not change the given
	// ones, but may change the map that their ToUnstructured returns. It is an error to return nil without an error.
	TransformParameters(namespace, name string, parameters Unstructurable) (Unstructurable, error)
}

// ParameterTransformerFunc is a function that is a [ParameterTransformer].
type ParameterTransformerFunc func(namespace, name string, parameters Unstructurable) (Unstructurable, error)

// TransformParameters calls f. A nil f is an error.
func (f ParameterTransformerFunc) TransformParameters(
	namespace, name string, parameters Unstructurable,
) (Unstructurable, error) {
	if f == nil {
		return nil, errNoTransformer
	}
	return f(namespace, name, parameters)
}

// ObjectTransformer changes the objects that a [Generator] made. It must be safe for concurrent use.
type ObjectTransformer interface {
	// TransformObjects returns the objects to use. It may change the given objects and the slice, leave objects out,
	// and add others.
	TransformObjects(namespace, name string, objects []client.Object) ([]client.Object, error)
}

// ObjectTransformerFunc is a function that is an [ObjectTransformer].
type ObjectTransformerFunc func(namespace, name string, objects []client.Object) ([]client.Object, error)

// TransformObjects calls f. A nil f is an error.
func (f ObjectTransformerFunc) TransformObjects(
	namespace, name string, objects []client.Object,
) ([]client.Object, error) {
	if f == nil {
		return nil, errNoTransformer
	}
	return f(namespace, name, objects)
}

var errNoTransformer = errors.New("there is no transformer")

// TransformableGenerator is a [Generator] that wraps another one, and transforms its parameters and objects.
// [NewGenerator] makes one.
type TransformableGenerator struct {
	generator  Generator
	parameters []ParameterTransformer
	objects    []ObjectTransformer
}

// NewGenerator wraps generator.
func NewGenerator(generator Generator) *TransformableGenerator {
	return &TransformableGenerator{generator: generator}
}

// WithParameterTransformer adds a transformer that runs before the generator, after the parameter transformers that
// were added before. It changes g and returns it. It must not be called once g is in use.
func (g *TransformableGenerator) WithParameterTransformer(transformer ParameterTransformer) *TransformableGenerator {
	g.parameters = append(g.parameters, transformer)
	return g
}

// WithObjectTransformer adds a transformer that runs after the generator and the object transformers that were added
// before. It changes g and returns it. It must not be called once g is in use.
func (g *TransformableGenerator) WithObjectTransformer(transformer ObjectTransformer) *TransformableGenerator {
	g.objects = append(g.objects, transformer)
	return g
}

// Generate transforms the parameters, calls the wrapped generator with them, and transforms its objects. The caller's
// parameters stay as they are. The error of a transformer names its index among the parameter or object transformers,
// counted from 0. The error of the generator is returned as it is.
func (g *TransformableGenerator) Generate(
	ctx context.Context, namespace, name string, parameters Unstructurable,
) ([]client.Object, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	if parameters == nil {
		parameters = UnstructurableMap{}
	}
	if m, ok := parameters.(UnstructurableMap); ok {
		// A transformer that asserts the type could change the caller's map.
		parameters = UnstructurableMap(m.ToUnstructured())
	}
	for i, transformer := range g.parameters {
		transformed, err := transformer.TransformParameters(namespace, name, parameters)
		if err == nil && transformed == nil {
			err = errNoParameters
		}
		if err != nil {
			return nil, fmt.Errorf("parameter transformer %d: %w", i, err)
		}
		parameters = transformed
	}
	objects, err := g.generator.Generate(ctx, namespace, name, parameters)
	if err != nil {
		return nil, err
	}
	for i, transformer := range g.objects {
		if objects, err = transformer.TransformObjects(namespace, name, objects); err != nil {
			return nil, fmt.Errorf("object transformer %d: %w", i, err)
		}
	}
	return objects, nil
}

// Without parameters the generator could leave out objects, which would then be deleted.
var errNoParameters = errors.New("it returned no parameters")

// Deterministic reports whether the wrapped generator and all transformers are deterministic.
func (g *TransformableGenerator) Deterministic() bool {
	deterministic := g.check() == nil
	_ = g.each(func(part any) error { // never fails
		deterministic = deterministic && IsDeterministic(part)
		return nil
	})
	return deterministic
}

// Inputs joins what the wrapped generator and the transformers report that are InputReporters. It is empty if none is.
// The error of a transformer names its index.
func (g *TransformableGenerator) Inputs(ctx context.Context, namespace, name string) (string, error) {
	if err := g.check(); err != nil {
		return "", err
	}
	var inputs []string
	err := g.each(func(part any) error {
		reporter, ok := part.(InputReporter)
		if !ok {
			return nil
		}
		input, err := reporter.Inputs(ctx, namespace, name)
		// Quoted, no two lists look the same.
		inputs = append(inputs, strconv.Quote(input))
		return err
	})
	return strings.Join(inputs, ","), err
}

// ContentDigest joins the digests of the wrapped generator and the transformers that are ContentDigesters.
func (g *TransformableGenerator) ContentDigest(ctx context.Context) (string, error) {
	if err := g.check(); err != nil {
		return "", err
	}
	var digests []string
	err := g.each(func(part any) error {
		digester, ok := part.(ContentDigester)
		if !ok {
			return nil
		}
		digest, err := digester.ContentDigest(ctx)
		if digest != "" {
			digests = append(digests, digest)
		}
		return err
	})
	return strings.Join(digests, "-"), err
}

// AddToScheme calls AddToScheme of the wrapped generator, if it is a [SchemeExtender].
func (g *TransformableGenerator) AddToScheme(scheme *runtime.Scheme) error {
	if err := g.check(); err != nil {
		return err
	}
	if extender, ok := g.generator.(SchemeExtender); ok {
		return extender.AddToScheme(scheme)
	}
	return nil
}

// Validate returns an error if the generator or a transformer is nil. If ctx asks for recursive validation, it also
// returns the errors of the generator and the transformers that are Validators.
func (g *TransformableGenerator) Validate(ctx context.Context) error {
	if err := g.check(); err != nil {
		return err
	}
	if !validation.IsRecursive(ctx) {
		return nil
	}
	return g.each(func(part any) error {
		if validator, ok := part.(validation.Validator); ok {
			return validator.Validate(ctx)
		}
		return nil
	})
}

func (g *TransformableGenerator) check() error {
	if g == nil || gotype.IsNil(g.generator) {
		return errNoGenerator
	}
	return g.each(func(part any) error {
		if gotype.IsNil(part) {
			return errNoTransformer
		}
		return nil
	})
}

// each calls f with the generator and the transformers until the first error, and adds the index of a transformer to
// its error.
func (g *TransformableGenerator) each(f func(part any) error) error {
	if err := f(g.generator); err != nil {
		return err
	}
	for i, transformer := range g.parameters {
		if err := f(transformer); err != nil {
			return fmt.Errorf("parameter transformer %d: %w", i, err)
		}
	}
	for i, transformer := range g.objects {
		if err := f(transformer); err != nil {
			return fmt.Errorf("object transformer %d: %w", i, err)
		}
	}
	return nil
}

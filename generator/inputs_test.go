package generator_test

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
)

// reporting is a generator and a transformer that reports what it depends on.
type reporting struct {
	inputs string
	err    error
}

func (r reporting) Inputs(_ context.Context, namespace, name string) (string, error) {
	return namespace + "/" + name + " " + r.inputs, r.err
}

func (r reporting) Generate(context.Context, string, string, generator.Unstructurable) ([]client.Object, error) {
	return nil, nil
}

func (r reporting) TransformParameters(_, _ string, p generator.Unstructurable) (generator.Unstructurable, error) {
	return p, nil
}

func (r reporting) TransformObjects(_, _ string, objects []client.Object) ([]client.Object, error) {
	return objects, nil
}

func TestTransformableGeneratorReportsInputs(t *testing.T) {
	silent := generator.GeneratorFunc(func(context.Context, string, string, generator.Unstructurable) ([]client.Object, error) {
		return nil, nil
	})
	failing := reporting{err: errors.New("unreachable")}
	for name, tc := range map[string]struct {
		generator generator.Generator
		reports   bool
		want, err string
	}{
		"no transformable generator":    {silent, false, "", ""},
		"one that reports":              {reporting{inputs: "a"}, true, "ns/n a", ""},
		"nothing reports":               {generator.NewGenerator(silent).WithObjectTransformer(addObject("x")), false, "", ""},
		"the generator":                 {generator.NewGenerator(reporting{inputs: "a"}), true, `"ns/n a"`, ""},
		"all in order":                  {generator.NewGenerator(reporting{inputs: "a"}).WithObjectTransformer(reporting{inputs: "b"}).WithParameterTransformer(reporting{inputs: "c"}), true, `"ns/n a","ns/n c","ns/n b"`, ""},
		"nested":                        {generator.NewGenerator(generator.NewGenerator(silent).WithObjectTransformer(reporting{inputs: "b"})), true, `"\"ns/n b\""`, ""},
		"nothing nested reports":        {generator.NewGenerator(generator.NewGenerator(silent)), false, `""`, ""},
		"the generator fails":           {generator.NewGenerator(failing), true, "", "unreachable"},
		"a transformer fails":           {generator.NewGenerator(silent).WithParameterTransformer(failing), true, "", "parameter transformer 0: unreachable"},
		"there is no generator":         {generator.NewGenerator(nil), false, "", "there is no generator"},
		"a missing transformer":         {generator.NewGenerator(reporting{}).WithObjectTransformer(nil), true, "", "object transformer 0: there is no transformer"},
		"a nil transformable generator": {(*generator.TransformableGenerator)(nil), false, "", "there is no generator"},
	} {
		t.Run(name, func(t *testing.T) {
			if reports := generator.ReportsInputs(tc.generator); reports != tc.reports {
				t.Errorf("it reports inputs: %v, want %v", reports, tc.reports)
			}
			reporter, ok := tc.generator.(generator.InputReporter)
			if !ok {
				return
			}
			got, err := reporter.Inputs(t.Context(), "ns", "n")
			if errorText(err) != tc.err || err == nil && got != tc.want {
				t.Errorf("the inputs are %s and the error %v, want %s and %q", got, err, tc.want, tc.err)
			}
		})
	}
}

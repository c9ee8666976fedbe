package component_test

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/component"
)

// reporting is a generator and a transformer that reports what it depends on.
type reporting struct {
	inputs string
	err    error
}

func (r reporting) Inputs(_ context.Context, namespace, name string) (string, error) {
	return namespace + "/" + name + " " + r.inputs, r.err
}

func (r reporting) Generate(context.Context, string, string, component.Unstructurable) ([]client.Object, error) {
	return nil, nil
}

func (r reporting) TransformParameters(_, _ string, p component.Unstructurable) (component.Unstructurable, error) {
	return p, nil
}

func (r reporting) TransformObjects(_, _ string, objects []client.Object) ([]client.Object, error) {
	return objects, nil
}

func TestTransformableGeneratorReportsInputs(t *testing.T) {
	silent := component.GeneratorFunc(func(context.Context, string, string, component.Unstructurable) ([]client.Object, error) {
		return nil, nil
	})
	failing := reporting{err: errors.New("unreachable")}
	for name, tc := range map[string]struct {
		generator component.Generator
		reports   bool
		want, err string
	}{
		"no transformable generator":    {silent, false, "", ""},
		"one that reports":              {reporting{inputs: "a"}, true, "ns/n a", ""},
		"nothing reports":               {component.NewGenerator(silent).WithObjectTransformer(addObject("x")), false, "", ""},
		"the generator":                 {component.NewGenerator(reporting{inputs: "a"}), true, `"ns/n a"`, ""},
		"all in order":                  {component.NewGenerator(reporting{inputs: "a"}).WithObjectTransformer(reporting{inputs: "b"}).WithParameterTransformer(reporting{inputs: "c"}), true, `"ns/n a","ns/n c","ns/n b"`, ""},
		"nested":                        {component.NewGenerator(component.NewGenerator(silent).WithObjectTransformer(reporting{inputs: "b"})), true, `"\"ns/n b\""`, ""},
		"nothing nested reports":        {component.NewGenerator(component.NewGenerator(silent)), false, `""`, ""},
		"the generator fails":           {component.NewGenerator(failing), true, "", "unreachable"},
		"a transformer fails":           {component.NewGenerator(silent).WithParameterTransformer(failing), true, "", "parameter transformer 0: unreachable"},
		"there is no generator":         {component.NewGenerator(nil), false, "", "there is no generator"},
		"a missing transformer":         {component.NewGenerator(reporting{}).WithObjectTransformer(nil), true, "", "object transformer 0: there is no transformer"},
		"a nil transformable generator": {(*component.TransformableGenerator)(nil), false, "", "there is no generator"},
	} {
		t.Run(name, func(t *testing.T) {
			if reports := component.ReportsInputs(tc.generator); reports != tc.reports {
				t.Errorf("it reports: %v", reports)
			}
			reporter, ok := tc.generator.(component.InputReporter)
			if !ok {
				return
			}
			got, err := reporter.Inputs(t.Context(), "ns", "n")
			if errorText(err) != tc.err || err == nil && got != tc.want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

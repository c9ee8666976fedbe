package component_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// countingGenerator counts its calls, and fails while err is set.
type countingGenerator struct {
	generator.Generator
	deterministic bool
	calls         int
	last          []client.Object
	err           error
}

func (g *countingGenerator) Generate(
	ctx context.Context, namespace, name string, parameters generator.Unstructurable,
) (objects []client.Object, err error) {
	g.calls++
	if g.err != nil {
		return nil, g.err
	}
	g.last, err = g.Generator.Generate(ctx, namespace, name, parameters)
	return g.last, err
}

func (g *countingGenerator) Deterministic() bool { return g.deterministic }

// A deterministic generator is called again only after its input has changed.
func TestDeterministicGenerator(t *testing.T) {
	annotate := func(key string) func(*resources.Assembly) {
		return func(a *resources.Assembly) { a.Annotations = map[string]string{key: "1"} }
	}
	var reference string
	for name, test := range map[string]struct {
		deterministic bool
		change        func(*resources.Assembly)
		// calls are those of two requests after the change.
		calls int
	}{
		"without the promise":          {false, func(*resources.Assembly) {}, 2},
		"nothing changes":              {true, func(*resources.Assembly) {}, 0},
		"a label changes":              {true, func(a *resources.Assembly) { a.Labels = map[string]string{"a": "b"} }, 0},
		"another annotation is set":    {true, annotate("example.com/a"), 0},
		"an annotation of ours is set": {true, annotate(componentPrefix + "/a"), 1},
		"another field changes":        {true, func(a *resources.Assembly) { a.Spec.Timeout = &metav1.Duration{Duration: time.Hour} }, 1},
		"the parameters change":        {true, func(a *resources.Assembly) { a.SetObjects() }, 1},
		"the name changes":             {true, func(a *resources.Assembly) { a.Spec.Name = "other" }, 1},
		"a reference changes":          {true, func(*resources.Assembly) { reference = "2" }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			reference = "1"
			house, _, _ := newHouse()
			made := &countingGenerator{Generator: resources.AssemblyGenerator(), deterministic: test.deterministic}
			node := assembling()
			node.Generator = made
			node.References = func(context.Context, *resources.Assembly) (map[string]string, error) {
				return map[string]string{"reference": reference}, nil
			}
			o := newOperated(t, node, house, nil)
			o.untilIdle(t)
			house = o.house(t)
			o.change(t, house, func() { test.change(house) })
			made.calls = 0
			for range 2 {
				if _, err := o.reconcile(t, 0); err != nil {
					t.Fatal(err)
				}
			}
			if made.calls != test.calls {
				t.Errorf("%d calls, want %d", made.calls, test.calls)
			}
		})
	}
}

// Nothing is kept of a request whose generator failed or returned faulty objects.
func TestDeterministicGeneratorFails(t *testing.T) {
	house, walls, roof := newHouse()
	made := &countingGenerator{Generator: resources.AssemblyGenerator(), deterministic: true}
	node := assembling()
	node.Generator = made
	o := newOperated(t, node, house, nil)
	o.untilIdle(t)
	made.err = errors.New("failed")
	for _, step := range []struct {
		name    string
		objects []client.Object
		err     error
		calls   int
		fails   bool
	}{
		{"nothing changes", []client.Object{walls, roof}, errors.New("failed"), 0, false},
		{"fails", []client.Object{walls}, errors.New("failed"), 1, true},
		{"fails again", []client.Object{walls}, errors.New("failed"), 1, true},
		{"works again", []client.Object{walls}, nil, 1, false},
		{"is faulty", []client.Object{walls, walls}, nil, 1, true},
		{"is faulty again", []client.Object{walls, walls}, nil, 1, true},
		{"as before", []client.Object{walls}, nil, 1, false},
		{"idle", []client.Object{walls}, nil, 0, false},
	} {
		house := o.house(t)
		o.change(t, house, func() { house.SetObjects(step.objects...) })
		made.calls, made.err = 0, step.err
		if _, err := o.reconcile(t, 0); (err != nil) != step.fails || made.calls != step.calls {
			t.Errorf("%s: there are %d calls and the error %v, want %d, and an error: %t", step.name, made.calls, err,
				step.calls, step.fails)
		}
	}
}

// A deterministic generator is called once for a roll-out of many requests. Its objects are not kept after that, so it is called again when
// one of them has to be written. They stay as they were generated, however often they are written.
func TestDeterministicGeneratorIsCalledToWrite(t *testing.T) {
	house, walls, roof := newHouse()
	made := &countingGenerator{deterministic: true, Generator: generator.GeneratorFunc(func(
		context.Context, string, string, generator.Unstructurable,
	) ([]client.Object, error) {
		return []client.Object{walls.DeepCopy(), roof.DeepCopy()}, nil
	})}
	node := assembling()
	node.Generator = made
	failures := 3
	o := newOperated(t, node, house, nil, func(action rtesting.Action) (bool, runtime.Object, error) {
		if create, ok := action.(rtesting.CreateAction); ok && action.GetVerb() == "create" && failures > 0 &&
			create.GetObject().(client.Object).GetName() == roof.Name {
			failures--
			return true, nil, generator.NewRetriableError(errors.New("not yet"), nil)
		}
		return false, nil, nil
	})
	o.untilIdle(t)
	want := []client.Object{walls, roof}
	if made.calls != 1 || failures > 0 || !reflect.DeepEqual(made.last, want) {
		t.Errorf("there are %d calls and %d failures for the roll-out of %v, want 1, none and %v", made.calls,
			failures, made.last, want)
	}
	for range 2 {
		made.calls = 0
		written := &corev1.ConfigMap{}
		written.Name = walls.Name
		o.change(t, written, func() { written.Data = map[string]string{"name": "ruins"} })
		o.untilIdle(t)
		if o.get(t, walls.Name, written); !reflect.DeepEqual(written.Data, walls.Data) {
			t.Errorf("the data are %v, want %v", written.Data, walls.Data)
		}
		if made.calls != 1 || !reflect.DeepEqual(made.last, want) {
			t.Errorf("there are %d calls to write an object of %v, want 1 of %v", made.calls, made.last, want)
		}
	}
}

// A generator that is not as deterministic as it says is found out when an object is written: that fails, and the next request rolls out
// what it returns now.
func TestDeterministicGeneratorThatIsNot(t *testing.T) {
	house, walls, roof := newHouse()
	color := "red"
	node := assembling()
	node.Generator = &countingGenerator{deterministic: true, Generator: generator.GeneratorFunc(func(
		context.Context, string, string, generator.Unstructurable,
	) ([]client.Object, error) {
		painted := walls.DeepCopy()
		painted.Data["color"] = color
		return []client.Object{painted, roof.DeepCopy()}, nil
	})}
	o := newOperated(t, node, house, nil)
	o.untilIdle(t)
	color = "blue"
	written := &corev1.ConfigMap{}
	written.Name = walls.Name
	o.change(t, written, func() { written.Data = map[string]string{"color": "green"} })
	if _, err := o.reconcile(t, 0); !errors.Is(err, manifest.ErrChanged) {
		t.Errorf("the error is %v, want %v", err, manifest.ErrChanged)
	}
	o.untilIdle(t)
	if o.get(t, walls.Name, written); written.Data["color"] != "blue" {
		t.Errorf("the data are %v, want the color blue", written.Data)
	}
}

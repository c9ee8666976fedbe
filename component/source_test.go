package component_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// labelSource has what the label "content" of the resource says.
type labelSource struct {
	fetches int
	err     error
}

func (s *labelSource) Reference(ctx context.Context) (string, error) {
	resource, err := generator.ComponentFromContext(ctx)
	if err != nil {
		return "", err
	}
	return resource.GetLabels()["content"], nil
}

func (s *labelSource) Fetch(ctx context.Context) (generator.Content, error) {
	s.fetches++
	reference, err := s.Reference(ctx)
	return generator.Content{Digest: "of " + reference}, errors.Join(err, s.err)
}

// A component fetches when its reference changes, and not at rest. If it cannot fetch, its objects stay.
func TestL1SourceIsNotFetchedAtRest(t *testing.T) {
	house, _, _ := newHouse()
	source, parsed := &labelSource{}, 0
	node := assembling()
	node.Generator = &generator.SourceGenerator{Source: source, Parse: func(fs.FS) (generator.Generator, error) {
		parsed++
		return &countingGenerator{Generator: resources.AssemblyGenerator(), deterministic: true}, nil
	}}
	o := newOperated(t, node, house, nil)
	o.untilIdle(t)
	o.idles(t)
	if source.fetches != 1 || parsed != 1 {
		t.Errorf("there are %d fetches and %d contents parsed, want 1 and 1", source.fetches, parsed)
	}
	for _, step := range []struct {
		content string
		err     error
		fetches int
		status  metav1.ConditionStatus
		reason  string
	}{
		{"another", nil, 1, metav1.ConditionTrue, "Ready"},
		{"missing", generator.NewRetriableError(errors.New("it does not exist"), nil), 1, metav1.ConditionUnknown, "Retrying"},
		{"refused", reconcile.TerminalError(errors.New("it is refused")), 1, metav1.ConditionFalse, "Error"},
		{"another", nil, 0, metav1.ConditionTrue, "Ready"},
	} {
		source.fetches, source.err = 0, step.err
		current := o.house(t)
		o.change(t, current, func() { current.Labels = map[string]string{"content": step.content} })
		_, err := o.reconcile(t, 0)
		if terminal := errors.Is(err, reconcile.TerminalError(nil)); terminal != (step.reason == "Error") {
			t.Errorf("%s: the error is %v, want a terminal one only if nothing else helps", step.content, err)
		}
		if source.fetches != step.fetches {
			t.Errorf("%s: there are %d fetches, want %d", step.content, source.fetches, step.fetches)
		}
		o.reasonIs(t, step.status, step.reason)
		if records := len(o.house(t).Status.Inventory); records != 2 {
			t.Errorf("%s: there are %d records, want those of both objects", step.content, records)
		}
		if step.err == nil {
			o.untilIdle(t)
			o.idles(t)
		}
	}
	if revision := o.house(t).Status.Revision; revision != 2 {
		t.Errorf("the revision is %d after one other content, want 2", revision)
	}
}

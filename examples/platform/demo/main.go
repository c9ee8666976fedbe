// Command demo shows the operator for platforms at work: on a control plane that it starts itself, or, with
// USE_EXISTING_CLUSTER=true, on the cluster of the current kubeconfig, which it leaves as it was.
package main

import (
	"context"
	"io"

	"github.com/go-logr/logr"

	"github.com/espalier-dev/espalier/examples/platform/demo/story"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

var demo = storytelling.Demo{Title: "An operator for platforms", Open: open}

func main() { demo.Main() }

func open(ctx context.Context, plane *controlplane.Environment, logger logr.Logger, out io.Writer) (storytelling.Story, error) {
	operator, err := plane.User(story.OperatorUser)
	if err != nil {
		return nil, err
	}
	world, err := story.Open(ctx, story.Options{Admin: plane.Config(), Operator: operator, Logger: logger, Out: out})
	if err != nil {
		return nil, err
	}
	return told{world}, nil
}

// told is the whole story in its world.
type told struct{ *story.World }

// Tell implements [storytelling.Story].
func (t told) Tell(ctx context.Context) error { return t.World.Tell(ctx, story.Steps()) }

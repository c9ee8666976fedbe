package plugins

import (
	"context"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/plugins/internal/answer"
	"github.com/espalier-dev/espalier/reconcilers"
)

// recordOf returns the records of a resource, and the index of the one of its dependents. It is -1 if there is none.
func (n *Node[Type]) recordOf(ctx context.Context, resource Type) (*apis.ItemsStatus, int) {
	status, name := statusfield.PartOf[apis.ItemsStatus](resource), reconcilers.ItemName(ctx, n.name)
	if status == nil {
		return nil, -1
	}
	return status, slices.IndexFunc(status.ForEach, func(r apis.ForEachStatus) bool { return r.Name == name })
}

func lastOf(record apis.ForEachStatus) answer.Last {
	return answer.Last{Source: record.Source, Generation: record.SourceGeneration}
}

// succeed has an answer take the place of the last one, by the records of the resource. It returns an error if it must
// not.
func (n *Node[Type]) succeed(
	ctx context.Context, resource Type, m *memory, plugin found, dependents []answer.Dependent, dropsAll bool,
) error {
	next := answer.Last{Source: plugin.name, Generation: resource.GetGeneration()}
	var record apis.ForEachStatus
	if status, at := n.recordOf(ctx, resource); at >= 0 {
		record = status.ForEach[at]
	}
	if m.last == nil {
		if m.last = new(lastOf(record)); record.Source == "" {
			// Nobody knows whether the resource has changed.
			m.last.Generation = next.Generation
		}
	}
	// A kind that is only read leaves nothing behind.
	existing := slices.DeleteFunc(slices.Clone(record.Keys), func(key string) bool {
		return n.objects.indexOf(answer.ByKey(key).Kind) < 0
	})
	if err := m.last.CheckNext(next, existing, dependents, dropsAll); err != nil {
		return err
	}
	*m.last = next
	return nil
}

// record records which plugin has answered last, beside the keys of the dependents.
func (n *Node[Type]) record(ctx context.Context, resource Type, last *answer.Last) {
	status, at := n.recordOf(ctx, resource)
	if at < 0 || last == nil || *last == lastOf(status.ForEach[at]) {
		return
	}
	// The slice may be shared with what the status was before.
	status.ForEach = slices.Clone(status.ForEach)
	status.ForEach[at].Source, status.ForEach[at].SourceGeneration = last.Source, last.Generation
}

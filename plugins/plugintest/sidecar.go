package plugintest

import (
	"context"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/plugins/internal/answer"
	"github.com/espalier-dev/espalier/plugins/internal/process"
	"github.com/espalier-dev/espalier/plugins/internal/protocol"
)

// RunSidecar runs each row twice on a plugin that listens on a Unix socket: one in any language, which the test has
// started as a process. It waits until the plugin serves, and fails if it does not within 30 seconds, if a host would
// refuse what it provides, or as [Rows.Run] does. A row without a type asks for the first one that the plugin provides.
func (r Rows) RunSidecar(t *testing.T, socket string) {
	t.Helper()
	connection, err := process.Attach(socket, process.Limits{Answer: maxAnswer})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Stop() })
	client := protocol.NewPluginClient(connection)
	asked := func(ctx context.Context, request *protocol.DependentsRequest) (*protocol.DependentsResponse, error) {
		return client.Dependents(ctx, request)
	}
	r.run(t, describe(t, connection, socket), asked, []again{{"when it is asked again", asked}})
}

// untilServed is the time between two looks whether a plugin serves.
const untilServed = 20 * time.Millisecond

// describe waits until a plugin serves, and returns what it provides, without functions.
func describe(t *testing.T, connection *process.Plugin, socket string) plugins.Plugin {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTime)
	defer cancel()
	for err := connection.Check(ctx); err != nil; err = connection.Check(ctx) {
		connection.ResetConnectBackoff()
		select {
		case <-ctx.Done():
			t.Fatalf("the plugin does not serve on the socket %s: %s", socket, err)
		case <-time.After(untilServed):
		}
	}
	described, err := protocol.NewPluginClient(connection).Describe(ctx, &protocol.DescribeRequest{})
	if err != nil {
		t.Fatalf("the plugin does not say what it provides: %s", err)
	}
	provided, err := answer.ProvidedIn(described)
	if err != nil {
		t.Fatalf("a host refuses what the plugin provides: %s", err)
	}
	plugin := plugins.Plugin{Category: provided.Category}
	for _, t := range provided.Types {
		plugin.Types = append(plugin.Types, plugins.Type{Name: t.Name, Versions: t.Versions})
	}
	return plugin
}

package reconcilers

import (
	"context"

	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IsDryRun reports whether the tree runs for a dry-run admission request, which must have no effect. The configs on the
// context send only dry-run requests and record no events. A node with any other effect has to call IsDryRun and omit
// that effect. Outside a webhook IsDryRun is false.
func IsDryRun(ctx context.Context) bool {
	return contextOf(ctx).dryRun()
}

func (s *treeContext) dryRun() bool {
	return s.admissionRequest != nil && s.admissionRequest.DryRun != nil && *s.admissionRequest.DryRun
}

// nodeConfig returns the config for nodes. In a dry run it has no effects.
func (s *treeContext) nodeConfig(config Config) Config {
	if s.dryRun() {
		return dryRunConfig(config)
	}
	return config
}

// Without a channel, these recorders drop all events.
var (
	dropEvents    = &record.FakeRecorder{}
	dropNewEvents = &events.FakeRecorder{}
)

// dryRunClient marks a client as one that makes only dry-run requests.
type dryRunClient struct {
	client.Client
}

// dryRunConfig returns config without effects. Its client makes only dry-run requests, and its recorders drop events.
func dryRunConfig(config Config) Config {
	if _, already := config.Client.(*dryRunClient); !already && config.Client != nil {
		config.Client = &dryRunClient{Client: client.NewDryRunClient(config.Client)}
	}
	if config.Recorder != nil {
		config.Recorder = dropEvents
	}
	if config.EventRecorder != nil {
		config.EventRecorder = dropNewEvents
	}
	return config
}

func dryRunConfigs(configs map[string]Config) map[string]Config {
	dry := make(map[string]Config, len(configs))
	for name, config := range configs {
		dry[name] = dryRunConfig(config)
	}
	return dry
}

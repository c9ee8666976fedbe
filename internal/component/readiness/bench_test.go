package readiness_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/readiness"
)

func BenchmarkOf(b *testing.B) {
	const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default, generation: 2}
spec: {replicas: 1, progressDeadlineSeconds: 600}
status:
  observedGeneration: 2
  replicas: 1
  updatedReplicas: 1
  readyReplicas: 1
  availableReplicas: AVAILABLE
  conditions:
  - {type: Available, status: "True", reason: MinimumReplicasAvailable, message: Deployment has minimum availability.}
  - {type: Progressing, status: "True", reason: NewReplicaSetAvailable, message: ReplicaSet has successfully progressed.}`
	const thing = `
apiVersion: example.com/v1
kind: Thing
metadata: {name: x, generation: 2}
status: {observedGeneration: 2, phase: Running, conditions: [{type: Ready, status: "True"}, {type: Synced, status: "True"}]}`

	for _, bc := range []struct {
		name, manifest string
		settings       generator.Settings
		want           apis.ObjectStatus
	}{
		{"ConfigMap", "apiVersion: v1\nkind: ConfigMap", generator.Settings{}, apis.ObjectCurrent},
		{"Deployment/Current", strings.ReplaceAll(deployment, "AVAILABLE", "1"), generator.Settings{}, apis.ObjectCurrent},
		{"Deployment/InProgress", strings.ReplaceAll(deployment, "AVAILABLE", "0"), generator.Settings{}, apis.ObjectInProgress},
		{"Thing", thing, generator.Settings{}, apis.ObjectCurrent},
		{"Thing/Hints", thing, generator.Settings{StatusHint: generator.StatusHint{
			HasObservedGeneration: true, HasReadyCondition: true, Conditions: []string{"Synced"},
		}}, apis.ObjectCurrent},
		{"Thing/ReadyWhen", thing, generator.Settings{
			ReadyWhen: `object.status.phase == "Running" && object.status.conditions.exists(c, c.type == "Synced")`,
		}, apis.ObjectCurrent},
	} {
		b.Run(bc.name, func(b *testing.B) {
			object := parse(b, bc.manifest)
			b.ReportAllocs()
			for b.Loop() {
				if got := readiness.Of(object, bc.settings); got.Status != bc.want {
					b.Fatal(got)
				}
			}
		})
	}
}

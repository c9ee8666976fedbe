package server

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
)

// columns are those that tables have between the name and the age of an object: names and JSON paths, as of additional
// columns of a definition. A name with a "#" has numbers. An API server has more columns, of which some have more than
// one value each.
var columns = map[schema.GroupKind][]string{
	{Kind: "Namespace"}: {"Status", ".status.phase"},
	{Kind: "Node"}: {
		"Ready", `.status.conditions[?(@.type=="Ready")].status`, "Unschedulable", ".spec.unschedulable",
	},
	{Kind: "Pod"}: {
		"Ready", `.status.conditions[?(@.type=="Ready")].status`, "Status", ".status.phase",
		"Waiting", ".status.containerStatuses[0].state.waiting.reason",
		"#Restarts", ".status.containerStatuses[0].restartCount",
	},
	{Kind: "Service"}: {
		"Type", ".spec.type", "Cluster-IP", ".spec.clusterIP", "Ports", ".spec.ports[*].port",
	},
	{Kind: "Secret"}: {"Type", ".type"},
	{Kind: "PersistentVolumeClaim"}: {
		"Status", ".status.phase", "Volume", ".spec.volumeName", "Capacity", ".status.capacity.storage",
	},
	{Kind: "Event"}: {
		"Type", ".type", "Reason", ".reason", "Object", ".involvedObject.name", "Message", ".message",
	},
	{Group: "apps", Kind: "Deployment"}: {
		"#Desired", ".spec.replicas", "#Up-To-Date", ".status.updatedReplicas",
		"#Ready", ".status.readyReplicas", "#Available", ".status.availableReplicas",
	},
	{Group: "apps", Kind: "ReplicaSet"}: {
		"#Desired", ".spec.replicas", "#Current", ".status.replicas", "#Ready", ".status.readyReplicas",
	},
	{Group: "apps", Kind: "StatefulSet"}: {"#Desired", ".spec.replicas", "#Ready", ".status.readyReplicas"},
	{Group: "apps", Kind: "DaemonSet"}: {
		"#Desired", ".status.desiredNumberScheduled", "#Ready", ".status.numberReady",
	},
	{Group: "batch", Kind: "Job"}: {
		"#Completions", ".spec.completions", "#Succeeded", ".status.succeeded", "#Failed", ".status.failed",
	},
	{Group: "batch", Kind: "CronJob"}: {
		"Schedule", ".spec.schedule", "Suspend", ".spec.suspend", "Last-Schedule", ".status.lastScheduleTime",
	},
	{Group: "networking.k8s.io", Kind: "Ingress"}: {
		"Class", ".spec.ingressClassName", "Hosts", ".spec.rules[*].host",
	},
	{Group: "coordination.k8s.io", Kind: "Lease"}: {"Holder", ".spec.holderIdentity"},
}

// tables makes tables of objects.
type tables struct{ rest.TableConvertor }

// newTables returns what makes tables of the objects of a kind.
func newTables(kind schema.GroupKind) (tables, error) {
	var all []apiextensionsv1.CustomResourceColumnDefinition
	for i := 0; i < len(columns[kind]); i += 2 {
		name, number := strings.CutPrefix(columns[kind][i], "#")
		column := apiextensionsv1.CustomResourceColumnDefinition{
			Name: name, Type: "string", JSONPath: columns[kind][i+1],
		}
		if number {
			column.Type = "integer"
		}
		all = append(all, column)
	}
	all = append(all, apiextensionsv1.CustomResourceColumnDefinition{
		Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
	})
	made, err := tableconvertor.New(all)
	if err != nil {
		return tables{}, fmt.Errorf("columns of %s: %w", kind, err)
	}
	return tables{made}, nil
}

// ConvertToTable implements [rest.TableConvertor]. A number that an object leaves out is zero.
func (t tables) ConvertToTable(
	ctx context.Context, object runtime.Object, options runtime.Object,
) (*metav1.Table, error) {
	table, err := t.TableConvertor.ConvertToTable(ctx, object, options)
	if err != nil {
		return nil, err
	}
	for _, row := range table.Rows {
		for i, column := range table.ColumnDefinitions {
			if row.Cells[i] == nil && column.Type == "integer" {
				row.Cells[i] = int64(0)
			}
		}
	}
	return table, nil
}

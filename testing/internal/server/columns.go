package server

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// column is one of a table of objects. Its value is a string, an int or an int32.
type column struct {
	name  string
	value any
}

// cell returns the value with a type that JSON has.
func (c column) cell() any {
	switch value := c.value.(type) {
	case int:
		return int64(value)
	case int32:
		return int64(value)
	}
	return c.value
}

// columnsOf returns the columns that kubectl shows between the name and the age of an object. Which they are depends on
// the type alone. An API server has more of them, for wide tables.
func columnsOf(object runtime.Object) []column {
	switch o := object.(type) {
	case *corev1.Namespace:
		return []column{{"Status", string(o.Status.Phase)}}
	case *corev1.Node:
		return []column{{"Status", nodeStatus(o)}}
	case *corev1.Pod:
		return podColumns(o)
	case *corev1.Service:
		return serviceColumns(o)
	case *corev1.ConfigMap:
		return []column{{"Data", len(o.Data) + len(o.BinaryData)}}
	case *corev1.Secret:
		return []column{{"Type", string(o.Type)}, {"Data", len(o.Data)}}
	case *corev1.PersistentVolumeClaim:
		return []column{
			{"Status", string(o.Status.Phase)}, {"Volume", o.Spec.VolumeName},
			{"Capacity", o.Status.Capacity.Storage().String()},
		}
	case *corev1.Event:
		return []column{
			{"Type", o.Type}, {"Reason", o.Reason},
			{"Object", strings.ToLower(o.InvolvedObject.Kind) + "/" + o.InvolvedObject.Name}, {"Message", o.Message},
		}
	case *networkingv1.Ingress:
		return []column{{"Class", ptr.Deref(o.Spec.IngressClassName, none)}, {"Hosts", hosts(o)}}
	case *coordinationv1.Lease:
		return []column{{"Holder", ptr.Deref(o.Spec.HolderIdentity, "")}}
	case *rbacv1.RoleBinding:
		return []column{{"Role", o.RoleRef.Kind + "/" + o.RoleRef.Name}}
	case *rbacv1.ClusterRoleBinding:
		return []column{{"Role", o.RoleRef.Kind + "/" + o.RoleRef.Name}}
	}
	return workloadColumns(object)
}

func workloadColumns(object runtime.Object) []column {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return []column{
			{"Ready", share(o.Status.ReadyReplicas, o.Spec.Replicas)}, {"Up-to-date", o.Status.UpdatedReplicas},
			{"Available", o.Status.AvailableReplicas},
		}
	case *appsv1.ReplicaSet:
		return []column{
			{"Desired", ptr.Deref(o.Spec.Replicas, 1)}, {"Current", o.Status.Replicas},
			{"Ready", o.Status.ReadyReplicas},
		}
	case *appsv1.StatefulSet:
		return []column{{"Ready", share(o.Status.ReadyReplicas, o.Spec.Replicas)}}
	case *appsv1.DaemonSet:
		return []column{
			{"Desired", o.Status.DesiredNumberScheduled}, {"Current", o.Status.CurrentNumberScheduled},
			{"Ready", o.Status.NumberReady}, {"Up-to-date", o.Status.UpdatedNumberScheduled},
			{"Available", o.Status.NumberAvailable},
		}
	case *batchv1.Job:
		return []column{{"Status", jobStatus(o)}, {"Completions", share(o.Status.Succeeded, o.Spec.Completions)}}
	case *batchv1.CronJob:
		return []column{
			{"Schedule", o.Spec.Schedule}, {"Suspend", fmt.Sprint(ptr.Deref(o.Spec.Suspend, false))},
			{"Active", len(o.Status.Active)}, {"Last Schedule", age(o.Status.LastScheduleTime)},
		}
	case *autoscalingv2.HorizontalPodAutoscaler:
		return []column{
			{"Reference", o.Spec.ScaleTargetRef.Kind + "/" + o.Spec.ScaleTargetRef.Name},
			{"MinPods", ptr.Deref(o.Spec.MinReplicas, 1)}, {"MaxPods", o.Spec.MaxReplicas},
			{"Replicas", o.Status.CurrentReplicas},
		}
	}
	return nil
}

// none stands in a table for what an object has not.
const none = "<none>"

// share says how many of the wanted ones there are.
func share(got int32, want *int32) string { return fmt.Sprintf("%d/%d", got, ptr.Deref(want, 1)) }

// age says how long ago a time was.
func age(t *metav1.Time) string {
	if t == nil {
		return none
	}
	return metatable.ConvertToHumanReadableDateType(*t)
}

func nodeStatus(node *corev1.Node) string {
	status := "NotReady"
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	if node.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func podColumns(pod *corev1.Pod) []column {
	ready, restarts, status := 0, int32(0), string(pod.Status.Phase)
	for _, c := range pod.Status.ContainerStatuses {
		restarts += c.RestartCount
		switch {
		case c.Ready:
			ready++
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			status = c.State.Waiting.Reason
		case c.State.Terminated != nil && c.State.Terminated.Reason != "":
			status = c.State.Terminated.Reason
		}
	}
	if pod.DeletionTimestamp != nil {
		status = "Terminating"
	}
	containers := int32(len(pod.Spec.Containers))
	return []column{{"Ready", share(int32(ready), &containers)}, {"Status", status}, {"Restarts", restarts}}
}

func serviceColumns(service *corev1.Service) []column {
	external, ports := none, make([]string, 0, len(service.Spec.Ports))
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		external = "<pending>"
	}
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		external = ingress.IP + ingress.Hostname
	}
	for _, port := range service.Spec.Ports {
		text := fmt.Sprint(port.Port)
		if port.NodePort != 0 {
			text += fmt.Sprint(":", port.NodePort)
		}
		ports = append(ports, text+"/"+string(port.Protocol))
	}
	return []column{
		{"Type", string(service.Spec.Type)}, {"Cluster-IP", service.Spec.ClusterIP}, {"External-IP", external},
		{"Port(s)", strings.Join(ports, ",")},
	}
}

func jobStatus(job *batchv1.Job) string {
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return string(c.Type)
		}
	}
	if ptr.Deref(job.Spec.Suspend, false) {
		return string(batchv1.JobSuspended)
	}
	return "Running"
}

func hosts(ingress *networkingv1.Ingress) string {
	var all []string
	for _, rule := range ingress.Spec.Rules {
		if rule.Host != "" {
			all = append(all, rule.Host)
		}
	}
	if len(all) == 0 {
		return "*"
	}
	return strings.Join(all, ",")
}

// tables makes tables of objects of one type, of which it has one without values.
type tables struct{ empty runtime.Object }

// ConvertToTable implements [k8s.io/apiserver/pkg/registry/rest.TableConvertor].
func (t tables) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if m, err := meta.ListAccessor(object); err == nil {
		table.ResourceVersion, table.Continue = m.GetResourceVersion(), m.GetContinue()
		table.RemainingItemCount = m.GetRemainingItemCount()
	} else if m, err := meta.CommonAccessor(object); err == nil {
		table.ResourceVersion = m.GetResourceVersion()
	}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		table.ColumnDefinitions = t.headers()
	}
	var err error
	table.Rows, err = metatable.MetaToTableRow(object, func(
		object runtime.Object, _ metav1.Object, name, age string,
	) ([]any, error) {
		cells := []any{name}
		for _, c := range columnsOf(object) {
			cells = append(cells, c.cell())
		}
		return append(cells, age), nil
	})
	return table, err
}

func (t tables) headers() []metav1.TableColumnDefinition {
	headers := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}}
	for _, c := range columnsOf(t.empty) {
		header := metav1.TableColumnDefinition{Name: c.name, Type: "integer"}
		if _, text := c.value.(string); text {
			header.Type = "string"
		}
		headers = append(headers, header)
	}
	return append(headers, metav1.TableColumnDefinition{Name: "Age", Type: "string"})
}

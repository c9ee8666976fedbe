package stuck_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type widget = *resources.Widget

var credentials = stash.New[*corev1.Secret]("stuck.example.com/credentials")

// widgets returns a root with the usual parts of an operator. The fields of a spec say which of them a Widget has.
func widgets(config reconcilers.Config, outside *sync.Map) *reconcilers.ResourceReconciler[widget] {
	call := func(_ context.Context, w widget) error {
		if f, ok := outside.Load(client.ObjectKeyFromObject(w)); ok {
			return f.(func() error)()
		}
		return nil
	}
	return espalier.For(config,
		espalier.Reads("Credentials", credentials, credentialsOf).Reports("CredentialsFound"),
		espalier.Owns("Settings", settings).Labeled().Reports("SettingsReady"),
		espalier.Owns("Data", data).Reports("DataReady"),
		espalier.Owns("Migration", migration).Reports("Migrated"),
		espalier.Owns("Server", server).Labeled().Reports(resources.WidgetChildReady),
		espalier.Owns("Route", route).Type(aRoute()).Reports("RouteReady"),
		espalier.Runs("Registration", call).Finalizes("stuck.example.com/registration", call).Reports("Registered"),
		&feature.Feature[widget]{
			Name: "Search",
			Gate: func(_ context.Context, w widget) gate.Gate { return gate.When(w.Spec.Fields["search"] != "") },
			Prerequisites: []feature.Prerequisite[widget]{
				feature.DependsOn[widget]("DataReady"),
			},
			Reconciler: espalier.Owns("Index", index).Labeled(),
		},
		&feature.Feature[widget]{
			Name:       "Frontend",
			Gate:       func(_ context.Context, w widget) gate.Gate { return gate.When(w.Spec.Fields["frontend"] != "") },
			Pods:       true,
			Reconciler: espalier.Owns("Frontend", frontend).Labeled(),
		},
	)
}

func credentialsOf(_ context.Context, w widget) types.NamespacedName {
	return types.NamespacedName{Namespace: w.Namespace, Name: w.Spec.Fields["credentials"]}
}

func partOf(w widget, part string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-" + part}
}

// settings depend on the time if the Widget asks for that.
func settings(_ context.Context, w widget) (*corev1.ConfigMap, error) {
	c := &corev1.ConfigMap{ObjectMeta: partOf(w, "settings"), Data: map[string]string{"color": w.Spec.Fields["color"]}}
	if w.Spec.Fields["rendered"] != "" {
		c.Data["rendered"] = time.Now().String()
	}
	if palette := w.Spec.Fields["palette"]; palette != "" {
		c.Data["accent"] = strings.Split(palette, ",")[1] // panics if there is one color
	}
	return c, nil
}

func data(_ context.Context, w widget) (*corev1.PersistentVolumeClaim, error) {
	size := w.Spec.Fields["data"]
	if size == "" {
		return nil, nil
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: partOf(w, "data")}
	if disk := w.Spec.Fields["disk"]; disk != "" {
		claim.Name = disk
	}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	quantity, err := resource.ParseQuantity(size)
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity}
	return claim, err
}

func migration(_ context.Context, w widget) (*batchv1.Job, error) {
	if w.Spec.Fields["migration"] == "" {
		return nil, nil
	}
	job := &batchv1.Job{ObjectMeta: partOf(w, "migration")}
	job.Spec.Template.Spec = podOf(w.Spec.Fields["migration"])
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return job, nil
}

func podOf(image string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}
}

func server(_ context.Context, w widget) (*appsv1.Deployment, error) {
	if w.Spec.Fields["image"] == "" {
		return nil, nil
	}
	labels := map[string]string{"app": w.Name}
	if tier := w.Spec.Fields["tier"]; tier != "" {
		labels["tier"] = tier
	}
	return deployment(partOf(w, "server"), labels, w.Spec.Fields["image"]), nil
}

func frontend(_ context.Context, w widget) (*appsv1.Deployment, error) {
	m := partOf(w, "frontend")
	return deployment(m, map[string]string{"app": m.Name}, w.Spec.Fields["frontend"]), nil
}

func deployment(m metav1.ObjectMeta, labels map[string]string, image string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: m}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec = podOf(image)
	return d
}

func aRoute() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("routes.example.com/v1")
	u.SetKind("Route")
	return u
}

func route(_ context.Context, w widget) (*unstructured.Unstructured, error) {
	if w.Spec.Fields["host"] == "" {
		return nil, nil
	}
	u := aRoute()
	u.SetNamespace(w.Namespace)
	u.SetName(w.Name)
	return u, unstructured.SetNestedField(u.Object, w.Spec.Fields["host"], "spec", "host")
}

func index(_ context.Context, w widget) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{ObjectMeta: partOf(w, "index"), Data: map[string]string{"of": fmt.Sprint(w.Name)}}, nil
}

package controllers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// set is a ReplicaSet in a table: how many Pods it asks for, and how many are available.
type set struct {
	name                string
	replicas, available int32
}

func (s set) replicaSet(age int, desired string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.name, UID: types.UID(s.name),
			CreationTimestamp: metav1.NewTime(start.Add(time.Duration(age) * time.Second)),
			Annotations:       map[string]string{desiredAnnotation: desired, revisionAnnotation: fmt.Sprint(age + 1)},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &s.replicas, Template: templateWith(s.name)},
		Status: appsv1.ReplicaSetStatus{
			Replicas: s.replicas, ReadyReplicas: s.available, AvailableReplicas: s.available,
		},
	}
}

func templateWith(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}}
}

// sizes tells writes of ReplicaSets in short.
func sizes(writes []write) string {
	var parts []string
	for _, w := range writes {
		s := w.object.(*appsv1.ReplicaSet)
		name := s.Spec.Template.Spec.Containers[0].Image
		parts = append(parts, fmt.Sprintf("%s %s=%d", w.verb, name, *s.Spec.Replicas))
	}
	return strings.Join(parts, ", ")
}

// TestStep takes one step of rollouts of the template "new".
func TestStep(t *testing.T) {
	tests := []struct {
		name               string
		desired            int32
		surge, unavailable string
		// scaledFrom is what the Deployment asked for before, if it is not what it asks for.
		scaledFrom string
		sets       []set
		want       string
	}{
		{"a new one", 3, "25%", "25%", "", nil, "create new=3"},
		{"an update begins", 4, "25%", "25%", "", []set{{"old", 4, 4}}, "create new=1"},
		{"without surge it begins empty", 4, "0", "1", "", []set{{"old", 4, 4}}, "create new=0"},
		{"an old Pod ends", 4, "1", "1", "", []set{{"old", 4, 4}, {"new", 1, 0}}, "update old=3"},
		{"nothing is available to spare", 4, "1", "0", "", []set{{"old", 4, 4}, {"new", 1, 0}}, ""},
		{"the new Pod is available", 4, "1", "0", "", []set{{"old", 4, 4}, {"new", 1, 1}}, "update old=3"},
		{"there is room", 4, "1", "0", "", []set{{"old", 3, 3}, {"new", 1, 1}}, "update new=2"},
		{"broken Pods go first", 4, "1", "1", "", []set{{"a", 2, 0}, {"b", 2, 2}, {"new", 1, 0}}, "update a=1"},
		{"all broken Pods go", 2, "100%", "100%", "", []set{{"a", 2, 0}, {"new", 2, 0}}, "update a=0"},
		{"the oldest go first", 4, "1", "2", "", []set{{"a", 2, 2}, {"b", 2, 2}, {"new", 1, 1}},
			"update a=0, update b=1"},
		{"the last step", 4, "1", "0", "", []set{{"old", 1, 1}, {"new", 4, 4}}, "update old=0"},
		{"it is done", 4, "1", "0", "", []set{{"old", 0, 0}, {"new", 4, 4}}, ""},
		{"one is scaled up", 6, "1", "0", "4", []set{{"old", 0, 0}, {"new", 4, 4}}, "update new=6"},
		{"one is scaled down", 1, "1", "0", "4", []set{{"new", 4, 4}}, "update new=1"},
		{"both get their share", 15, "3", "2", "10", []set{{"old", 8, 8}, {"new", 5, 0}},
			"update old=11, update new=7"},
		{"scaled to none", 0, "1", "0", "4", []set{{"old", 3, 3}, {"new", 1, 1}}, "update old=0, update new=0"},
		{"neither surge nor less", 2, "0", "0", "", []set{{"old", 2, 2}, {"new", 0, 0}}, "update old=1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			surge, unavailable := intstr.Parse(test.surge), intstr.Parse(test.unavailable)
			d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
				Replicas: &test.desired, Template: templateWith("new"), Selector: &metav1.LabelSelector{},
				Strategy: appsv1.DeploymentStrategy{
					Type: appsv1.RollingUpdateDeploymentStrategyType,
					RollingUpdate: &appsv1.RollingUpdateDeployment{
						MaxSurge: &surge, MaxUnavailable: &unavailable,
					},
				},
			}}
			known := test.scaledFrom
			if known == "" {
				known = fmt.Sprint(test.desired)
			}
			var sets []*appsv1.ReplicaSet
			for i, s := range test.sets {
				sets = append(sets, s.replicaSet(i, known))
			}
			if got := sizes(newRollout(d, sets).step()); got != test.want {
				t.Errorf("the step is %q, not %q", got, test.want)
			}
		})
	}
}

// TestSurplus says which Pods go first.
func TestSurplus(t *testing.T) {
	pod := func(name, node string, phase corev1.PodPhase, ready bool, cost string, age int) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
		p.Name, p.CreationTimestamp = name, metav1.NewTime(start.Add(-time.Duration(age)*time.Second))
		if cost != "" {
			p.Annotations = map[string]string{corev1.PodDeletionCost: cost}
		}
		if ready {
			setPodCondition(&p.Status, corev1.PodReady, corev1.ConditionTrue, "", "", start)
		}
		return p
	}
	pods := []*corev1.Pod{
		pod("old", "n", corev1.PodRunning, true, "", 9), pod("young", "n", corev1.PodRunning, true, "", 1),
		pod("dear", "n", corev1.PodRunning, true, "5", 1), pod("cheap", "n", corev1.PodRunning, true, "-5", 9),
		pod("unready", "n", corev1.PodRunning, false, "9", 9), pod("pending", "n", corev1.PodPending, false, "", 9),
		pod("homeless", "", corev1.PodPending, false, "", 9),
	}
	var got []string
	for _, p := range surplus(pods, 9) {
		got = append(got, p.Name)
	}
	if want := "homeless pending unready cheap young old dear"; strings.Join(got, " ") != want {
		t.Errorf("the order is %v, not %s", got, want)
	}
	if n := len(surplus(pods, 2)); n != 2 {
		t.Errorf("%d Pods are too many", n)
	}
}

func TestRanges(t *testing.T) {
	for want, indexes := range map[string][]int{
		"": nil, "1": {1}, "0,1": {0, 1}, "0-2": {0, 1, 2}, "0,2-4,7": {0, 2, 3, 4, 7},
	} {
		set := map[int]bool{}
		for _, i := range indexes {
			set[i] = true
		}
		if got := ranges(set, 8); got != want {
			t.Errorf("%v is %q, not %q", indexes, got, want)
		}
	}
}

package tracker_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/espalier-dev/espalier/tracker"
)

// A pod wants to hear about a ConfigMap, and about all Secrets of a team.
func Example() {
	t := tracker.New(clientgoscheme.Scheme, time.Hour)
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}

	if err := t.TrackObject(settings, web); err != nil {
		fmt.Println(err)
	}
	if err := t.TrackReference(tracker.Reference{
		Kind:      "Secret",
		Namespace: "default",
		Selector:  labels.SelectorFromSet(labels.Set{"team": "shop"}),
	}, web); err != nil {
		fmt.Println(err)
	}

	password := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "password", Labels: map[string]string{"team": "shop"},
	}}
	fmt.Println(t.GetObservers(settings))
	fmt.Println(t.GetObservers(password))
	fmt.Println(t.GetObservers(web))
	// Output:
	// [default/web] <nil>
	// [default/web] <nil>
	// [] <nil>
}

// What a watcher no longer says in a round that it completes is dropped.
func ExampleRounds() {
	t := tracker.New(clientgoscheme.Scheme, time.Hour)
	rounds := t.(tracker.Rounds)
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	configMap := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	reconcile := func(refersTo string) {
		rounds.BeginRound(web)
		err := t.TrackObject(configMap(refersTo), web)
		rounds.EndRound(web, err == nil)
	}

	reconcile("blue")
	reconcile("green")
	fmt.Println(t.GetObservers(configMap("blue")))
	fmt.Println(t.GetObservers(configMap("green")))
	// Output:
	// [] <nil>
	// [default/web] <nil>
}

// References to objects of two clusters do not mix, though one object makes both.
func ExampleInCluster() {
	home := tracker.New(clientgoscheme.Scheme, time.Hour)
	remote := tracker.InCluster(home, "remote")
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}

	if err := remote.TrackObject(settings, web); err != nil {
		fmt.Println(err)
	}
	fmt.Println(home.GetObservers(settings))
	fmt.Println(remote.GetObservers(settings))
	// Output:
	// [] <nil>
	// [default/web] <nil>
}

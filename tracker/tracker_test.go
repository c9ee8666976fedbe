package tracker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/tracker"
)

// unregistered is a type that no scheme knows.
type unregistered struct{ corev1.ConfigMap }

func (u *unregistered) DeepCopyObject() runtime.Object {
	return &unregistered{ConfigMap: *u.ConfigMap.DeepCopy()}
}

func TestGetObservers(t *testing.T) {
	w, _ := newWorld(t, 0)
	w.track(configMap("named"), pod("by-name"))
	w.trackAll(selecting(t, "app=web"), pod("by-label"))
	w.trackAll(selecting(t, "app=web,tier in (front,back)"), pod("by-labels"))
	w.trackAll(selecting(t, "app"), pod("by-key"))
	w.trackAll(selecting(t, "!app"), pod("by-absence"))
	w.trackAll(selecting(t, "size>5"), pod("by-number"))
	w.trackAll(tracker.Reference{Kind: "ConfigMap", Selector: labels.Everything()}, pod("all"))
	w.trackAll(tracker.Reference{Kind: "ConfigMap", Selector: labels.Nothing()}, pod("none"))
	w.trackAll(tracker.Reference{Kind: "Node", Selector: labels.Everything()}, pod("nodes"))
	w.track(&appsv1.Deployment{ObjectMeta: objectMeta("ns", "named")}, pod("other-group"))

	elsewhere := configMap("named", "app", "web")
	elsewhere.Namespace = "elsewhere"

	tests := map[string]struct {
		obj  client.Object
		want []string
	}{
		"by name":                       {configMap("named"), []string{"all", "by-absence", "by-name"}},
		"another name":                  {configMap("unnamed"), []string{"all", "by-absence"}},
		"by one label":                  {configMap("x", "app", "web"), []string{"all", "by-key", "by-label"}},
		"by one value of many":          {configMap("x", "app", "web", "tier", "back"), []string{"all", "by-key", "by-label", "by-labels"}},
		"one of two requirements fails": {configMap("x", "app", "web", "tier", "side"), []string{"all", "by-key", "by-label"}},
		"by key":                        {configMap("x", "app", "db"), []string{"all", "by-key"}},
		"by number":                     {configMap("x", "app", "db", "size", "6"), []string{"all", "by-key", "by-number"}},
		"by name and selector":          {configMap("named", "app", "web"), []string{"all", "by-key", "by-label", "by-name"}},
		"another namespace":             {elsewhere, []string{"all"}},
		"another kind":                  {secret("named"), nil},
		"an object without namespace":   {&corev1.Node{ObjectMeta: objectMeta("", "node")}, []string{"nodes"}},
		"another group":                 {&appsv1.Deployment{ObjectMeta: objectMeta("ns", "named")}, []string{"other-group"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in(t, w.Tracker).want(tc.obj, tc.want...)
		})
	}
}

func TestObserversAreNeverNil(t *testing.T) {
	got, err := tracker.New(clientgoscheme.Scheme, time.Hour).GetObservers(configMap("unknown"))
	if err != nil || got == nil || len(got) != 0 {
		t.Errorf("want an empty slice, got %#v, %v", got, err)
	}
}

func TestL8ObserversAreSortedAndUnique(t *testing.T) {
	w, _ := newWorld(t, 0)
	for i := range 50 {
		watcher := pod(fmt.Sprintf("%02d", 49-i))
		watcher.Namespace = fmt.Sprintf("ns-%d", i%3)
		w.track(configMap("x", "app", "web"), watcher)
		w.trackAll(selecting(t, "app=web"), watcher)
		w.trackAll(selecting(t, "app"), watcher)
	}
	got, err := w.GetObservers(configMap("x", "app", "web"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 50 {
		t.Errorf("want 50 names, got %d", len(got))
	}
	for i := 1; i < len(got); i++ {
		if got[i-1].String() >= got[i].String() {
			t.Errorf("%s comes before %s", got[i-1], got[i])
		}
	}
}

func TestTheVersionDoesNotMatter(t *testing.T) {
	w, _ := newWorld(t, 0)
	old := &unstructured.Unstructured{}
	old.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"})
	old.SetNamespace("ns")
	old.SetName("web")
	w.track(old, pod("watcher"))
	w.want(&appsv1.Deployment{ObjectMeta: objectMeta("ns", "web")}, "watcher")
}

func TestKindsOfReferences(t *testing.T) {
	w, _ := newWorld(t, 0)

	duck := &unregistered{ConfigMap: *configMap("duck")}
	if err := w.TrackObject(duck, pod("watcher")); !runtime.IsNotRegisteredError(err) {
		t.Errorf("tracking an object of unknown kind: want a not registered error, got %v", err)
	}
	if _, err := w.GetObservers(duck); !runtime.IsNotRegisteredError(err) {
		t.Errorf("observers of an object of unknown kind: want a not registered error, got %v", err)
	}
	if err := w.TrackObject(nil, pod("watcher")); err == nil {
		t.Error("tracking nothing: want an error")
	}
	if err := w.TrackObject(configMap("x"), nil); err == nil {
		t.Error("tracking for nobody: want an error")
	}
	w.wantEmpty()

	duck.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Duck"})
	w.track(duck, pod("watcher"))
	w.want(duck, "watcher")

	metadata := &metav1.PartialObjectMetadata{ObjectMeta: objectMeta("ns", "duck")}
	metadata.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Duck"})
	w.want(metadata, "watcher")
}

func TestObserversOfKind(t *testing.T) {
	w, _ := newWorld(t, 0)
	w.track(configMap("x"), pod("both"))
	w.track(configMap("x"), secret("both"))
	w.track(configMap("x"), secret("secret"))
	w.track(configMap("x"), &unregistered{ConfigMap: *configMap("kindless")})

	w.want(configMap("x"), "both", "kindless", "secret")
	for kind, want := range map[string][]string{
		"Pod":    {"both", "kindless"},
		"Secret": {"both", "kindless", "secret"},
		"Node":   {"kindless"},
	} {
		got, err := w.Tracker.(tracker.KindObservers).ObserversOfKind(configMap("x"), schema.GroupKind{Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(names(want...), got); diff != "" {
			t.Errorf("watchers of kind %s (-want, +got):\n%s", kind, diff)
		}
	}
}

func TestTheKindOfAWatcherIsTheOneItCarriesOrTheOneOfTheScheme(t *testing.T) {
	w, _ := newWorld(t, 0)
	carrying := pod("watcher")
	carrying.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	w.track(configMap("x"), carrying)
	w.track(configMap("x"), pod("watcher"))
	if got, want := w.Tracker.(tracker.Sizer).Size(), (tracker.Size{Watchers: 1, References: 1}); got != want {
		t.Errorf("want %+v, got %+v", want, got)
	}
}

func TestSizeCountsPairsOfWatcherAndReference(t *testing.T) {
	w, _ := newWorld(t, 0)
	for range 2 {
		w.track(configMap("x"), pod("a"))
		w.track(configMap("x"), pod("b"))
		w.track(configMap("y"), pod("b"))
		w.trackAll(selecting(t, "app"), pod("b"))
		w.trackAll(selecting(t, "app=web"), pod("b"))
	}
	if got, want := w.Tracker.(tracker.Sizer).Size(), (tracker.Size{Watchers: 2, References: 5}); got != want {
		t.Errorf("want %+v, got %+v", want, got)
	}
	w.track(pod("c"), pod("a"))
	want := map[schema.GroupKind]int{{Kind: "ConfigMap"}: 5, {Kind: "Pod"}: 1}
	if diff := cmp.Diff(want, w.Tracker.(tracker.Sizer).Kinds()); diff != "" {
		t.Errorf("references by kind (-want, +got):\n%s", diff)
	}
}

func TestClustersAreApart(t *testing.T) {
	home, _ := newWorld(t, 0)
	type identity struct{ name string }
	east := in(t, tracker.InCluster(home.Tracker, &identity{"east"}))
	west := in(t, tracker.InCluster(east.Tracker, "west"))

	home.track(configMap("x"), pod("home"))
	east.track(configMap("x"), pod("east"))
	west.trackAll(selecting(t, "app"), pod("west"))

	home.want(configMap("x", "app", "web"), "home")
	east.want(configMap("x", "app", "web"), "east")
	west.want(configMap("x", "app", "web"), "west")
	in(t, tracker.InCluster(west.Tracker, nil)).want(configMap("x"), "home")
}

func TestAClusterMustBeComparable(t *testing.T) {
	defer func() {
		want := "tracker.InCluster: a []string cannot identify a cluster, it is not comparable"
		if got := fmt.Sprint(recover()); got != want {
			t.Errorf("want panic %q, got %q", want, got)
		}
	}()
	tracker.InCluster(tracker.New(clientgoscheme.Scheme, 0), []string{"east"})
}

// foreign is a Tracker of somebody else.
type foreign struct{ tracker.Tracker }

func TestAForeignTrackerHasNoViews(t *testing.T) {
	f := &foreign{}
	if got := tracker.InCluster(f, "east"); got != f {
		t.Errorf("InCluster: want the tracker itself, got %v", got)
	}
	if got := tracker.ForController(f, "controller"); got != f {
		t.Errorf("ForController: want the tracker itself, got %v", got)
	}
}

func TestReferenceIsValidated(t *testing.T) {
	name := func(name string) tracker.Reference {
		return tracker.Reference{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: name}
	}
	tests := map[string]struct {
		ref  tracker.Reference
		want string
	}{
		"core group":       {ref: tracker.Reference{Kind: "ConfigMap", Namespace: "ns", Name: "x"}},
		"RBAC name":        {ref: name("system:node")},
		"upper-case name":  {ref: name("Admin@Example.com")},
		"everything":       {ref: tracker.Reference{Kind: "ConfigMap", Selector: labels.Everything()}},
		"name with slash":  {ref: name("a/b"), want: "invalid Reference:\nName: may not contain '/'"},
		"name with two":    {ref: name("a/%"), want: "invalid Reference:\nName: may not contain '/', may not contain '%'"},
		"parent directory": {ref: name(".."), want: "invalid Reference:\nName: may not be '..'"},
		"neither": {
			ref:  tracker.Reference{Kind: "ConfigMap"},
			want: "invalid Reference:\nmust provide either Name or Selector",
		},
		"both": {
			ref:  tracker.Reference{Kind: "ConfigMap", Name: "x", Selector: labels.Everything()},
			want: "invalid Reference:\ncannot provide both Name and Selector",
		},
		"all wrong": {
			ref: tracker.Reference{APIGroup: "-", Kind: "-", Namespace: "."},
			want: `invalid Reference:
APIGroup: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
Kind: a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')
Namespace: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
must provide either Name or Selector`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, _ := newWorld(t, 0)
			got := ""
			if err := w.TrackReference(tc.ref, pod("watcher")); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("error (-want, +got):\n%s", diff)
			}
			if tc.want != "" {
				w.wantEmpty()
			}
		})
	}
}

func TestRBACNamesAreTracked(t *testing.T) {
	w, _ := newWorld(t, 0)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:node"}}
	w.track(role, pod("watcher"))
	w.want(role, "watcher")
}

func TestReferencePrintsItsFieldsInOrder(t *testing.T) {
	selector := labels.SelectorFromSet(labels.Set{"app": "web"})
	ref := tracker.Reference{APIGroup: "apps", Kind: "Deployment", Namespace: "ns", Name: "x", Selector: selector}
	if got, want := fmt.Sprintf("%v", ref), "{apps Deployment ns x app=web}"; got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

func TestNewKeyDropsTheVersion(t *testing.T) {
	name := types.NamespacedName{Namespace: "ns", Name: "x"}
	got := tracker.NewKey(appsv1.SchemeGroupVersion.WithKind("Deployment"), name)
	want := tracker.Key{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, NamespacedName: name}
	if got != want {
		t.Errorf("want %v, got %v", want, got)
	}
}

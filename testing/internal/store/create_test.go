package store_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

func TestCreateGivesIdentity(t *testing.T) {
	t.Parallel()
	for _, obj := range []client.Object{configMap("one"), app("one"), widget("one")} {
		s := newStore(t, widgets())
		c := s.Client(store.ClientOptions{})
		before := s.Revision()
		obj.SetUID("mine")
		obj.SetDeletionTimestamp(&metav1.Time{Time: now})
		must(t, c.Create(t.Context(), obj))
		if uid := obj.GetUID(); uid == "" || uid == "mine" {
			t.Errorf("%T has the UID %q, want one of the store", obj, uid)
		}
		if version := obj.GetResourceVersion(); before != 999 || version != "1000" {
			t.Errorf("%T has the version %q after revision %d, want 1000 after 999", obj, version, before)
		}
		if !obj.GetCreationTimestamp().Time.Equal(now) || obj.GetDeletionTimestamp() != nil {
			t.Errorf("the object is %v, want it created at %v and not to be deleted", obj, now)
		}
		stored := read(t, c, obj)
		if stored.GetUID() != obj.GetUID() || stored.GetResourceVersion() != "1000" {
			t.Errorf("got %v, want %v", stored, obj)
		}
	}
}

// TestSizeIsThatOfWhatIsSent creates an object that is small but for the name of the time zone of a time in it, which is
// not sent.
func TestSizeIsThatOfWhatIsSent(t *testing.T) {
	t.Parallel()
	event := &corev1.Event{ObjectMeta: metadata("one"), InvolvedObject: corev1.ObjectReference{Namespace: "ns"}}
	event.FirstTimestamp = metav1.NewTime(now.In(time.FixedZone(strings.Repeat("Z", 2<<20), 0)))
	if err := newClient(t).Create(t.Context(), event); err != nil {
		t.Errorf("an Event whose time zone has a long name is refused with %q, want it created", err)
	}
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	terminating := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "terminating", DeletionTimestamp: &metav1.Time{Time: now},
	}}
	for _, test := range []struct {
		name   string
		change func(client.Object)
		reason metav1.StatusReason
		text   string
	}{
		{"what exists", func(o client.Object) { o.SetName("given") },
			metav1.StatusReasonAlreadyExists, `"given" already exists`},
		{"a version", func(o client.Object) { o.SetResourceVersion("7") },
			"", "should not be set on objects to be created"},
		{"an invalid name", func(o client.Object) { o.SetName("No") }, metav1.StatusReasonInvalid, "metadata.name"},
		{"no name", func(o client.Object) { o.SetName("") },
			metav1.StatusReasonInvalid, "name or generateName is required"},
		{"an invalid label", func(o client.Object) { o.SetLabels(map[string]string{"a": "b c"}) },
			metav1.StatusReasonInvalid, "metadata.labels"},
		{"two controllers", func(o client.Object) {
			owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "a", UID: "1", Controller: new(true)}
			other := owner
			other.UID = "2"
			o.SetOwnerReferences([]metav1.OwnerReference{owner, other})
		}, metav1.StatusReasonInvalid, "metadata.ownerReferences"},
		{"a missing namespace", func(o client.Object) { o.SetNamespace("none") },
			metav1.StatusReasonNotFound, `namespaces "none" not found`},
		{"a terminating namespace", func(o client.Object) { o.SetNamespace("terminating") },
			metav1.StatusReasonForbidden, "unable to create new content in namespace terminating"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, objs := range [][2]client.Object{
				{configMap("one"), configMap("given")}, {app("one"), app("given")}, {widget("one"), widget("given")},
			} {
				s := newStore(t, widgets(), terminating, objs[1])
				revision := s.Revision()
				test.change(objs[0])
				reason(t, s.Client(store.ClientOptions{}).Create(t.Context(), objs[0]), test.reason, test.text)
				if s.Revision() != revision {
					t.Errorf("the write of %T brought the store to revision %d, want %d", objs[0], s.Revision(),
						revision)
				}
			}
		})
	}
}

func TestCreateInATerminatingNamespaceHasACause(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	must(t, c.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}))
	err := c.Create(t.Context(), configMap("one"))
	if !hasCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("the error is %v, want the cause %s", err, corev1.NamespaceTerminatingCause)
	}
}

func TestCreateGeneratesNames(t *testing.T) {
	t.Parallel()
	c := newClient(t, configMap("a-002"))
	for _, want := range []string{"a-001", "a-003", "b004"} {
		cm := configMap("")
		cm.GenerateName = want[:len(want)-3]
		must(t, c.Create(t.Context(), cm))
		if cm.Name != want {
			t.Errorf("got %q, want %q", cm.Name, want)
		}
	}
}

func TestCreateDryRun(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	c := s.Client(store.ClientOptions{})
	cm := configMap("one")
	must(t, c.Create(t.Context(), cm, client.DryRunAll))
	if cm.UID == "" || cm.CreationTimestamp.IsZero() || cm.ResourceVersion != "" {
		t.Errorf("the answer is %+v, want a UID, a creation time and no version", cm)
	}
	if exists(t, c, cm) || s.Revision() != 999 {
		t.Errorf("a dry run brought the store to revision %d, want 999 and no object", s.Revision())
	}
	reason(t, c.Create(t.Context(), configMap("No"), client.DryRunAll), metav1.StatusReasonInvalid, "metadata.name")
}

// TestIdentityIsTheSameInEachRun creates an object twice, in two stores.
func TestIdentityIsTheSameInEachRun(t *testing.T) {
	t.Parallel()
	var runs [2][]string
	for i := range runs {
		c := newClient(t)
		for range 2 {
			cm := configMap("one")
			must(t, c.Create(t.Context(), cm))
			must(t, c.Delete(t.Context(), cm))
			runs[i] = append(runs[i], string(cm.UID))
		}
	}
	if runs[0][0] == runs[0][1] || runs[0][0] != runs[1][0] || runs[0][1] != runs[1][1] {
		t.Errorf("the UIDs are %v, want two, and the same in both runs", runs)
	}
}

func TestScopeOfKinds(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	node := &corev1.Node{ObjectMeta: metadata("one")}
	must(t, c.Create(t.Context(), node))
	if node.Namespace != "" {
		t.Errorf("the node is in namespace %q, want none", node.Namespace)
	}
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "one"}, node))
	cm := configMap("one")
	cm.Namespace = ""
	reason(t, c.Create(t.Context(), cm), "", "an empty namespace may not be set during creation")
	reason(t, c.Get(t.Context(), client.ObjectKey{Name: "one"}, cm), "", "an empty namespace may not be set")
	must(t, c.Create(t.Context(), &App{ObjectMeta: metav1.ObjectMeta{Name: "anywhere"}}))
}

func TestTimesHaveSeconds(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	pod := &corev1.Pod{ObjectMeta: metadata("one"), Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "a", Image: "b"}},
	}}
	must(t, c.Create(t.Context(), pod))
	pod.Status.Conditions = []corev1.PodCondition{{Type: "Ready", Status: "True",
		LastTransitionTime: metav1.NewTime(now.Add(time.Millisecond))}}
	must(t, c.Status().Update(t.Context(), pod))
	if got := pod.Status.Conditions[0].LastTransitionTime; !got.Time.Equal(now) {
		t.Errorf("the time is %s, want %s", got.Format(time.RFC3339Nano), now.Format(time.RFC3339Nano))
	}
}

// TestContentOfOtherTypes creates an object with the Go types that authors write.
func TestContentOfOtherTypes(t *testing.T) {
	t.Parallel()
	c := newClient(t, widgets())
	w := widget("one")
	w.Object["spec"] = map[string]any{"size": 3}
	must(t, c.Create(t.Context(), w))
	if got := w.Object["spec"].(map[string]any)["size"]; got != int64(3) {
		t.Errorf("the size is %T %v, want int64 3", got, got)
	}
}

package server_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/server"
)

// TestWorldDryRuns makes each write as a dry run first, and then in earnest.
func TestWorldDryRuns(t *testing.T) {
	now := time.Date(2030, time.May, 1, 0, 0, 0, 0, time.UTC)
	w := worldOf(t, shared(t), func() time.Time { return now })
	w.create(widgets())
	before := w.Revision()
	for _, obj := range []client.Object{configMap(""), widget("", 0)} {
		obj.SetGenerateName("a-")
		dry := obj.DeepCopyObject().(client.Object)
		w.must(w.Create(w.ctx, dry, client.DryRunAll))
		if w.Revision() != before {
			t.Fatal("a dry run is a write")
		}
		fork := w.fork()
		fork.create(obj)
		if dry.GetName() != obj.GetName() || dry.GetUID() == obj.GetUID() || dry.GetResourceVersion() != "" {
			t.Errorf("a dry run made\n%s, and the create after it\n%s", asJSON(t, dry), asJSON(t, obj))
		}
		created, managed := dry.GetCreationTimestamp(), dry.GetManagedFields()[0].Time
		if !created.Time.Equal(now) || !managed.Time.Equal(now) {
			t.Errorf("a dry run made it at %v, and fields are managed since %v", created, managed)
		}
		version := obj.GetResourceVersion()
		changed := obj.DeepCopyObject().(client.Object)
		changed.SetLabels(map[string]string{"a": "b"})
		fork.must(fork.Update(fork.ctx, changed, client.DryRunAll))
		if changed.GetResourceVersion() != version || len(changed.GetLabels()) != 1 {
			t.Errorf("a dry run of an update made\n%s", asJSON(t, changed))
		}
		fork.must(fork.Delete(fork.ctx, obj, client.DryRunAll))
		fork.get(obj)
		if obj.GetResourceVersion() != version || obj.GetLabels() != nil {
			t.Errorf("after dry runs it is\n%s", asJSON(t, obj))
		}
		stale := obj.DeepCopyObject().(client.Object)
		obj.SetLabels(map[string]string{"a": "c"})
		fork.must(fork.Update(fork.ctx, obj))
		fork.refused(fork.Update(fork.ctx, stale, client.DryRunAll), apierrors.IsConflict)
		fork.refused(fork.Create(fork.ctx, withName(stale), client.DryRunAll), apierrors.IsAlreadyExists)
	}
	applied := corev1apply.ConfigMap("applied", "default").WithData(map[string]string{"a": "1"})
	w.must(w.Apply(w.ctx, applied, client.FieldOwner("one"), client.DryRunAll))
	w.refused(w.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: "applied"}, configMap("")), apierrors.IsNotFound)
	bad := client.RawPatch(types.MergePatchType, []byte(`{}`))
	w.create(configMap("a"))
	w.refused(w.Patch(w.ctx, configMap("a"), bad, &client.PatchOptions{DryRun: []string{"Some"}}), apierrors.IsInvalid)
}

// withName returns a new object of the name.
func withName(obj client.Object) client.Object {
	obj.SetResourceVersion("")
	return obj
}

// TestCreatesThatFailTakeNoName has creates fail behind admission.
func TestCreatesThatFailTakeNoName(t *testing.T) {
	w := newWorld(t)
	w.create(widgets())
	named := func(obj client.Object, prefix string) client.Object {
		obj.SetGenerateName(prefix)
		return obj
	}
	w.refused(w.Create(w.ctx, named(configMap(""), "Bad")), apierrors.IsInvalid)
	w.refused(w.Create(w.ctx, named(widget("", -1), "a-")), apierrors.IsInvalid)
	bad := deployment("")
	bad.Spec.Selector = nil
	w.refused(w.Create(w.ctx, named(bad, "a-")), apierrors.IsInvalid)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "missing"}}
	w.refused(w.Create(w.ctx, named(pod, "a-")), apierrors.IsNotFound)
	obj := named(configMap(""), "a-")
	w.create(obj)
	if obj.GetName() != "a-001" {
		t.Errorf("the name is %s, want a-001", obj.GetName())
	}
	// A name that was given has no number.
	again := named(configMap("b-002"), "b-")
	w.create(again)
	next := named(configMap(""), "c-")
	w.create(next)
	if next.GetName() != "c-002" {
		t.Errorf("the name is %s, want c-002", next.GetName())
	}
}

// TestNamesAreTakenSideBySide has creates that do not wait for each other.
func TestNamesAreTakenSideBySide(t *testing.T) {
	w := newWorld(t)
	var running sync.WaitGroup
	var mu sync.Mutex
	names := map[string]bool{}
	for range 20 {
		running.Go(func() {
			obj := configMap("")
			obj.GenerateName = "a-"
			err := w.Create(w.ctx, obj)
			mu.Lock()
			defer mu.Unlock()
			if names[obj.Name] = true; err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	for _, name := range []string{"a-001", "a-020"} {
		if !names[name] {
			t.Errorf("the names are %v, want %s among them", names, name)
		}
	}
}

// TestWorldUsers makes requests that come to the filters which other requests pass by.
func TestWorldUsers(t *testing.T) {
	w := newWorld(t)
	who := func(change func(*rest.Config)) (string, error) {
		config := worldConfig(shared(t))
		change(config)
		clients, err := kubernetes.NewForConfig(config)
		w.must(err)
		review, err := clients.AuthenticationV1().SelfSubjectReviews().Create(
			w.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		return review.Status.UserInfo.Username, err
	}
	for want, change := range map[string]func(*rest.Config){
		"kubernetes-admin":                    func(*rest.Config) {},
		"jane":                                func(c *rest.Config) { c.Impersonate.UserName = "jane" },
		"joe":                                 func(c *rest.Config) { c.BearerToken = "joe" },
		"system:serviceaccount:default:robot": func(c *rest.Config) { c.BearerToken = "system:serviceaccount:default:robot" },
	} {
		if got, err := who(change); err != nil || got != want {
			t.Errorf("the user is %q, want %s; the error is %v", got, want, err)
		}
	}
	request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, server.Host+"/api/v1/configmaps", nil)
	w.must(err)
	request.Header.Set("Authorization", "Bearer ")
	response, err := shared(t).Transport().RoundTrip(request)
	w.must(err)
	w.must(response.Body.Close())
	if response.StatusCode != http.StatusUnauthorized || request.Header.Get("Authorization") == "" {
		t.Errorf("a request of nobody is answered with %s", response.Status)
	}
}

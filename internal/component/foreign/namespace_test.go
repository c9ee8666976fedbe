package foreign_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/foreign"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func namespaceKey(name string) plan.Key { return plan.Key{Kind: "Namespace", Name: name} }

// uidOf is the UID of a namespace.
func uidOf(t testing.TB, name string) types.UID {
	t.Helper()
	namespace := &corev1.Namespace{}
	if err := live(t).Get(t.Context(), client.ObjectKey{Name: name}, namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.UID
}

// in makes an object in the namespace, whose owner label is the owner, if there is one.
func in[T client.Object](object T, namespace, name, owner string) T {
	object.SetNamespace(namespace)
	object.SetName(name)
	if owner != "" {
		object.SetLabels(map[string]string{ownerLabel: owner})
	}
	return object
}

// ownedBy makes the objects owners of object.
func ownedBy[T client.Object](object T, owners ...client.Object) T {
	var references []metav1.OwnerReference
	for _, owner := range owners {
		kind, _, _ := newScheme().ObjectKinds(owner)
		references = append(references, metav1.OwnerReference{
			APIVersion: kind[0].GroupVersion().String(), Kind: kind[0].Kind, Name: owner.GetName(), UID: owner.GetUID(),
		})
	}
	object.SetOwnerReferences(references)
	return object
}

func configMapIn(namespace, name, owner string) *corev1.ConfigMap {
	return in(&corev1.ConfigMap{}, namespace, name, owner)
}

// What counts in a namespace is what is somebody else's.
func TestContentsOfANamespace(t *testing.T) {
	t.Parallel()
	gone := configMapIn("", "gone", "")
	gone.UID = "gone"
	tests := []struct {
		name   string
		create func(t *testing.T, namespace string)
		want   plan.Use
	}{
		{"nothing", func(*testing.T, string) {}, none},
		{"our own", func(t *testing.T, namespace string) {
			create(t, configMapIn(namespace, "mine", ours))
		}, none},
		{"without owner", func(t *testing.T, namespace string) {
			create(t, configMapIn(namespace, "theirs", ""))
		}, blocking(0, "ConfigMap NS/theirs")},
		{"of another component", func(t *testing.T, namespace string) {
			create(t, configMapIn(namespace, "theirs", "them"))
		}, blocking(0, "ConfigMap NS/theirs")},
		{"of a custom type", func(t *testing.T, namespace string) {
			create(t, instance(crdOf("Anchor"), namespace, "theirs", ""))
		}, blocking(0, "Anchor NS/theirs")},
		{"several", func(t *testing.T, namespace string) {
			create(t, in(&corev1.ServiceAccount{}, namespace, "robot", ""))
			create(t, configMapIn(namespace, "a", ""))
			create(t, configMapIn(namespace, "b", "them"))
			create(t, configMapIn(namespace, "c", ours))
			create(t, in(&corev1.Secret{}, namespace, "s", ""))
			create(t, in(&rbacv1.Role{}, namespace, "r", ""))
		}, blocking(2, "ConfigMap NS/a", "ConfigMap NS/b", "Secret NS/s")},
		{"what every namespace has", func(t *testing.T, namespace string) {
			create(t, configMapIn(namespace, "kube-root-ca.crt", ""))
			create(t, in(&corev1.ServiceAccount{}, namespace, "default", ""))
			create(t, in(&corev1.Event{
				InvolvedObject: corev1.ObjectReference{Namespace: namespace}}, namespace, "event", ""))
		}, none},
		{"owned by ours", func(t *testing.T, namespace string) {
			mine := configMapIn(namespace, "mine", ours)
			create(t, mine)
			child := ownedBy(configMapIn(namespace, "child", ""), mine)
			create(t, child)
			create(t, ownedBy(configMapIn(namespace, "grandchild", ""), child))
		}, none},
		{"owned by theirs", func(t *testing.T, namespace string) {
			theirs := in(&corev1.Secret{}, namespace, "theirs", "")
			create(t, theirs)
			child := ownedBy(configMapIn(namespace, "child", ""), theirs)
			create(t, child)
			create(t, ownedBy(configMapIn(namespace, "grandchild", ""), child))
		}, blocking(0, "ConfigMap NS/child", "ConfigMap NS/grandchild", "Secret NS/theirs")},
		{"owned by ours and theirs", func(t *testing.T, namespace string) {
			mine, theirs := configMapIn(namespace, "mine", ours), in(&corev1.Secret{}, namespace, "theirs", "")
			create(t, mine)
			create(t, theirs)
			create(t, ownedBy(configMapIn(namespace, "child", ""), mine, theirs))
		}, blocking(0, "ConfigMap NS/child", "Secret NS/theirs")},
		{"owned by what is gone", func(t *testing.T, namespace string) {
			create(t, ownedBy(configMapIn(namespace, "child", ""), gone))
			another := gone.DeepCopy()
			another.Name = "kube-root-ca.crt"
			create(t, ownedBy(configMapIn(namespace, "child-of-another-uid", ""), another))
		}, none},
		{"owned by something in no namespace", func(t *testing.T, namespace string) {
			node := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
			create(t, node)
			create(t, ownedBy(configMapIn(namespace, "child", ""), node))
		}, blocking(0, "ConfigMap NS/child")},
		{"a token", func(t *testing.T, namespace string) {
			mine := in(&corev1.ServiceAccount{}, namespace, "mine", ours)
			create(t, mine)
			token := in(&corev1.Secret{Type: corev1.SecretTypeServiceAccountToken}, namespace, "token", "")
			token.Annotations = map[string]string{
				corev1.ServiceAccountNameKey: mine.Name, corev1.ServiceAccountUIDKey: string(mine.UID),
			}
			create(t, token)
		}, none},
		{"what is being deleted", func(t *testing.T, namespace string) {
			leaving := configMapIn(namespace, "leaving", "")
			leaving.Finalizers = []string{"example.com/keep"}
			create(t, leaving)
			if err := live(t).Delete(t.Context(), leaving); err != nil {
				t.Fatal(err)
			}
			create(t, ownedBy(configMapIn(namespace, "child", ""), leaving))
		}, none},
		{"a circle", func(t *testing.T, namespace string) {
			a, b := configMapIn(namespace, "a", ""), configMapIn(namespace, "b", "")
			create(t, a)
			create(t, ownedBy(b, a))
			if err := live(t).Update(t.Context(), ownedBy(a, b)); err != nil {
				t.Fatal(err)
			}
		}, blocking(0, "ConfigMap NS/a", "ConfigMap NS/b")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			namespace := plane.Namespace(t)
			test.create(t, namespace)
			for i := range test.want.Instances {
				test.want.Instances[i] = strings.ReplaceAll(test.want.Instances[i], "NS", namespace)
			}
			g, requests := guarded(t, interceptor.Funcs{})
			use, err := checkOne(t.Context(), g, namespaceKey(namespace), true)
			assertUse(t, use, err, test.want)
			if n := requests.Writes(); n != 0 {
				t.Errorf("there are %d writes, want none: %v", n, requests)
			}
			use, err = deleteOne(t.Context(), g, namespaceKey(namespace), uidOf(t, namespace))
			assertUse(t, use, err, test.want)
			got := &corev1.Namespace{}
			if err := live(t).Get(t.Context(), client.ObjectKey{Name: namespace}, got); err != nil {
				t.Fatal(err)
			}
			if deleted := got.DeletionTimestamp != nil; deleted != (test.want.State == plan.ForeignNone) {
				t.Errorf("that the namespace was deleted is %v, want %v", deleted, !deleted)
			}
		})
	}
}

// Many objects take a few requests, are counted up to a limit, and only their metadata are read. The types of other
// tests would be counted, too, so the test is alone with the API server.
func TestManyObjectsInANamespace(t *testing.T) {
	namespace := plane.Namespace(t)
	fill := func(from, to int, make func(name string) client.Object) {
		t.Helper()
		workqueue.ParallelizeUntil(t.Context(), 16, to-from, func(i int) {
			if err := live(t).Create(t.Context(), make(fmt.Sprintf("theirs-%04d", from+i))); err != nil {
				t.Error(err)
			}
		})
	}
	mine := configMapIn(namespace, "mine", ours)
	create(t, mine)
	fill(0, 1000, func(name string) client.Object {
		return ownedBy(in(&corev1.Secret{}, namespace, name, ""), mine)
	})
	g, requests := guarded(t, interceptor.Funcs{})
	use, err := checkOne(t.Context(), g, namespaceKey(namespace), false)
	assertUse(t, use, err, none)
	if n := requests.Total(); n > 70 {
		t.Errorf("there are %d requests for 1,000 Secrets of ours, want at most 70:\n%s", n, requests)
	}

	fill(0, 1000, func(name string) client.Object { return configMapIn(namespace, name, "") })
	requests.Reset()
	use, err = checkOne(t.Context(), g, namespaceKey(namespace), false)
	assertUse(t, use, err, blocking(997, "ConfigMap "+namespace+"/theirs-0000", "ConfigMap "+namespace+"/theirs-0001",
		"ConfigMap "+namespace+"/theirs-0002"))
	// One for the namespace, one for each type, two more for pages; one for the owner.
	t.Logf("%d requests", requests.Total())
	if n := requests.Total(); n > 40 {
		t.Errorf("there are %d requests for 1,000 ConfigMaps of theirs, want at most 40:\n%s", n, requests)
	}
}

// As long as the objects that were named are there, nothing else is read.
func TestMemoryOfANamespace(t *testing.T) {
	// Each type that another test defines meanwhile is a request.
	namespace := plane.Namespace(t)
	var objects []*corev1.ConfigMap
	for i := range 5 {
		objects = append(objects, configMapIn(namespace, fmt.Sprintf("theirs-%d", i), ""))
		create(t, objects[i])
	}
	g, requests := guarded(t, interceptor.Funcs{})
	g.Memory = &foreign.Memory{}
	names := func(from, to int) (list []string) {
		for i := from; i < to; i++ {
			list = append(list, "ConfigMap "+namespace+"/"+objects[i].Name)
		}
		return list
	}
	check := func(want plan.Use, most int) {
		t.Helper()
		requests.Reset()
		use, err := deleteOne(t.Context(), g, namespaceKey(namespace), uidOf(t, namespace))
		assertUse(t, use, err, want)
		if n := requests.Total(); n > most {
			t.Errorf("there are %d requests, want at most %d:\n%s", n, most, requests)
		}
	}
	check(blocking(2, names(0, 3)...), 100)
	check(blocking(2, names(0, 3)...), 4)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(live(t).Delete(t.Context(), objects[1]))
	check(blocking(1, names(0, 1)[0], names(2, 3)[0], names(3, 4)[0]), 100)
	objects[0].Labels = map[string]string{ownerLabel: ours}
	must(live(t).Update(t.Context(), objects[0]))
	check(blocking(0, names(2, 5)...), 100)
	check(blocking(0, names(2, 5)...), 4)
	for _, i := range []int{2, 3, 4} {
		must(live(t).Delete(t.Context(), objects[i]))
	}
	check(none, 100)
}

// What cannot be read is named, and keeps the namespace.
func TestUnreadableTypesOfANamespace(t *testing.T) {
	namespace := plane.Namespace(t)
	create(t, in(&corev1.ServiceAccount{}, namespace, "robot", ours))
	user := "reader-of-" + namespace
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps", "persistentvolumeclaims", "pods", "services",
			"serviceaccounts", "limitranges", "podtemplates", "replicationcontrollers", "resourcequotas"}, Verbs: []string{"list"}},
	}}
	for _, group := range []string{"apps", "autoscaling", "batch", "certificates.k8s.io", "networking.k8s.io", "policy", smithy,
		"rbac.authorization.k8s.io", "resource.k8s.io", "storage.k8s.io"} {
		role.Rules = append(role.Rules,
			rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"*"}, Verbs: []string{"list"}})
	}
	create(t, role)
	create(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
	})
	config := plane.Config(t)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	g := newGuard(t, config)
	controlplanetest.Eventually(t, "the role has no effect", func(ctx context.Context) error {
		return g.Client.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace))
	})
	const forbidden = "secrets could not be listed: forbidden"
	for range 2 {
		use, err := deleteOne(t.Context(), g, namespaceKey(namespace), uidOf(t, namespace))
		assertUse(t, use, err, unknown(forbidden))
	}
	create(t, configMapIn(namespace, "theirs", ""))
	use, err := checkOne(t.Context(), g, namespaceKey(namespace), false)
	want := blocking(0, "ConfigMap "+namespace+"/theirs")
	want.Reason = forbidden
	assertUse(t, use, err, want)
}

// A namespace of another UID, or one that is going, is left alone; one that has changed is looked at again.
func TestDeleteOfANamespaceThatChanges(t *testing.T) {
	t.Parallel()
	namespace := plane.Namespace(t)
	g, requests := guarded(t, interceptor.Funcs{})
	use, err := deleteOne(t.Context(), g, namespaceKey(namespace), "another")
	assertUse(t, use, err, none)
	use, err = deleteOne(t.Context(), g, namespaceKey("absent"), "another")
	assertUse(t, use, err, none)
	if n := requests.Writes(); n != 0 {
		t.Errorf("there are %d writes, want none: %s", n, requests)
	}

	lists := 0
	g, _ = guarded(t, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if lists++; lists == 1 {
				create(t, configMapIn(namespace, "theirs", ""))
				patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"them"}}}`))
				if err := live(t).Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, patch); err != nil {
					t.Error(err)
				}
			}
			return c.Delete(ctx, o, opts...)
		},
	})
	use, err = deleteOne(t.Context(), g, namespaceKey(namespace), uidOf(t, namespace))
	assertUse(t, use, err, blocking(0, "ConfigMap "+namespace+"/theirs"))
}

// An answer that may be another the next time is an error.
func TestNamespaceThatCannotBeReadNow(t *testing.T) {
	t.Parallel()
	namespace := plane.Namespace(t)
	busy := apierrors.NewTooManyRequests("busy", 1)
	g, _ := guarded(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if l.GetObjectKind().GroupVersionKind().Kind == "SecretList" {
				return busy
			}
			return c.List(ctx, l, opts...)
		},
	})
	use, err := checkOne(t.Context(), g, namespaceKey(namespace), false)
	if err == nil || !strings.Contains(err.Error(), "secrets could not be listed") {
		t.Errorf("the use is %+v and the error %v, want that the Secrets could not be listed", use, err)
	}
	// What others have is enough.
	create(t, in(&corev1.ServiceAccount{}, namespace, "theirs", ""))
	use, err = checkOne(t.Context(), g, namespaceKey(namespace), false)
	assertUse(t, use, err, blocking(0, "ServiceAccount "+namespace+"/theirs"))
}

package takeover_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

// hold creates a Lease that an operator holds, and that was renewed so long ago.
func hold(t *testing.T, c client.Client, namespace, name, holder string, ago time.Duration) {
	t.Helper()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: new(int32(3600)),
			RenewTime: new(metav1.NewMicroTime(time.Now().Add(-ago))),
		},
	}
	if err := c.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}

// status returns a function that changes the status of a component, in which NAMESPACE stands for its namespace.
func status(
	change string, options ...client.SubResourcePatchOption,
) func(t *testing.T, c client.Client, o *oldComponent) {
	return func(t *testing.T, c client.Client, o *oldComponent) {
		t.Helper()
		content := []byte(strings.ReplaceAll(`{"status":`+change+`}`, "NAMESPACE", o.Namespace))
		patch := client.RawPatch(types.MergePatchType, content)
		if err := c.Status().Patch(t.Context(), o.DeepCopy(), patch, options...); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRefused tries what must not be done. The error says why, and nothing is written.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		given func(t *testing.T, c client.Client, o *oldComponent)
		args  []string
		want  string
	}{
		"the old operator has a Lease": {
			func(t *testing.T, c client.Client, o *oldComponent) {
				hold(t, c, o.Namespace, "fresh", "operator-0", 0)
			},
			[]string{"--lease", "NAMESPACE/fresh"},
			"the operator is running: operator-0 holds the Lease NAMESPACE/fresh",
		},
		"the Lease that is named is not there": {nil, []string{"--lease", "NAMESPACE/none"}, `"none" not found`},
		"the old operator has written an object": {
			func(t *testing.T, c client.Client, o *oldComponent) {
				live := &corev1.ConfigMap{}
				live.Namespace, live.Name = o.Namespace, "settings"
				touch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"more":"1"}}`))
				if err := c.Patch(t.Context(), live, touch, client.FieldOwner(oldName)); err != nil {
					t.Fatal(err)
				}
			}, nil, "ConfigMap NAMESPACE/settings: the operator is running: its field manager " + oldName,
		},
		"the old operator has written the component": {
			status(`{"revision":4}`, client.FieldOwner(oldName)), nil,
			"Assembly NAMESPACE/shop: the operator is running: its field manager " + oldName,
		},
		"it is being deleted": {
			func(t *testing.T, c client.Client, o *oldComponent) {
				if err := c.Delete(t.Context(), o.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}, nil, "it is being deleted, and gets no finalizer any more: let the old operator finish",
		},
		"its kubeconfig is missing": {
			func(t *testing.T, c client.Client, o *oldComponent) {
				elsewhere := []byte(`{"spec":{"kubeConfig":{"secretRef":{"name":"other"}}}}`)
				patch := client.RawPatch(types.MergePatchType, elsewhere)
				if err := c.Patch(t.Context(), o.DeepCopy(), patch); err != nil {
					t.Fatal(err)
				}
			}, nil, `the kubeconfig of the component: secrets "other" not found`,
		},
		"its objects are not there": {
			status(`{"inventory":[{"version":"v1","kind":"ConfigMap","namespace":"NAMESPACE","name":"a"}]}`), nil,
			"none of its 1 recorded objects is there and has its owner label",
		},
		"a policy is not known": {
			status(`{"inventory":[{"version":"v1","kind":"ConfigMap","namespace":"NAMESPACE","name":"settings",` +
				`"updatePolicy":"Merge"}]}`), nil, `is recorded with the update policy "Merge", which is not known`,
		},
		"another name": {
			nil, []string{"--from-name", "other.test"}, "it does not have the finalizer other.test",
		},
		"there is none of the name": {nil, []string{"corner"}, `"corner" not found`},
		"the same prefix":           {nil, []string{"--prefix", oldName}, "--prefix must not be"},
		"no prefix":                 {nil, []string{"--prefix", ""}, `--prefix is "", and must be a DNS`},
		"both ways":                 {nil, []string{"--finalize", "--rollback"}, "exclude each other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			o, d := deploy(t, c), newDoor(t, plane.Config(t))
			if tc.given != nil {
				tc.given(t, c, o)
			}
			before := o.state(t, c)
			args := make([]string, len(tc.args))
			for i, arg := range tc.args {
				args[i] = strings.ReplaceAll(arg, "NAMESPACE", o.Namespace)
			}
			out, err := d.run(t, o.Namespace, args...)
			want := strings.ReplaceAll(tc.want, "NAMESPACE", o.Namespace)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %v, want one line with %q in it\n%s", err, want, out)
			}
			if diff := gocmp.Diff(before, o.state(t, c)); diff != "" || d.writes > 0 {
				t.Errorf("after %d writes the state differs (-before, +after), want no write:\n%s", d.writes, diff)
			}
		})
	}
}

// TestOneOfSeveralIsRefused writes nothing to any component if one is refused. Another one can be named alone.
func TestOneOfSeveralIsRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	o, d := deploy(t, c), newDoor(t, plane.Config(t))
	zoo := resources.NewAssembly(o.Namespace, "zoo")
	zoo.Finalizers = []string{oldName}
	if err := c.Create(t.Context(), zoo); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), zoo); err != nil {
		t.Fatal(err)
	}
	out, err := d.run(t, o.Namespace)
	want := "Assembly " + o.Namespace + "/zoo: it is being deleted"
	if err == nil || !strings.Contains(err.Error(), want) || d.writes > 0 {
		t.Errorf("after %d writes the error is %v, want %q and no write\n%s", d.writes, err, want, out)
	}
	if out, err := d.run(t, o.Namespace, "shop"); err != nil || d.writes == 0 {
		t.Errorf("named alone, %d writes are made and the error is %v, want writes and none\n%s", d.writes, err, out)
	}
}

// TestLeaseOfThePast lets a Lease that has ended, and one that was given back, be no reason.
func TestLeaseOfThePast(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	o, d := deploy(t, c), newDoor(t, plane.Config(t))
	hold(t, c, o.Namespace, "ended", "operator-0", 2*time.Hour)
	hold(t, c, o.Namespace, "released", "", 0)
	for _, lease := range []string{o.Namespace + "/ended", o.Namespace + "/released", "released"} {
		out, err := d.run(t, o.Namespace, "--dry-run", "--lease", lease)
		if err != nil || strings.Contains(out, "There is no Lease") {
			t.Errorf("with the Lease %s, the error is %v, want none; it prints %s", lease, err, out)
		}
	}
	hold(t, c, o.Namespace, o.Namespace, "operator-0", 0)
	if out, err := d.run(t, o.Namespace, "--lease", o.Namespace); err == nil {
		t.Errorf("a fresh Lease that was looked for in all namespaces is no reason; it prints %s", out)
	}
}

// TestDryRun checks everything, says what would be done, and writes nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	o, d := deploy(t, c), newDoor(t, plane.Config(t))
	before := o.state(t, c)
	out, err := d.run(t, o.Namespace, "--dry-run")
	want := "Assembly " + o.Namespace + "/shop: to take over, with 6 of 7 recorded objects\n"
	if err != nil || !strings.HasSuffix(out, want) {
		t.Errorf("it prints %q, and the error is %v, want %q at the end", out, err, want)
	}
	if diff := gocmp.Diff(before, o.state(t, c)); diff != "" || d.writes > 0 {
		t.Errorf("after %d writes the state differs (-before, +after), want no write:\n%s", d.writes, diff)
	}
}

// TestKinds takes a kind as kubectl has it too, and says what is wrong with one that does not exist.
func TestKinds(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	o, d := deploy(t, c), newDoor(t, plane.Config(t))
	d.kind = "assemblies"
	out, err := d.run(t, o.Namespace, "shop", "--dry-run")
	if err != nil || !strings.Contains(out, "/shop: to take over") {
		t.Errorf("with the plural, the error is %v, want none; it prints %s", err, out)
	}
	d.kind = "Nothing"
	const want = "the cluster has no kind \"Nothing.test.espalier.dev\": it serves no such resource"
	if out, err := d.run(t, o.Namespace); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s\n%s", err, want, out)
	}
}

// TestConflict goes on with an object that somebody else changes between its reading and its first write.
func TestConflict(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	o, d := deploy(t, c), newDoor(t, plane.Config(t))
	before := o.uids(t, c)
	d.before = func(n int) {
		if n != 2 {
			return
		}
		live := &corev1.ConfigMap{}
		live.Namespace, live.Name = o.Namespace, "settings"
		touch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"more":"1"}}`))
		if err := c.Patch(t.Context(), live, touch, client.FieldOwner("them")); err != nil {
			t.Error(err)
		}
	}
	if out, err := d.run(t, o.Namespace); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	settings := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o.objects[0]), settings); err != nil {
		t.Fatal(err)
	}
	if settings.Labels[newPrefix+"/owner-id"] == "" || settings.Data["more"] != "1" {
		t.Errorf("the object has the labels %v and the data %v, want our label and what was added",
			settings.Labels, settings.Data)
	}
	if after := o.uids(t, c); !maps.Equal(before, after) {
		t.Errorf("the objects are %v, want those that there were, %v", after, before)
	}
}

// TestRights names the right that a user does not have before anything is written. With the rights of the documentation
// the user has them all.
func TestRights(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	o := deploy(t, c)
	name := "user-of-" + o.Namespace
	config := plane.Config(t)
	config.Impersonate = rest.ImpersonationConfig{UserName: name}
	d := newDoor(t, config)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	before := o.state(t, c)
	rule := func(group string, verbs []string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Verbs: verbs, Resources: names}
	}
	group := resources.GroupVersion.Group
	getPatch := []string{"get", "patch"}
	for _, step := range []struct {
		rule rbacv1.PolicyRule
		// want is what the user is told until the rule is there.
		want string
	}{
		{rule("coordination.k8s.io", []string{"list"}, "leases"), `cannot list resource "leases"`},
		{rule("", []string{"get"}, "namespaces"), `cannot get resource "namespaces"`},
		{rule(group, []string{"list"}, "assemblies"), `cannot list resource "assemblies"`},
		{rule(group, getPatch, "assemblies"), `cannot get resource "assemblies"`},
		{rule("", getPatch, "configmaps"), `cannot get resource "configmaps"`},
		{rule("", getPatch, "secrets"), `cannot get resource "secrets"`},
		{rule("apps", getPatch, "deployments"), `cannot get resource "deployments"`},
		{
			rule("apiextensions.k8s.io", getPatch, "customresourcedefinitions"),
			`cannot get resource "customresourcedefinitions"`,
		},
		{rule(group, getPatch, "assemblies/status"), `cannot patch resource "assemblies/status"`},
	} {
		out, err := d.run(t, o.Namespace)
		if err == nil || !strings.Contains(err.Error(), step.want) || strings.Contains(err.Error(), "\n") {
			t.Fatalf("the error is %v, want one line with %q in it\n%s", err, step.want, out)
		}
		role.Rules = append(role.Rules, step.rule)
		if err := c.Update(t.Context(), role); err != nil {
			t.Fatal(err)
		}
		untilAllowed(t, d, o, step.want)
	}
	if diff := gocmp.Diff(before, o.state(t, c)); diff != "" || d.writes > 0 {
		t.Errorf("after %d writes the state differs (-before, +after), want no write:\n%s", d.writes, diff)
	}
	if out, err := d.run(t, o.Namespace); err != nil {
		t.Errorf("with all rights the error is %v, want none\n%s", err, out)
	}
}

// untilAllowed waits until the API server knows a right, which it learns by a watch.
func untilAllowed(t *testing.T, d *door, o *oldComponent, missing string) {
	t.Helper()
	controlplanetest.Eventually(t, "the right does not count", func(context.Context) error {
		_, err := d.run(t, o.Namespace, "--dry-run")
		if err != nil && strings.Contains(err.Error(), missing) {
			return err
		}
		return nil
	})
}

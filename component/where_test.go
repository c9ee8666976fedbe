package component_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conditionSays is nil if the condition Ready has the reason, and its message all the texts.
func conditionSays(ctx context.Context, c client.Client, a *resources.Assembly, reason string, texts ...string) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(a), a); err != nil {
		return err
	}
	condition := meta.FindStatusCondition(a.Status.Conditions, apis.ConditionReady)
	if condition == nil {
		return errors.New("there is no condition")
	}
	for _, text := range texts {
		if condition.Reason != reason || !strings.Contains(condition.Message, text) {
			return fmt.Errorf("the condition is %s: %s", condition.Reason, condition.Message)
		}
	}
	return nil
}

func goneFrom(c client.Client, objects ...client.Object) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		for _, object := range objects {
			err := c.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
			if !apierrs.IsNotFound(err) {
				return errors.Join(fmt.Errorf("%s is there", object.GetName()), err)
			}
		}
		return nil
	}
}

// allow gives a user rights in a namespace.
func allow(t testing.TB, c client.Client, namespace, name, user string, verbs ...string) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// A component that is deployed as a user is read and watched as that user too. Where the user may not watch, the type is polled, and
// the condition says so.
func TestComponentIsDeployedAsSomebody(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	part := partOf(namespace, "part", "0")
	assembly := resources.NewAssembly(namespace, "all", part)
	assembly.Spec.ServiceAccountName = "deployer"
	assembly.Spec.RetryInterval = &metav1.Duration{Duration: 1}
	if err := c.Create(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	user := "system:serviceaccount:" + namespace + ":deployer"
	controlplanetest.Eventually(t, "what the user may not do is done, or not said", func(ctx context.Context) error {
		return conditionSays(ctx, c, assembly, component.ReasonError, "ConfigMap "+namespace+"/part", user)
	})
	if err := goneFrom(c, part)(t.Context()); err != nil {
		t.Error(err)
	}

	allow(t, c, namespace, "deployer", user, "get", "create", "patch", "delete")
	controlplanetest.Eventually(t, "it is not deployed", func(ctx context.Context) error {
		return conditionSays(ctx, c, assembly, component.ReasonReady, "ConfigMap may not be listed in the whole cluster: forbidden, so it is polled")
	})
	if n := strings.Count(meta.FindStatusCondition(assembly.Status.Conditions, apis.ConditionReady).Message, "polled"); n != 1 {
		t.Errorf(`"polled" is said %d times, want once`, n)
	}
	if err := c.Delete(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it does not go", goneFrom(c, assembly, part))
}

// kubeconfigOf is one for the API server of the tests, as a user.
func kubeconfigOf(t testing.TB, config *rest.Config) []byte {
	t.Helper()
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestComponentIsDeployedToAnotherCluster: without the kubeconfig nothing is done in the wrong cluster, its Secret is watched, and the deletion can be abandoned.
func TestComponentIsDeployedToAnotherCluster(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	remote, err := plane.Environment(t).User("remote-"+namespace, "nobody")
	if err != nil {
		t.Fatal(err)
	}
	part := partOf(namespace, "part", "0")
	assembly := resources.NewAssembly(namespace, "all", part)
	assembly.Spec.KubeConfig = &generator.KubeConfigSpec{SecretRef: generator.SecretKeyReference{Name: "remote"}, AbandonOnDeletion: true}
	if err := c.Create(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	retrying := func(text string) {
		t.Helper()
		controlplanetest.Eventually(t, "it does not say that it waits", func(ctx context.Context) error {
			return conditionSays(ctx, c, assembly, component.ReasonRetrying, text)
		})
	}
	retrying("The Secret " + namespace + "/remote of the kubeconfig does not exist")

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "remote"}, Data: map[string][]byte{"value": []byte(" \n")}}
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	retrying("The kubeconfig in the Secret " + namespace + "/remote is empty")
	if err := goneFrom(c, part)(t.Context()); err != nil {
		t.Errorf("without a kubeconfig, it was deployed to the cluster of the operator: %v", err)
	}

	// What is done there is done as the user of the kubeconfig, and the Secret is watched.
	secret.Data = map[string][]byte{"value": kubeconfigOf(t, remote)}
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not tried as the user of the kubeconfig", func(ctx context.Context) error {
		return conditionSays(ctx, c, assembly, component.ReasonError, "remote-"+namespace)
	})
	allow(t, c, namespace, "remote", "remote-"+namespace, "get", "list", "watch", "create", "patch", "delete")
	controlplanetest.Eventually(t, "it is not deployed", func(ctx context.Context) error {
		return hasState(ctx, c, assembly, apis.ComponentReady)
	})

	// Without the kubeconfig it is not known where the objects are. The user wants the resource to go all the same.
	if err := c.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	retrying("The Secret " + namespace + "/remote of the kubeconfig does not exist")
	if err := c.Delete(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not abandoned", goneFrom(c, assembly))
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(part), &corev1.ConfigMap{}); err != nil {
		t.Errorf("what nobody could reach is not there: %v", err)
	}
}

// With a service account, hooks and generators read their own types too: the clients know the types of the operator.
func TestOwnTypesAreReadAsSomebody(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	reads := func(ctx context.Context, _ client.Client, a *resources.Assembly) error {
		target, err := generator.ClientFromContext(ctx)
		if err != nil {
			return err
		}
		local, err := generator.LocalClientFromContext(ctx)
		if err != nil {
			return err
		}
		for name, from := range map[string]client.Client{"the target": target, "the local": local} {
			if _, err := from.GroupVersionKindFor(a); err != nil {
				return fmt.Errorf("%s client: %w", name, err)
			}
		}
		return nil
	}
	startComponents(t, plane.Config(t), namespace, assemblyOptions{
		Hooks: generator.Hooks[*resources.Assembly]{PreReconcile: []generator.Hook[*resources.Assembly]{reads}},
	})
	allow(t, c, namespace, "tenant", "system:serviceaccount:"+namespace+":tenant", "get", "list", "watch", "create", "patch", "delete")
	assembly := resources.NewAssembly(namespace, "all", partOf(namespace, "part", "0"))
	assembly.Spec.ServiceAccountName = "tenant"
	create(t, c, assembly)
	isReady(t, c, assembly)
}

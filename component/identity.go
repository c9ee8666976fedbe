package component

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/clusters"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	k8svalidation "k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// identity is where and as whom the component is deployed.
func (r *request[T]) identity(ctx context.Context) (clusters.Identity, error) {
	identity := clusters.Identity{
		KubeConfig: r.configuration.KubeConfig,
		User:       r.configuration.User,
		Groups:     slices.Clone(r.configuration.Groups),
	}
	reference := r.configuration.KubeConfigSecret
	if len(identity.KubeConfig) > 0 || reference == nil {
		return identity, nil
	}
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: r.resource.GetNamespace(), Name: reference.Name}
	if err := r.trackAndGet(ctx, key, secret); err != nil {
		if apierrs.IsNotFound(err) {
			err = fmt.Errorf("the Secret %s of the kubeconfig does not exist", key)
			if identity.KubeConfig, err = r.lastKubeConfig(ctx, err); err == nil {
				return identity, nil
			}
			return identity, r.missing(err)
		}
		return identity, fmt.Errorf("unable to read the Secret %s of the kubeconfig: %w", key, err)
	}
	kubeconfig, err := reference.ValueIn(secret.Data)
	if err != nil {
		return identity, r.missing(fmt.Errorf("the Secret %s has no kubeconfig: %w", key, err))
	}
	if len(bytes.TrimSpace(kubeconfig)) == 0 {
		// Without one, the component would be deployed to the cluster of the operator.
		return identity, r.missing(fmt.Errorf("the kubeconfig in the Secret %s is empty", key))
	}
	identity.KubeConfig = kubeconfig
	return identity, nil
}

// lastKubeConfig returns the last kubeconfig that worked, if its Secret is missing because the namespace of the
// resource is being deleted with both. Otherwise it returns missing, with what it could not find out.
func (r *request[T]) lastKubeConfig(ctx context.Context, missing error) ([]byte, error) {
	if !r.facts.deleting || len(r.state.kubeconfig) == 0 || r.configuration.AbandonOnDeletion {
		return nil, missing // the user has said what becomes of the objects
	}
	switch goes, err := namespaceGoes(ctx, r.liveReader(), r.resource.GetNamespace()); {
	case err != nil:
		return nil, errors.Join(missing, err)
	case !goes:
		return nil, missing
	}
	return r.state.kubeconfig, nil
}

// missingReferenceDelay is when a missing kubeconfig is looked for again, if no event of its Secret comes before.
const missingReferenceDelay = 10 * time.Second

// missing is the error for a kubeconfig that is not there.
func (r *request[T]) missing(err error) error {
	delay := missingReferenceDelay
	return generator.NewRetriableError(&missingError{err}, &delay)
}

// impersonate fills in the default service account, and refuses to become an administrator.
func (r *request[T]) impersonate() error {
	c := &r.configuration
	if slices.Contains(c.Groups, systemMasters) {
		return fmt.Errorf("the configuration is invalid: impersonation: the group %s is refused: "+
			"it may do anything, whatever the roles are", systemMasters)
	}
	if r.DefaultServiceAccount == "" || c.User != "" || len(c.Groups) > 0 || r.remote() {
		return nil
	}
	if c.User = r.defaultUser(); c.User == "" {
		return fmt.Errorf("the resource is in no namespace in which the default service account %q could be, "+
			"and names no user to deploy it", r.DefaultServiceAccount)
	}
	return nil
}

// defaultUser is the default service account, in the namespace of the resource; empty if there is none.
func (r *request[T]) defaultUser() string {
	if r.DefaultServiceAccount == "" || r.resource.GetNamespace() == "" {
		return ""
	}
	return "system:serviceaccount:" + r.resource.GetNamespace() + ":" + r.DefaultServiceAccount
}

// localIdentity is who the component is in the cluster of the resource; empty for the operator.
func (r *request[T]) localIdentity() clusters.Identity {
	identity := clusters.Identity{User: r.configuration.User, Groups: r.configuration.Groups}
	if identity.User == "" && len(identity.Groups) == 0 {
		// A kubeconfig says who the component is elsewhere, and not here.
		identity.User = r.defaultUser()
	}
	return identity
}

// localClient returns a client for the cluster of the resource with the identity of the component, and one that reads
// past the cache.
func (r *request[T]) localClient(ctx context.Context) (client.Client, client.Reader, error) {
	identity := r.localIdentity()
	if identity.User == "" && len(identity.Groups) == 0 {
		if r.config.APIReader == nil {
			return r.config.Client, r.config.Client, nil
		}
		return r.config.Client, r.config.APIReader, nil
	}
	if r.config.Cluster() == nil {
		return nil, nil, permanent(errNoCluster)
	}
	reached, err := r.targets.poolFor(r.config.Cluster(), r.RequestTimeout, r.generatorScheme).Get(ctx, identity)
	if err != nil {
		return nil, nil, fmt.Errorf("unable to reach the cluster of the resource: %w", err)
	}
	return reached.Client, reached.Client, nil
}

// systemMasters is a group that no role limits.
const systemMasters = "system:masters"

// remote reports whether the component is deployed with a kubeconfig.
func (r *request[T]) remote() bool {
	return len(r.configuration.KubeConfig) > 0 || r.configuration.KubeConfigSecret != nil
}

// clusterName names the cluster that the component is deployed to.
func (r *request[T]) clusterName() string {
	switch secret := r.configuration.KubeConfigSecret; {
	case len(r.configuration.KubeConfig) > 0:
		return "the cluster of the kubeconfig"
	case secret != nil:
		return fmt.Sprintf("the cluster of the Secret %s/%s", r.resource.GetNamespace(), secret.Name)
	}
	return "this cluster"
}

// identifyOwner completes the owner of the objects. In a cluster that is reached with a kubeconfig it names the cluster
// of the resource, since another one may deploy there too. A cluster is asked once.
func (r *request[T]) identifyOwner(ctx context.Context, remote bool) error {
	if !remote {
		return nil
	}
	id := r.ClusterID
	if id == "" {
		var err error
		read := func() (string, error) { return r.readClusterID(ctx) }
		if id, err = r.targets.clusterID(r.config.Cluster(), read); err != nil {
			return err
		}
	}
	r.formerOwnerID = r.owner.OwnerID
	text := engine.OwnerText(r.kind.GroupKind(), client.ObjectKeyFromObject(r.resource), id, r.resource.GetUID())
	text += r.owner.Item
	r.owner.Owner, r.owner.OwnerID = text, engine.OwnerID(text)
	return nil
}

// clusterID returns what identifies a cluster of the operator, and asks for it the first time.
func (t *targets) clusterID(home cluster.Cluster, read func() (string, error)) (string, error) {
	t.mu.Lock()
	id := t.ids[home]
	t.mu.Unlock()
	if id != "" {
		return id, nil
	}
	id, err := read()
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ids == nil {
		t.ids = map[cluster.Cluster]string{}
	}
	t.ids[home] = id
	return id, nil
}

// readClusterID reads the UID of the namespace kube-system, which exists as long as its cluster.
func (r *request[T]) readClusterID(ctx context.Context) (string, error) {
	// A cache would watch all namespaces.
	reader := r.liveReader()
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := reader.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return "", fmt.Errorf("unable to read the Namespace %s, which tells this cluster apart from others that "+
			"deploy to %s: the operator needs the permission to get namespaces, "+
			"or ComponentReconciler %q must define ClusterID: %w",
			metav1.NamespaceSystem, r.clusterName(), r.Name, err)
	}
	return string(namespace.UID), nil
}

// identityUses is what the node reads of the operator's cluster if users name kubeconfigs or service accounts.
func (r *ComponentReconciler[T]) identityUses() []reconcilers.Access {
	sample := sampleOf[T](context.Background())
	_, bySecret := generator.Lookup[generator.KubeConfigReference](sample)
	_, byContent := generator.Lookup[generator.ClientConfiguration](sample)
	_, impersonates := generator.Lookup[generator.ImpersonationConfiguration](sample)
	var uses []reconcilers.Access
	if bySecret {
		uses = append(uses, reconcilers.Access{Object: &corev1.Secret{}, Verbs: []string{"get", "list", "watch"}})
	}
	// The rights of a component, and its kubeconfig, may be deleted with a namespace before the component is.
	leaves := bySecret || impersonates || r.DefaultServiceAccount != ""
	if leaves || byContent && r.ClusterID == "" {
		uses = append(uses, reconcilers.Access{Object: &corev1.Namespace{}, Verbs: []string{"get"}})
	}
	return uses
}

// checkIdentity checks the fields about identities.
func (r *ComponentReconciler[T]) checkIdentity() error {
	if account := r.DefaultServiceAccount; account != "" && len(k8svalidation.IsDNS1123Subdomain(account)) > 0 {
		return fmt.Errorf("ComponentReconciler %q must define a DefaultServiceAccount that is a name of a service "+
			"account, not %q", r.Name, account)
	}
	if len(k8svalidation.IsValidLabelValue(r.ClusterID)) > 0 {
		return fmt.Errorf("ComponentReconciler %q must define a ClusterID of at most 63 letters, digits, dashes, dots "+
			"and underscores, not %q", r.Name, r.ClusterID)
	}
	return nil
}

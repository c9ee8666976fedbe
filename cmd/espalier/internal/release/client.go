package release

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Cluster is a client of a cluster that knows releases. It stores each in its Secret, and passes anything else on.
type Cluster struct {
	client.Client
	discovery discovery.DiscoveryInterface
	// kept are left out of the inventory of a release that is read, and stay in the one that is stored.
	kept Kept
}

// keeping returns a client that does not show the records of objects.
func (c *Cluster) keeping(kept Kept) *Cluster {
	copied := *c
	copied.kept = kept
	return &copied
}

// NewCluster returns a client of the cluster of a config. Requests that have no context of their own, such as those
// that find out which types are served, end with ctx.
func NewCluster(ctx context.Context, config *rest.Config) (*Cluster, error) {
	types := runtime.NewScheme()
	if err := scheme.AddToScheme(types); err != nil {
		return nil, err
	}
	types.AddKnownTypeWithName(Kind, &Release{})
	limited := rest.CopyConfig(config)
	limited.Wrap(func(next http.RoundTripper) http.RoundTripper { return &bound{next, ctx} })
	d, err := discovery.NewDiscoveryClientForConfig(limited)
	if err != nil {
		return nil, err
	}
	httpClient, err := rest.HTTPClientFor(limited)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(limited, httpClient)
	if err != nil {
		return nil, err
	}
	// Its own requests have contexts, some of which last longer: a Lease is given back in the end.
	c, err := client.New(config, client.Options{Scheme: types, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	return &Cluster{Client: c, discovery: d}, nil
}

// config is what the engine works with.
func (c *Cluster) config() reconcilers.Config {
	return reconcilers.Config{Client: c, APIReader: c, Discovery: c.discovery}
}

// Get reads a release, or its metadata, from its Secret, and anything else as it is.
func (c *Cluster) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if metadata, ok := object.(*metav1.PartialObjectMetadata); ok && metadata.GroupVersionKind() == Kind {
		r := &Release{}
		err := c.Get(ctx, key, r)
		metadata.ObjectMeta = r.ObjectMeta
		return err
	}
	r, ok := object.(*Release)
	if !ok {
		return c.Client.Get(ctx, key, object, opts...)
	}
	secret := &corev1.Secret{}
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: secretName(key.Name)}, secret)
	if err != nil {
		return c.explain(err, key)
	}
	return c.read(r, secret)
}

// read reads a release as it is stored, without the records that are kept.
func (c *Cluster) read(r *Release, secret *corev1.Secret) error {
	err := r.fromSecret(secret)
	r.Status.Inventory, _ = c.kept.split(r)
	return err
}

// explain names the release in an error about its Secret.
func (c *Cluster) explain(err error, key client.ObjectKey) error {
	if apierrs.IsNotFound(err) {
		return &NotFoundError{Namespace: key.Namespace, Name: key.Name, Err: err}
	}
	return err
}

// NotFoundError says that there is no release of a name.
type NotFoundError struct {
	Namespace, Name string
	Err             error
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("there is no component %q in the namespace %s", e.Name, e.Namespace)
}

func (e *NotFoundError) Unwrap() error { return e.Err }

// Create stores a new release.
func (c *Cluster) Create(ctx context.Context, object client.Object, opts ...client.CreateOption) error {
	r, ok := object.(*Release)
	if !ok {
		return c.Client.Create(ctx, object, opts...)
	}
	secret, err := r.toSecret()
	if err != nil {
		return err
	}
	if err := c.Client.Create(ctx, secret, opts...); err != nil {
		return err
	}
	return c.read(r, secret)
}

// Patch patches the metadata of a release, such as its finalizers.
func (c *Cluster) Patch(
	ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	r, ok := object.(*Release)
	if !ok {
		return c.Client.Patch(ctx, object, patch, opts...)
	}
	data, err := patch.Data(r)
	if err != nil {
		return err
	}
	return c.patchSecret(ctx, r, client.RawPatch(patch.Type(), data))
}

// Delete begins the deletion of a release.
func (c *Cluster) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	r, ok := object.(*Release)
	if !ok {
		return c.Client.Delete(ctx, object, opts...)
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = r.Namespace, secretName(r.Name)
	return c.Client.Delete(ctx, secret, append(opts, client.Preconditions{ResourceVersion: &r.ResourceVersion})...)
}

// Update writes the spec of a release.
func (c *Cluster) Update(ctx context.Context, object client.Object, opts ...client.UpdateOption) error {
	r, ok := object.(*Release)
	if !ok {
		return c.Client.Update(ctx, object, opts...)
	}
	return c.store(ctx, r, keySpec, r.Spec)
}

// Status writes the status of a release.
func (c *Cluster) Status() client.SubResourceWriter { return &statusWriter{c.Client.Status(), c} }

type statusWriter struct {
	client.SubResourceWriter
	cluster *Cluster
}

func (w *statusWriter) Update(ctx context.Context, object client.Object, opts ...client.SubResourceUpdateOption) error {
	r, ok := object.(*Release)
	if !ok {
		return w.SubResourceWriter.Update(ctx, object, opts...)
	}
	status, err := w.cluster.withKept(ctx, r)
	if err != nil {
		return err
	}
	return w.cluster.store(ctx, r, keyStatus, status)
}

// withKept returns the status of a release with the records that are kept, as they are stored. If the release has
// changed since it was read, store refuses the status.
func (c *Cluster) withKept(ctx context.Context, r *Release) (apis.ComponentStatus, error) {
	status := r.Status
	if len(c.kept) == 0 {
		return status, nil
	}
	stored := &Release{}
	if err := c.keeping(nil).Get(ctx, client.ObjectKeyFromObject(r), stored); err != nil {
		return status, err
	}
	_, kept := c.kept.split(stored)
	status.Inventory = merged(status.Inventory, kept)
	return status, nil
}

// store writes one part of a release, unless the release has changed since it was read.
func (c *Cluster) store(ctx context.Context, r *Release, key string, value any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": r.ResourceVersion},
		"data":     map[string]any{key: base64.StdEncoding.EncodeToString(encoded)},
	})
	if err != nil {
		return err
	}
	return c.patchSecret(ctx, r, client.RawPatch(types.MergePatchType, patch))
}

func (c *Cluster) patchSecret(ctx context.Context, r *Release, patch client.Patch) error {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = r.Namespace, secretName(r.Name)
	if err := c.Client.Patch(ctx, secret, patch); err != nil {
		return c.explain(err, client.ObjectKeyFromObject(r))
	}
	return c.read(r, secret)
}

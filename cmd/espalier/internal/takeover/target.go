package takeover

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/espalier-dev/espalier/internal/component/clusters"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubeConfigKeys are the keys of a Secret with a kubeconfig, unless the component names one.
var kubeConfigKeys = []string{"value", "value.yaml", "value.yml"}

// findTarget finds the cluster that the component is deployed to, and what it is called there. A kubeconfig is read as
// our operators read it, so it runs no programs and reads no files.
func (r *Run) findTarget(ctx context.Context, c *component) error {
	c.client, c.owner = r.Client, ownerOf(r.Kind.GroupKind(), c, string(r.cluster), "")
	kubeConfig, found, _ := unstructured.NestedMap(c.Object, "spec", "kubeConfig")
	if !found || len(kubeConfig) == 0 {
		return nil
	}
	content, err := r.readKubeConfig(ctx, c, kubeConfig)
	if err != nil {
		return fmt.Errorf("the kubeconfig of the component: %w", err)
	}
	reached, err := r.clusters.Get(ctx, clusters.Identity{KubeConfig: content})
	if err != nil {
		return fmt.Errorf("the cluster of the component: %w", err)
	}
	r.reached[reached.ID] = func() { utilnet.CloseIdleConnectionsFor(reached.HTTPClient.Transport) }
	id := r.ClusterID
	if id == "" {
		id = string(r.cluster)
	}
	c.client, c.owner = reached.Client, ownerOf(r.Kind.GroupKind(), c, string(r.cluster), id)
	return nil
}

// readKubeConfig reads the kubeconfig that the spec of a component refers to.
func (r *Run) readKubeConfig(ctx context.Context, c *component, spec map[string]any) ([]byte, error) {
	var named struct {
		SecretRef struct {
			Name string `json:"name"`
			Key  string `json:"key"`
		} `json:"secretRef"`
	}
	text, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(text, &named)
	}
	if err != nil {
		return nil, fmt.Errorf("spec.kubeConfig names no Secret: %w", err)
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: c.GetNamespace(), Name: named.SecretRef.Name}
	if err := r.Client.Get(ctx, key, secret); err != nil {
		return nil, err
	}
	keys := kubeConfigKeys
	if named.SecretRef.Key != "" {
		keys = []string{named.SecretRef.Key}
	}
	for _, key := range keys {
		if content := secret.Data[key]; len(content) > 0 {
			return content, nil
		}
	}
	return nil, fmt.Errorf("the Secret %s has none of the keys %v", key, keys)
}

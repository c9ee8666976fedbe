package takeover

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cluster is a cluster whose objects are watched for changes.
type cluster struct {
	client.Client
	discovery  discovery.DiscoveryInterface
	kubeconfig string
	// versions are the resource versions of all objects when they were last read.
	versions map[object]string
}

func newCluster(t *testing.T, config *rest.Config) *cluster {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{Client: c, discovery: d, kubeconfig: writeKubeconfig(t, config)}
}

// unrelated are kinds that no operator writes as a part of a resource.
var unrelated = []string{"Event", "Lease", "Endpoints", "EndpointSlice", "APIService", "FlowSchema", "PriorityLevelConfiguration"}

// objects returns all objects of the cluster that operators may have written, but for those of the system.
func (c *cluster) objects(t *testing.T) []object {
	t.Helper()
	lists, err := c.discovery.ServerPreferredResources()
	if err != nil && len(lists) == 0 {
		t.Fatalf("the cluster does not say what it serves: %v", err)
	}
	c.versions = map[object]string{}
	var all []object
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || slices.Contains(unrelated, resource.Kind) {
				continue
			}
			var found metav1.PartialObjectMetadataList
			found.SetGroupVersionKind(gv.WithKind(resource.Kind + "List"))
			if err := c.List(t.Context(), &found); apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
				continue // its definition has just gone
			} else if err != nil {
				t.Fatalf("%s cannot be listed: %v", resource.Kind, err)
			}
			for _, item := range found.Items {
				if strings.HasPrefix(item.Namespace, "kube-") || strings.HasPrefix(item.Name, "kube-") {
					continue
				}
				o := object{resource.Kind, item.Namespace, item.Name, string(item.UID)}
				all, c.versions[o] = append(all, o), item.ResourceVersion
			}
		}
	}
	return all
}

// idleFor is how often in a row the objects are the same before they are taken to stay so.
const idleFor = 20

// untilIdle plays the part of the others in the cluster until nothing changes any more and the objects are as wanted,
// and returns the objects.
func (c *cluster) untilIdle(t *testing.T, who string, wanted func([]object) error) []object {
	t.Helper()
	var objects []object
	same := 0
	controlplanetest.Eventually(t, who+" are not done", func(context.Context) error {
		last := c.versions
		c.play(t)
		objects = c.objects(t)
		if same++; !maps.Equal(last, c.versions) {
			same = 0
		}
		if err := wanted(objects); err != nil {
			return err
		}
		if same < idleFor {
			return fmt.Errorf("there is what is wanted, and nothing has changed in the last %d of %d looks", same, idleFor)
		}
		return nil
	})
	return objects
}

// play does what controllers of Deployments, of indexes, of migrations and of dashboards do.
func (c *cluster) play(t *testing.T) {
	t.Helper()
	var deployments appsv1.DeploymentList
	if err := c.List(t.Context(), &deployments); err != nil {
		t.Fatal(err)
	}
	for i := range deployments.Items {
		c.rollOut(t, &deployments.Items[i])
	}
	c.fill(t, "demo-migration", "migrated", "1.1")
	c.fill(t, "demo-index", "endpoint", "http://index")
	c.showDashboard(t)
}

// fill sets a key of a ConfigMap, if the ConfigMap is there and has another value.
func (c *cluster) fill(t *testing.T, name, key, value string) {
	t.Helper()
	config := &corev1.ConfigMap{}
	err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, config)
	if err != nil || config.Data[key] == value {
		return
	}
	change := fmt.Sprintf(`{"data":{%q:%q}}`, key, value)
	c.ignoreGone(t, c.Patch(t.Context(), config, client.RawPatch("application/merge-patch+json", []byte(change))))
}

func (c *cluster) rollOut(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	replicas := *d.Spec.Replicas
	if d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == replicas {
		return
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas,
		AvailableReplicas: replicas,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: "True", Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: "True", Reason: "NewReplicaSetAvailable"},
		},
	}
	if err := c.Status().Update(t.Context(), d); !apierrors.IsConflict(err) {
		c.ignoreGone(t, err)
	}
}

// showDashboard gives the first dashboard the condition Ready, if it is there and does not have it.
func (c *cluster) showDashboard(t *testing.T) {
	t.Helper()
	dashboard := &unstructured.Unstructured{}
	dashboard.SetAPIVersion("observability.example.com/v1")
	dashboard.SetKind("Dashboard")
	err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "demo-overview"}, dashboard)
	if err != nil || dashboard.Object["status"] != nil {
		return
	}
	const shown = `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Shown","message":"",` +
		`"lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`
	c.ignoreGone(t, c.Status().Patch(t.Context(), dashboard, client.RawPatch("application/merge-patch+json", []byte(shown))))
}

func (c *cluster) ignoreGone(t *testing.T, err error) {
	t.Helper()
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

package monitoring

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	platformconfig "github.com/espalier-dev/espalier/examples/platform/config"
	platform "github.com/espalier-dev/espalier/examples/platform/controller"
	shopconfig "github.com/espalier-dev/espalier/examples/shop/config"
	shop "github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/examples/shop/registry"
	"github.com/espalier-dev/espalier/metrics"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/sharding"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// namespace is where the resources of the stories are.
const namespace = "default"

// registries has the registry of hosts of each world.
var registries simulation.External[hosts]

// hosts is a registry of hosts that takes its time.
type hosts struct {
	registry.Memory
	takes atomic.Int64
}

func (h *hosts) Register(ctx context.Context, owner, host string) error {
	time.Sleep(time.Duration(h.takes.Load()))
	return h.Memory.Register(ctx, owner, host)
}

// observer returns the observer of a new process.
func observer(ctx context.Context) (*metrics.Observer, error) {
	return metrics.New(metrics.Options{Registerer: targets.In(ctx).begin(), PerResource: true})
}

// shops returns options with the operator of the example shop.
func shops(t *testing.T) simulation.Options {
	t.Helper()
	return options(t, shop.NewScheme, shopconfig.CRD, func(ctx context.Context, mgr ctrl.Manager) error {
		observer, err := observer(ctx)
		if err != nil {
			return err
		}
		config := espalier.NewConfig(mgr).WithObserver(observer)
		return shop.New(config, registries.In(ctx), time.Minute).SetupWithManager(ctx, mgr)
	})
}

// looseShops returns options with the operator of the example shop, whose definition allows texts as numbers.
func looseShops(t *testing.T) simulation.Options {
	t.Helper()
	o, failures := shops(t), &reconcilers.WatchErrors{}
	loose := o.Definitions[0].DeepCopy()
	spec := loose.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	spec.Properties["replicas"] = apiextensionsv1.JSONSchemaProps{XIntOrString: true}
	o.Definitions = []*apiextensionsv1.CustomResourceDefinition{loose}
	o.Manager.Cache.DefaultWatchErrorHandler = failures.Handle
	o.Operator = func(ctx context.Context, mgr ctrl.Manager) error {
		observer, err := observer(ctx)
		if err != nil {
			return err
		}
		failures.Tell(observer)
		config := espalier.NewConfig(mgr).WithObserver(observer)
		return shop.New(config, registries.In(ctx), time.Minute).SetupWithManager(ctx, mgr)
	}
	return o
}

// shardOfShops is the shard label of a resource of the one shard of a ring. The stories play the sharder.
var shardOfShops = map[string]string{"shard.alpha.sharding.timebertt.dev/shops": "one"}

// shardedShops returns options with the operator of the example shop as a shard.
func shardedShops(t *testing.T) simulation.Options {
	t.Helper()
	o := shops(t)
	o.Operator, o.Manager.LeaderElectionNamespace = nil, namespace
	o.Prepare = func(ctx context.Context, config *rest.Config, options *ctrl.Options) (
		func(context.Context, ctrl.Manager) error, error,
	) {
		made := shop.New(reconcilers.Config{}, registries.In(ctx), time.Minute)
		shard, err := sharding.Ring{Name: "shops", Shard: "one"}.Join(config, options, made)
		return func(ctx context.Context, mgr ctrl.Manager) error {
			observer, err := observer(ctx)
			if err != nil {
				return err
			}
			mgr = shard.Manager(mgr)
			config := espalier.NewConfig(mgr).WithObserver(observer).WithShard(shard)
			return shop.New(config, registries.In(ctx), time.Minute).SetupWithManager(ctx, mgr)
		}, err
	}
	return o
}

// platforms returns options with the operator of the example platform.
func platforms(t *testing.T) simulation.Options {
	t.Helper()
	o := options(t, platform.NewScheme, platformconfig.CRD, func(ctx context.Context, mgr ctrl.Manager) error {
		observer, err := observer(ctx)
		if err != nil {
			return err
		}
		config := reconcilers.NewConfig(mgr, &v1alpha1.Platform{}, 10*time.Hour).WithObserver(observer)
		return platform.New(config).SetupWithManager(ctx, mgr)
	})
	// A platform brings a type along.
	o.ChangingDefinitions = true
	return o
}

func options(
	t *testing.T, newScheme func() (*runtime.Scheme, error),
	crd func() (*apiextensionsv1.CustomResourceDefinition, error), operator func(context.Context, ctrl.Manager) error,
) simulation.Options {
	t.Helper()
	scheme, err := newScheme()
	definition, crdErr := crd()
	if err := errors.Join(err, crdErr); err != nil {
		t.Fatal(err)
	}
	return simulation.Options{
		Operator: operator, Scheme: scheme, Definitions: []*apiextensionsv1.CustomResourceDefinition{definition},
	}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }

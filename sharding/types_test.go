package sharding_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/sharding"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// root is the root of the type with nodes.
func root[T client.Object](nodes ...reconcilers.SubReconciler[T]) reconcilers.Describer {
	return espalier.For(reconcilers.Config{}, nodes...)
}

func owns[T, CT client.Object](name string) reconcilers.SubReconciler[T] {
	return espalier.Owns(name, func(context.Context, T) (none CT, err error) { return none, nil })
}

func reads[T client.Object](name string, obj client.Object) reconcilers.SubReconciler[T] {
	return &reconcilers.SyncReconciler[T]{
		Name: name, Sync: func(context.Context, T) error { return nil },
		Uses: []reconcilers.Access{{Object: obj, Verbs: []string{"get", "list", "watch"}}},
	}
}

type (
	widget     = *resources.Widget
	configMap  = *corev1.ConfigMap
	deployment = *appsv1.Deployment
)

func elsewhere(node reconcilers.SubReconciler[widget]) reconcilers.SubReconciler[widget] {
	return &reconcilers.WithConfig[widget]{
		Config:     func(_ context.Context, c reconcilers.Config) (reconcilers.Config, error) { return c, nil },
		Reconciler: node,
	}
}

func unowned(name string) reconcilers.SubReconciler[widget] {
	return espalier.Owns(name, func(context.Context, widget) (configMap, error) { return nil, nil }).AnyNamespace()
}

// namespaced says which kinds of the tests are namespaced. It does not know the others.
func namespaced() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(resources.GroupVersion.WithKind("Widget"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	return mapper
}

// join joins a ring with roots, and returns the options of the cache that the manager would have.
func join(options ctrl.Options, roots ...reconcilers.Describer) (seen cache.Options, err error) {
	options.Scheme, options.LeaderElectionNamespace = resources.NewScheme(), "ns"
	options.NewCache = func(_ *rest.Config, o cache.Options) (cache.Cache, error) {
		seen = o
		return nil, nil
	}
	config := &rest.Config{Host: "http://127.0.0.1:0"}
	if _, err := (sharding.Ring{Name: ring, Shard: "one"}).Join(config, &options, roots...); err != nil {
		return seen, err
	}
	// A manager completes the options of the cache.
	given := options.Cache
	given.Scheme, given.Mapper = options.Scheme, namespaced()
	_, err = options.NewCache(config, given)
	return seen, err
}

// selectors returns the label selectors of the kinds in the options of a cache, by the namespaces that have their own.
func selectors(t *testing.T, options cache.Options) map[string]string {
	t.Helper()
	found := map[string]string{}
	text := func(s labels.Selector) string { return strings.ReplaceAll(s.String(), shardLabel, "shard") }
	for obj, by := range options.ByObject {
		kind, err := apiutil.GVKForObject(obj, options.Scheme)
		if err != nil {
			t.Fatal(err)
		}
		found[kind.Kind] = text(by.Label)
		for namespace, config := range by.Namespaces {
			found[kind.Kind+" in "+namespace] = text(config.LabelSelector)
		}
	}
	return found
}

func TestTheCacheHasTheObjectsOfTheShardOfWhatTheRootsOwnAlone(t *testing.T) {
	const ours = "shard=one"
	selecting := func(label string) labels.Selector { return labels.SelectorFromSet(labels.Set{label: "x"}) }
	for name, test := range map[string]struct {
		options ctrl.Options
		roots   []reconcilers.Describer
		want    map[string]string
	}{
		"main and owned": {
			roots: []reconcilers.Describer{root(owns[widget, configMap]("A"), reads[widget]("B", &corev1.Secret{}))},
			want:  map[string]string{"Widget": ours, "ConfigMap": ours},
		},
		"owned and read by another node": {
			roots: []reconcilers.Describer{root(owns[widget, configMap]("A"), reads[widget]("B", &corev1.ConfigMap{}))},
			want:  map[string]string{"Widget": ours},
		},
		"owned, and without an owner reference": {
			roots: []reconcilers.Describer{root(owns[widget, configMap]("A"), unowned("B"))},
			want:  map[string]string{"Widget": ours},
		},
		"owned, and in what may be another cluster": {
			roots: []reconcilers.Describer{root(owns[widget, configMap]("A"), elsewhere(owns[widget, configMap]("B")))},
			want:  map[string]string{"Widget": ours},
		},
		"main, and read in what may be another cluster": {
			roots: []reconcilers.Describer{root(elsewhere(reads[widget]("B", &resources.Widget{})))},
			want:  map[string]string{"Widget": ours},
		},
		"owned, and not served or cluster-scoped": {
			roots: []reconcilers.Describer{root(owns[widget, deployment]("A"), owns[widget, *rbacv1.ClusterRole]("B"))},
			want:  map[string]string{"Widget": ours},
		},
		"with selectors of the author": {
			options: ctrl.Options{Cache: cache.Options{
				DefaultLabelSelector: selecting("default"),
				ByObject:             map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Label: selecting("author")}},
			}},
			roots: []reconcilers.Describer{root(owns[widget, configMap]("A"))},
			want:  map[string]string{"Widget": "default=x,shard=one", "ConfigMap": "author=x,shard=one"},
		},
		"with namespaces of the author": {
			options: ctrl.Options{Cache: cache.Options{
				DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {LabelSelector: selecting("b")}},
				ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {
					Label: selecting("author"), Namespaces: map[string]cache.Config{"c": {}, "d": {LabelSelector: selecting("d")}},
				}},
			}},
			roots: []reconcilers.Describer{root(owns[widget, configMap]("A"))},
			want: map[string]string{
				"Widget": ours, "Widget in a": ours, "Widget in b": "b=x,shard=one",
				"ConfigMap": "author=x,shard=one", "ConfigMap in c": "author=x,shard=one", "ConfigMap in d": "d=x,shard=one",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := join(test.options, test.roots...)
			if err != nil {
				t.Fatal(err)
			}
			if got := selectors(t, options); fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("the selectors are\n%v, want\n%v", got, test.want)
			}
		})
	}
}

func TestWhatCannotBeShardedIsRefused(t *testing.T) {
	aggregate := &reconcilers.AggregateReconciler[configMap]{Name: "Summary"}
	embedded := reconcilers.Embed[widget](reconcilers.Config{}, owns[widget, configMap]("A"))
	other := root(owns[widget, configMap]("A")).(*reconcilers.ResourceReconciler[widget])
	other.Name = "Other"
	for name, test := range map[string]struct {
		roots []reconcilers.Describer
		want  []string
	}{
		"no root":                {want: []string{"there is no root"}},
		"one object":             {roots: []reconcilers.Describer{aggregate}, want: []string{`"Summary"`, "each shard would write"}},
		"hand-written":           {roots: []reconcilers.Describer{embedded}, want: []string{`"Embedded"`, "give resources back"}},
		"cluster-scoped":         {roots: []reconcilers.Describer{root[*corev1.Namespace]()}, want: []string{`"Namespace"`, "cluster-scoped"}},
		"two for one":            {roots: []reconcilers.Describer{root[widget](), other}, want: []string{`"Widget"`, `"Other"`, "both reconcile"}},
		"one owns another":       {roots: []reconcilers.Describer{root[configMap](), root(owns[widget, configMap]("A"))}, want: []string{`"ConfigMap"`, `"A"`, "place each object twice"}},
		"one reads another":      {roots: []reconcilers.Describer{root[configMap](), root(reads[widget]("A", &corev1.ConfigMap{}))}, want: []string{`"ConfigMap"`, `"A"`, "reads the type"}},
		"one reads its siblings": {roots: []reconcilers.Describer{root(reads[widget]("A", &resources.Widget{}))}, want: []string{`"Widget"`, `"A"`, "reads the type"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := join(ctrl.Options{}, test.roots...)
			if err == nil {
				t.Fatalf("it joins the ring, want an error with %q", test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want that it has %q", err, want)
				}
			}
		})
	}
}

// The cache is made for the tree that was given to Join.
func TestATreeThatHasNotJoinedIsRefused(t *testing.T) {
	joined := func() []node {
		return []node{owns[widget, configMap]("A"), owns[widget, deployment]("B"), reads[widget]("C", &corev1.Secret{})}
	}
	for name, test := range map[string]struct {
		nodes []node
		want  []string
	}{
		"the same tree":      {nodes: joined()},
		"with another node":  {nodes: append(joined(), reads[widget]("D", &corev1.Secret{}))},
		"owns more":          {append(joined(), owns[widget, *corev1.Service]("D")), []string{`"D"`, "owns Service now"}},
		"owns less":          {joined()[1:], []string{"no node owns ConfigMap any more"}},
		"reads what it owns": {append(joined(), reads[widget]("D", &corev1.ConfigMap{})), []string{`"D"`, "reads ConfigMap now"}},
		"reads less":         {joined()[:2], []string{"no node reads Secret any more"}},
		"in another cluster": {append(joined(), elsewhere(owns[widget, configMap]("D"))), []string{`"D"`, "of its own, ConfigMap now"}},
		"reads its own type": {append(joined(), reads[widget]("D", &resources.Widget{})), []string{`"D"`, "reads the type"}},
	} {
		t.Run(name, func(t *testing.T) {
			options := ctrl.Options{
				Scheme: resources.NewScheme(), LeaderElectionNamespace: "ns", Metrics: metricsserver.Options{BindAddress: "0"},
				MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return namespaced(), nil },
			}
			options.Controller.SkipNameValidation = new(true)
			config := &rest.Config{Host: "http://127.0.0.1:0"}
			shard, err := sharding.Ring{Name: ring, Shard: "one"}.Join(config, &options, root(joined()...))
			if err != nil {
				t.Fatal(err)
			}
			mgr, err := ctrl.NewManager(config, options)
			if err != nil {
				t.Fatal(err)
			}
			mgr = shard.Manager(mgr)
			err = espalier.For(espalier.NewConfig(mgr).WithShard(shard), test.nodes...).SetupWithManager(t.Context(), mgr)
			switch {
			case test.want == nil && err != nil:
				t.Errorf("the set-up gives the error %v, want none", err)
			case test.want != nil && err == nil:
				t.Errorf("the set-up gives no error, want one with %q", test.want)
			}
			for _, want := range test.want {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want that it has %q", err, want)
				}
			}
		})
	}
}

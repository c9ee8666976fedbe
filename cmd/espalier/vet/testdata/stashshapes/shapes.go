// Package stashshapes has shapes that stash was not written from.
package stashshapes

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
)

type node = reconcilers.SubReconciler[*v1.Shop]

// A variable that a helper reads.
var host = stash.New[string]("shop.example.com/host")

func hostOf(ctx context.Context) string {
	return host.RetrieveOrEmpty(ctx) // want `.`
}

var runs = espalier.Runs("Host", func(ctx context.Context, _ *v1.Shop) error {
	println(hostOf(ctx))
	return nil
})

// A stasher that is made where it is needed.
func made(ctx context.Context, _ *v1.Shop) error {
	value, err := stash.New[int]("shop.example.com/made").RetrieveOrError(ctx) // want `.`
	println(value)
	return err
}

var madeNode = espalier.Runs("Made", made)

// The functions without types, with a constant.
const key stash.Key = "shop.example.com/untyped"

func untyped(ctx context.Context, _ *v1.Shop) error {
	n, _ := stash.RetrieveValue(ctx, key).(int) // want `.`
	println(n)
	return nil
}

var untypedNode = espalier.Runs("Untyped", untyped)

// Fields of a struct of the package.
var values = struct {
	image, tag stash.Stasher[string]
}{
	image: stash.New[string]("shop.example.com/image"),
	tag:   stash.New[string]("shop.example.com/tag"),
}

func image(ctx context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name},
		Data: map[string]string{
			"image": values.image.RetrieveOrDie(ctx), // want `.`
			"tag":   values.tag.RetrieveOrEmpty(ctx),
		},
	}, nil
}

var imageNode = espalier.Steps[*v1.Shop](
	espalier.Runs("Tag", func(ctx context.Context, shop *v1.Shop) error {
		values.tag.Store(ctx, shop.Spec.Image)
		return nil
	}),
	espalier.Owns("Image", image),
)

// The old name of the constructor.
var quota = reconcilers.NewStasher[*corev1.ResourceQuota]("shop.example.com/quota")

type limits struct{}

func (limits) limited(ctx context.Context, _ *v1.Shop) bool {
	return quota.RetrieveOrEmpty(ctx) != nil // want `.`
}

func (l limits) node(inner node) node {
	return &reconcilers.IfThen[*v1.Shop]{If: l.limited, Then: inner}
}

// A method value, which is called elsewhere.
var sum = stash.New[string]("shop.example.com/sum")

func read(ctx context.Context, get func(context.Context) string) string { return get(ctx) }

var summing = espalier.Runs("Sum", func(ctx context.Context, _ *v1.Shop) error {
	println(read(ctx, sum.RetrieveOrDie)) // want `.`
	return nil
})

// Two keys that differ in a letter.
var (
	stored = stash.New[string]("shop.example.com/settings")
	wanted = stash.New[string]("shop.example.com/setting")
)

var misspelt = espalier.Steps[*v1.Shop](
	espalier.Runs("Store", func(ctx context.Context, _ *v1.Shop) error {
		stored.Store(ctx, "a")
		return nil
	}),
	espalier.Runs("Read", func(ctx context.Context, _ *v1.Shop) error {
		println(wanted.RetrieveOrDie(ctx)) // want `.`
		return nil
	}),
)

// Only the test stores it.
var tested = stash.New[string]("shop.example.com/tested")

var testedNode = espalier.Runs("Tested", func(ctx context.Context, _ *v1.Shop) error {
	println(tested.RetrieveOrDie(ctx)) // want `.`
	return nil
})

// An alias of the variable.
var plan = stash.New[string]("shop.example.com/plan")

var planNode = espalier.Runs("Plan", func(ctx context.Context, _ *v1.Shop) error {
	p := plan
	println(p.RetrieveOrEmpty(ctx)) // want `.`
	return nil
})

// Near misses.

// The short form stores it.
var (
	settings = stash.New[*corev1.ConfigMap]("shop.example.com/config")
	address  = stash.New[string]("shop.example.com/address")
)

var short = espalier.Steps[*v1.Shop](
	espalier.Reads("Settings", settings, func(_ context.Context, shop *v1.Shop) types.NamespacedName {
		return types.NamespacedName{Namespace: shop.Namespace, Name: shop.Spec.Settings}
	}),
	espalier.Yield(
		espalier.Owns("Service", func(_ context.Context, shop *v1.Shop) (*corev1.Service, error) {
			return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}, nil
		}),
		address, func(live *corev1.Service) (string, error) { return live.Spec.ClusterIP, nil },
	),
	espalier.Runs("Use", func(ctx context.Context, _ *v1.Shop) error {
		println(settings.RetrieveOrDie(ctx).Name, address.RetrieveOrEmpty(ctx))
		return nil
	}),
)

// A helper stores it, through a parameter, and so does a method value.
var (
	helped = stash.New[string]("shop.example.com/helped")
	put    = stash.New[string]("shop.example.com/put")
)

func store[T any](ctx context.Context, into stash.Stasher[T], value T) { into.Store(ctx, value) }

var helpedNode = espalier.Runs("Helped", func(ctx context.Context, shop *v1.Shop) error {
	store(ctx, helped, shop.Name)
	keep := put.Store
	keep(ctx, shop.Name)
	println(helped.RetrieveOrDie(ctx), put.RetrieveOrDie(ctx))
	return nil
})

// Two stashers of one key, and a key that is stored without a type.
var (
	writer = stash.New[string]("shop.example.com/both")
	reader = stash.New[string]("shop.example.com/both")
	raw    = stash.New[string]("shop.example.com/raw")
)

var both = espalier.Runs("Both", func(ctx context.Context, shop *v1.Shop) error {
	writer.Store(ctx, shop.Name)
	stash.StoreValue(ctx, raw.Key(), shop.Name)
	println(reader.RetrieveOrDie(ctx), raw.RetrieveOrDie(ctx))
	return nil
})

// Others know the key: an exported variable, an exported function, a key of another package.
var Exported = stash.New[string]("shop.example.com/exported")

var hidden = stash.New[string]("shop.example.com/hidden")

// Hidden returns it.
func Hidden() stash.Stasher[string] { return hidden }

var foreign = stash.New[string](stash.Key(os.Getenv("STASH_KEY")))

type item struct{}

var known = espalier.Runs("Known", func(ctx context.Context, _ *v1.Shop) error {
	println(Exported.RetrieveOrDie(ctx), hidden.RetrieveOrDie(ctx), foreign.RetrieveOrEmpty(ctx))
	_ = reconcilers.CursorStasher[item]().RetrieveOrDie(ctx)
	return nil
})

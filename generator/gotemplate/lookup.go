package gotemplate

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
)

// Lookup says what a template looked up.
type Lookup struct {
	// APIVersion and Kind are those of the object or of the objects.
	APIVersion, Kind string
	// Namespace is where they are. It is empty for objects without namespace, and for a list of all namespaces.
	Namespace string
	// Name is that of the object. If it is empty, the objects were listed.
	Name string
	// Selector is the label selector of a list. If it is empty, all objects were listed.
	Selector string
	// Local is true for the cluster of the component's resource, and false for the one that it is deployed to.
	Local bool
}

// String names what was looked up. It shows nothing of what was found.
func (l Lookup) String() string {
	what := strings.TrimSpace(l.APIVersion + " " + l.Kind)
	if l.Name == "" {
		what = "list of " + what
	} else {
		what += " " + l.Name
	}
	if l.Namespace != "" {
		what += " in namespace " + l.Namespace
	}
	return what
}

// read returns what is there: an object, or a list in the order of the names. Nothing is nil without an error.
func (l Lookup) read(ctx context.Context) (map[string]any, error) {
	clientFrom := generator.ClientFromContext
	if l.Local {
		clientFrom = generator.LocalClientFromContext
	}
	from, err := clientFrom(ctx)
	if err != nil {
		return nil, err
	}
	if l.Name != "" {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(l.APIVersion)
		object.SetKind(l.Kind)
		err := from.Get(ctx, client.ObjectKey{Namespace: l.Namespace, Name: l.Name}, object)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("unable to look up %s: %w", l, err)
		}
		return object.Object, nil
	}
	selector, err := labels.Parse(l.Selector)
	if err != nil {
		return nil, fmt.Errorf("unable to look up %s: label selector: %w", l, err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(l.APIVersion)
	list.SetKind(l.Kind + "List")
	options := &client.ListOptions{Namespace: l.Namespace, LabelSelector: selector}
	if err := from.List(ctx, list, options); err != nil {
		return nil, fmt.Errorf("unable to look up %s: %w", l, err)
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	// The metadata of a list change whenever anything in the cluster changes.
	return map[string]any{
		"apiVersion": l.APIVersion, "kind": l.Kind + "List", "metadata": map[string]any{},
		"items": itemsOf(list),
	}, nil
}

func itemsOf(list *unstructured.UnstructuredList) []any {
	items := make([]any, 0, len(list.Items))
	for _, item := range list.Items {
		items = append(items, item.Object)
	}
	return items
}

// Lookups records what templates looked up, and finds out later whether the answers are still the same. It serves to
// implement [generator.InputReporter]:
//
//   - For each execution, make a Lookups, and call [Functions] or [Set.Execute] with the context that [WithLookups]
//     returns. Keep the Lookups for the component, instead of the one of the execution before.
//   - In Inputs, return what Identity of that Lookups returns.
//
// It keeps nothing of what was found. The zero value is empty. Identity of a nil one is that of an empty one. It is
// safe for concurrent use, and must not be copied.
type Lookups struct {
	mu   sync.Mutex
	made map[Lookup]struct{}
}

// Add records a lookup. Functions of this package do that by themselves. A nil receiver records nothing.
func (l *Lookups) Add(lookup Lookup) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made == nil {
		l.made = map[Lookup]struct{}{}
	}
	l.made[lookup] = struct{}{}
}

// List returns the different lookups, sorted.
func (l *Lookups) List() []Lookup {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Keys(l.made), func(a, b Lookup) int {
		local := map[bool]int{true: 1}
		return cmp.Or(
			cmp.Compare(local[a.Local], local[b.Local]), cmp.Compare(a.APIVersion, b.APIVersion),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Selector, b.Selector))
	})
}

// Identity repeats the lookups with the clients of ctx, and returns a hash of them and their answers. It makes one
// request for each lookup, and none if there are no lookups. The hash has a random key, so nothing can be guessed from
// it, and it is another one in each process.
//
// Keep it in memory only. An error of a lookup is one of Identity.
func (l *Lookups) Identity(ctx context.Context) (string, error) {
	h := hmac.New(sha256.New, identityKey())
	for _, lookup := range l.List() {
		found, err := lookup.read(ctx)
		if err != nil {
			return "", err
		}
		if err := hashOf(h, lookup, found); err != nil {
			return "", fmt.Errorf("%s cannot be written as JSON", lookup)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashOf adds values as lines of JSON, which sorts maps.
func hashOf(h hash.Hash, values ...any) error {
	encoder := json.NewEncoder(h)
	for _, value := range values {
		if err := encoder.Encode(value); err != nil {
			return err
		}
	}
	return nil
}

// identityKey stays the same while the process runs.
var identityKey = sync.OnceValue(func() []byte {
	key := make([]byte, sha256.Size)
	// It never fails.
	_, _ = rand.Read(key)
	return key
})

type lookupsKey struct{}

// WithLookups returns a context whose [Functions] record in lookups what they look up.
func WithLookups(ctx context.Context, lookups *Lookups) context.Context {
	return context.WithValue(ctx, lookupsKey{}, lookups)
}

// recorded reads, and records that in the Lookups of the context.
func (l Lookup) recorded(ctx context.Context) (map[string]any, error) {
	lookups, _ := ctx.Value(lookupsKey{}).(*Lookups)
	lookups.Add(l)
	return l.read(ctx)
}

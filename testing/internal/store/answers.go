package store

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// answers remembers what the API server answered readers, so that who reads again, or in another fork, needs no
// request. An answer depends on what is stored, on the definition of the kind, and on the question, and on nothing
// else. Most reads of a row are such repetitions: each replay reads what the one before has read.
type answers struct {
	mu    sync.Mutex
	known map[question][]answer
}

// maxQuestions are kept, and maxAnswers to each: what the last forks have stored.
const maxQuestions, maxAnswers = 4096, 4

// question is what a reader asks for.
type question struct {
	scheme *runtime.Scheme
	kind   schema.GroupVersionKind
	// goType is that of the object, or of the list of Go types in which it is an item.
	goType reflect.Type
	// key is that of the object in the storage, or, for a list without its items, what their keys begin with.
	key string
}

// answer is what a reader got for what was stored: an object, a list without items, or an error.
type answer struct {
	entry, definition *storage.Entry
	object            runtime.Object
	err               *apierrors.StatusError
}

// find returns the answer to a question about an entry. Its object must not be changed.
func (a *answers) find(q question, entry, definition *storage.Entry) (answer, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, known := range slices.Backward(a.known[q]) {
		if known.definition == definition && known.entry.Same(entry) {
			return known, true
		}
	}
	return answer{}, false
}

func (a *answers) add(q question, given answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil || len(a.known) >= maxQuestions {
		a.known = map[question][]answer{}
	}
	known := a.known[q]
	if len(known) >= maxAnswers {
		known = known[1:]
	}
	a.known[q] = append(slices.Clip(known), given)
}

// question returns the question for an object, or for a list whose keys begin with a key.
func (c *Client) question(r request, of runtime.Object, key string) question {
	return question{scheme: c.options.Scheme, kind: r.Kind, goType: reflect.TypeOf(of), key: key}
}

// itemQuestion returns the question for an item of a list. An unstructured item is what a reader of the object gets:
// the list gives it its kind. A Go type may have no kind in a list.
func (c *Client) itemQuestion(r request, list client.ObjectList, key string) question {
	if _, ok := list.(*unstructured.UnstructuredList); ok {
		return c.question(r, &unstructured.Unstructured{}, key)
	}
	return c.question(r, list, key)
}

// answers returns what is known of the kinds of the store, which forks share.
func (s *Store) answers() *answers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &s.served.catalog.answers
}

// definition returns the definition of a kind, nil if it has none.
func (s *Store) definition(of *server.Kind) *storage.Entry {
	return s.kept.Entry(server.DefinitionsPrefix + of.Resource + "." + of.Group)
}

// isPath reports whether the names of a request can be part of a key. If not, the API server says what is wrong.
func (r request) isPath() bool {
	return r.kind != nil && len(content.IsPathSegmentName(r.Name)) == 0 &&
		len(content.IsPathSegmentName(r.Namespace)) == 0
}

// get reads an object.
func (c *Client) get(
	ctx context.Context, r request, remote client.WithWatch, found client.Object, opts ...client.GetOption,
) error {
	name := client.ObjectKey{Namespace: r.Namespace, Name: r.Name}
	if !r.isPath() || r.Name == "" || len(opts) > 0 || r.kind.IsNamespaced() && r.Namespace == "" {
		return remote.Get(ctx, name, found, opts...)
	}
	kept, key, definition := c.store.kept, r.kind.Key(r.Namespace, r.Name), c.store.definition(r.kind)
	see := func() *storage.Entry {
		if seen := kept.Seen(ctx, r.kind.Prefix, key); len(seen) > 0 {
			return seen[0]
		}
		return nil
	}
	entry, q := see(), c.question(r, found, key)
	if known, ok := c.store.answers().find(q, entry, definition); ok {
		if known.err != nil {
			return &apierrors.StatusError{ErrStatus: *known.err.ErrStatus.DeepCopy()}
		}
		fillWith(found, known.object.DeepCopyObject())
		return nil
	}
	err := remote.Get(ctx, name, found)
	if now := see(); now != entry {
		return err // Somebody has written meanwhile.
	}
	status, isStatus := err.(*apierrors.StatusError)
	switch {
	case err == nil && entry != nil:
		if kept := found.DeepCopyObject(); reflect.TypeOf(kept) == q.goType {
			c.store.answers().add(q, answer{entry: entry, definition: definition, object: kept})
		}
	case isStatus && entry == nil && apierrors.IsNotFound(err):
		kept := &apierrors.StatusError{ErrStatus: *status.ErrStatus.DeepCopy()}
		c.store.answers().add(q, answer{definition: definition, err: kept})
	}
	return err
}

// list lists a namespace, or all for an empty one, and what labels select; nil selects all. A limit other than 0 has it
// list the first page.
func (c *Client) list(
	ctx context.Context, r request, remote client.WithWatch, list client.ObjectList, selector labels.Selector,
	limit int64,
) error {
	all := &client.ListOptions{Namespace: r.Namespace, LabelSelector: selector, Limit: limit}
	if !r.isPath() {
		return remote.List(ctx, list, all)
	}
	kept, prefix, definition := c.store.kept, r.kind.Key(r.Namespace, ""), c.store.definition(r.kind)
	entries, revision := kept.Seen(ctx, r.kind.Prefix, prefix), kept.Revision()
	if limit != 0 && int64(len(entries)) > limit {
		return remote.List(ctx, list, all)
	}
	if c.knownList(r, list, prefix, entries, definition, revision) {
		return selectItems(list, selector)
	}
	all.LabelSelector = nil
	if err := remote.List(ctx, list, all); err != nil {
		return err
	}
	if slices.Equal(kept.Seen(ctx, r.kind.Prefix, prefix), entries) {
		c.rememberList(r, list, prefix, entries, definition)
	}
	return selectItems(list, selector)
}

// knownList fills a list with what is known of entries, and reports whether all is known.
func (c *Client) knownList(
	r request, list client.ObjectList, prefix string, entries []*storage.Entry, definition *storage.Entry,
	revision int64,
) bool {
	envelope, ok := c.store.answers().find(c.question(r, list, prefix), nil, definition)
	if !ok {
		return false
	}
	items := make([]runtime.Object, len(entries))
	for i, e := range entries {
		item, ok := c.store.answers().find(c.itemQuestion(r, list, e.Key), e, definition)
		if !ok {
			return false
		}
		items[i] = item.object.DeepCopyObject()
	}
	fillWith(list, envelope.object.DeepCopyObject())
	if len(items) > 0 && meta.SetList(list, items) != nil {
		return false
	}
	list.SetResourceVersion(strconv.FormatInt(revision, 10))
	return true
}

// rememberList notes the answers to a list of entries, unless it has other items.
func (c *Client) rememberList(
	r request, list client.ObjectList, prefix string, entries []*storage.Entry, definition *storage.Entry,
) {
	items, err := meta.ExtractList(list)
	if err != nil || len(items) != len(entries) {
		return
	}
	for i, obj := range items {
		item, ok := obj.(client.Object)
		if !ok || r.kind.Key(item.GetNamespace(), item.GetName()) != entries[i].Key {
			return
		}
	}
	for i, item := range items {
		q := c.itemQuestion(r, list, entries[i].Key)
		if _, ok := c.store.answers().find(q, entries[i], definition); !ok {
			c.store.answers().add(q, answer{entry: entries[i], definition: definition, object: item.DeepCopyObject()})
		}
	}
	envelope := empty(list)
	fillWith(envelope, list)
	emptyItems(envelope)
	without := answer{definition: definition, object: envelope.DeepCopyObject()}
	c.store.answers().add(c.question(r, list, prefix), without)
}

// rememberWritten notes the answer to a write, which is what a reader gets now. A Go type may have kept fields of what
// was sent, and a given object is shown as it was given.
func (c *Client) rememberWritten(r request, obj runtime.Object) {
	written, ok := obj.(*unstructured.Unstructured)
	entry := c.entry(r)
	if !ok || r.DryRun || r.Subresource != "" || entry == nil || entry.Given || entry.Show != nil ||
		strconv.FormatInt(entry.Revision, 10) != written.GetResourceVersion() {
		return
	}
	kept := answer{entry: entry, definition: c.store.definition(r.kind), object: written.DeepCopy()}
	c.store.answers().add(c.question(r, written, entry.Key), kept)
}

// selectItems leaves what labels select in a list; nil selects all.
func selectItems(list client.ObjectList, selector labels.Selector) error {
	if selector == nil || selector.Empty() {
		return nil
	}
	return keepItems(list, 0, func(item client.Object) bool {
		return selector.Matches(labels.Set(item.GetLabels()))
	})
}

// isPlain reports whether a list is of a namespace and of labels alone, from the beginning.
func isPlain(options *client.ListOptions) bool {
	return options.FieldSelector == nil && options.Raw == nil && options.Continue == "" &&
		options.UnsafeDisableDeepCopy == nil
}

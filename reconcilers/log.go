package reconcilers

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/resourcestate"

	"github.com/go-logr/logr"
	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The log of a request has these lines:
//
//   - Each change of an object is one line: what was done and the object. That of a create, a delete or a finalizer has
//     a reason. A request that changes nothing logs nothing.
//   - Objects and their differences are logged from verbosity 2 on.
//   - A returned error is not logged, because the controller logs what a root returns. An error that is reflected on
//     the resource is one line without a stack trace, which is not repeated while the error stays the same.
const detailed = 2

// maxLogged limits how many fields a text names.
const maxLogged = 5

// noteWrite logs what was done to an object, and tells observers of it. Done is the word in the log. The reason is
// empty if what differs says it all, which is logged by the verbosity of details.
func noteWrite(ctx context.Context, done string, write written, reason string) {
	if log := logr.FromContextOrDiscard(ctx); log.Enabled() {
		values := append([]any{"object", describeObject(write.object)}, write.details...)
		if reason != "" {
			values = append(values, "reason", reason)
		}
		log.Info(done, values...)
	}
	if IsObserved(ctx) {
		Note(ctx, write.fact(ctx, reason, nil))
	}
}

// noteFailure tells observers of a write that failed. The error itself is logged by the controller, or shown.
func noteFailure(ctx context.Context, write written, err error) {
	if IsObserved(ctx) {
		Note(ctx, write.fact(ctx, "", err))
	}
}

// written is a write of an object.
type written struct {
	verb, subresource string
	object            client.Object
	// details are more keys and values for the log.
	details []any
}

func (w written) fact(ctx context.Context, reason string, err error) Write {
	return Write{
		Object: refOf(contextOf(ctx).config.Client, w.object), Subresource: w.subresource, Verb: w.verb,
		Reason: reason, Err: err,
	}
}

// differentFields returns the sorted paths of the fields in which two objects differ; none if they are not known.
func differentFields(before, after client.Object) []string {
	from, fromErr := json.Marshal(before)
	to, toErr := json.Marshal(after)
	operations, err := jsonpatch.CreatePatch(from, to)
	if fromErr != nil || toErr != nil || err != nil {
		return nil
	}
	return fieldsOf(operations)
}

// fieldsOf returns the sorted paths of the fields that a patch changes.
func fieldsOf(operations []jsonpatch.Operation) []string {
	var fields []string
	for _, operation := range operations {
		fields = append(fields, operation.Path)
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// logOnce logs a fact about object, unless the request before logged the same.
func logOnce(ctx context.Context, fact, object, reason string) {
	logged := resourcestate.LoadOrNew[loggedFacts](stateOf(ctx), loggedFactsKey{})
	if !logged.isNew(loggedFact{path: RetrievePath(ctx), fact: fact, object: object}, reason) {
		return
	}
	logr.FromContextOrDiscard(ctx).Info(fact, "object", object, "reason", reason)
}

type loggedFactsKey struct{}

type loggedFact struct{ path, fact, object string }

// loggedFacts are the facts about one resource that this request and the one before logged, with their reasons.
type loggedFacts struct {
	mu         sync.Mutex
	this, last map[loggedFact]string
}

var _ resourcestate.Evictor = (*loggedFacts)(nil)

func (l *loggedFacts) isNew(fact loggedFact, reason string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.this == nil {
		l.this = map[loggedFact]string{}
	}
	l.this[fact] = reason
	last, known := l.last[fact]
	return !known || last != reason
}

// Evict implements [resourcestate.Evictor].
func (l *loggedFacts) Evict(time.Time) (empty bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.this, l.last = nil, l.this
	return len(l.last) == 0
}

// withheld replaces the values of a Secret in logs.
const withheld = "(withheld)"

// sanitize returns the part of obj that may be logged: the result of the author's function for a copy of obj, or obj
// itself if that function is nil. The author's function and the log get only the names of the keys of a Secret, in any
// Go representation of it (invariant L9).
func sanitize[T client.Object](obj T, author func(T) any) any {
	switch {
	case gotype.IsNil(obj):
		return nil
	case isSecret(obj):
		return sanitizeSecret(obj, author)
	case author == nil:
		return obj
	default:
		return author(copyOf(obj))
	}
}

func sanitizeSecret[T client.Object](obj T, author func(T) any) any {
	content := maskContent(obj)
	switch {
	case content == nil:
		return describeObject(obj)
	case author == nil:
		return content
	}
	var masked client.Object = &unstructured.Unstructured{Object: content}
	if secret, ok := any(obj).(*corev1.Secret); ok {
		masked = maskSecret(secret)
	}
	if typed, ok := masked.(T); ok {
		return author(typed)
	}
	// A duck type has no masked copy.
	return content
}

// maskSecret returns a copy of secret without its values.
func maskSecret(secret *corev1.Secret) *corev1.Secret {
	masked := secret.DeepCopy()
	for key := range masked.Data {
		masked.Data[key] = []byte(withheld)
	}
	for key := range masked.StringData {
		masked.StringData[key] = withheld
	}
	maskAnnotations(masked)
	return masked
}

// maskContent returns the content of a Secret without its values, or nil if the object cannot be converted.
func maskContent(obj client.Object) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil
	}
	secret := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	for _, member := range []string{"data", "stringData"} {
		values, ok := secret.Object[member].(map[string]any)
		if !ok {
			delete(secret.Object, member)
			continue
		}
		for key := range values {
			values[key] = withheld
		}
	}
	maskAnnotations(secret)
	return secret.Object
}

// maskAnnotations hides the applied configuration that kubectl stores in an annotation.
func maskAnnotations(secret client.Object) {
	annotations := secret.GetAnnotations()
	if _, ok := annotations[corev1.LastAppliedConfigAnnotation]; ok {
		annotations[corev1.LastAppliedConfigAnnotation] = withheld
		secret.SetAnnotations(annotations)
	}
}

// maskPatch returns the operations that may be logged. For a Secret the values are hidden (invariant L9).
func maskPatch(operations []jsonpatch.Operation, req admission.Request, resource client.Object) []jsonpatch.Operation {
	if !isSecret(resource) && (req.Kind.Group != corev1.GroupName || req.Kind.Kind != "Secret") {
		return operations
	}
	masked := slices.Clone(operations)
	for i := range masked {
		if masked[i].Value != nil {
			masked[i].Value = withheld
		}
	}
	return masked
}

// isSecret reports whether obj is a Secret by its Go type or by its kind, because typed objects may have no kind.
func isSecret(obj client.Object) bool {
	if _, ok := obj.(*corev1.Secret); ok {
		return true
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	return gvk.Group == corev1.GroupName && gvk.Kind == "Secret"
}

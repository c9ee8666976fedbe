package plan

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/kinds"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Refusal is an answer of the API server that refuses to write a desired object.
//
// A dropped object is kept until the desired ones are written. If they are refused because of that very object, each
// would wait for the other, so the refusal releases it:
//
//	the answer names                       and the dropped object is
//	a webhook                              a webhook configuration that has it
//	an admission policy, a binding         that policy, that binding
//	a value that is taken, see values      of a kind that can hold the value, and holds it
//
// Nothing else is released: neither what holds data or defines types, nor an object of a kind that is not known here.
type Refusal struct {
	Key    Key
	Status metav1.Status
}

var (
	validatingWebhooks = admissionKind("ValidatingWebhookConfiguration")
	mutatingWebhooks   = admissionKind("MutatingWebhookConfiguration")
)

func admissionKind(kind string) schema.GroupKind {
	return schema.GroupKind{Group: groupAdmission, Kind: kind}
}

// value is a value that one object holds, and the API server or a webhook then refuses to others.
type value struct {
	// fields are the paths of the value in objects of these kinds, without indexes.
	kinds  []schema.GroupKind
	fields []string
	// shared reports whether several objects may hold the value, so that an answer is only about the one that it names.
	shared bool
}

// values has no kinds that may hold data.
var values = []value{
	{kinds: []schema.GroupKind{kinds.Service}, fields: []string{"spec.ports.nodePort"}},
	{kinds: []schema.GroupKind{kinds.Service}, fields: []string{"spec.clusterIP", "spec.clusterIPs"}},
	{kinds: []schema.GroupKind{kinds.Service}, fields: []string{"spec.loadBalancerIP"}},
	{
		kinds: []schema.GroupKind{
			kinds.Ingress, kinds.HTTPRoute, kinds.GRPCRoute, {Group: kinds.HTTPRoute.Group, Kind: "TLSRoute"},
			{Group: "route.openshift.io", Kind: "Route"},
		},
		fields: []string{"spec.rules.host", "spec.hostnames", "spec.host"}, shared: true,
	},
	{
		kinds:  []schema.GroupKind{kinds.HorizontalPodAutoscaler, {Group: "keda.sh", Kind: "ScaledObject"}},
		fields: []string{"spec.scaleTargetRef.name"}, shared: true,
	},
	{
		kinds:  []schema.GroupKind{{Group: "scheduling.k8s.io", Kind: "PriorityClass"}},
		fields: []string{"globalDefault"}, shared: true,
	},
}

// The texts of the API server begin with these, so that no text of a webhook or a policy passes for another one.
var (
	byWebhook = regexp.MustCompile(`^(?:Internal error occurred: )?(?:failed calling|admission) webhook "([^"]+)"[:; ]`)
	byPolicy  = regexp.MustCompile(`^(?:\S+ (?:"[^"]*" )?is forbidden: )?(ValidatingAdmissionPolicy|policy) ` +
		`['"]([^'"]+)['"](?: with binding '([^']+)')? denied request`)
	isTaken = regexp.MustCompile(`(?i)\b(?:already|taken|in use|duplicate|conflicts?)\b`)
	index   = regexp.MustCompile(`\[\d+\]`)
)

// webhook returns the name of the webhook that refuses, or does not answer; empty if there is none.
func (r *Refusal) webhook() string {
	if found := byWebhook.FindStringSubmatch(r.Status.Message); found != nil {
		return found[1]
	}
	return ""
}

// isBy reports whether the answer names an admission policy or a binding.
func (r *Refusal) isBy(key Key) bool {
	found := byPolicy.FindStringSubmatch(r.Status.Message)
	if found == nil || key.Group != groupAdmission {
		return false
	}
	policy := "MutatingAdmissionPolicy"
	if found[1] != "policy" {
		policy = found[1]
	}
	return key.Kind == policy && key.Name == found[2] || key.Kind == policy+"Binding" && key.Name == found[3]
}

// MayRelease reports whether the refusal may release the object with this record. It is then to be read. The object has
// to be dropped by an apply, and is not to be orphaned.
func (r *Refusal) MayRelease(record *apis.InventoryRecord) bool {
	key := KeyOf(*record)
	kind := key.GroupKind()
	policy := record.DeletePolicy
	switch {
	case record.Digest != "" || record.Phase != apis.PhaseScheduledForDeletion || record.UID == "",
		policy == apis.DeleteOrphan || policy == apis.DeleteOrphanOnApply,
		len(record.ManagedTypes) > 0 || kinds.IsContainer(kind) || holdsData(record):
		return false
	case kind == validatingWebhooks || kind == mutatingWebhooks:
		return r.webhook() != ""
	}
	return r.isBy(key) || slices.ContainsFunc(values, func(v value) bool {
		return v.isOf(r.Key.GroupKind()) && v.isOf(kind) && len(r.textsAbout(v)) > 0
	})
}

// Releases reports whether the refusal of a desired object releases the object live, of which [Refusal.MayRelease] is
// true. unwritten are the mutating webhook configurations that are desired and not written yet: a webhook that one of
// them has is not released, or objects would be written that nobody has mutated.
func (r *Refusal) Releases(
	record *apis.InventoryRecord, live *unstructured.Unstructured, desired map[string]any, unwritten []map[string]any,
) bool {
	key := KeyOf(*record)
	if !r.MayRelease(record) || live.GetUID() != record.UID {
		return false
	}
	switch key.GroupKind() {
	case mutatingWebhooks:
		waits := func(successor map[string]any) bool { return hasWebhook(successor, r.webhook()) }
		return hasWebhook(live.Object, r.webhook()) && !slices.ContainsFunc(unwritten, waits)
	case validatingWebhooks:
		return hasWebhook(live.Object, r.webhook())
	}
	return r.isBy(key) || slices.ContainsFunc(values, func(v value) bool {
		return v.isOf(key.GroupKind()) && r.isAbout(v, key, live.Object, desired)
	})
}

// IsUnwrittenMutator reports whether the record is of a mutating webhook configuration that is not written yet.
func IsUnwrittenMutator(record *apis.InventoryRecord) bool {
	return KeyOf(*record).GroupKind() == mutatingWebhooks && record.Phase == apis.PhaseScheduledForApplication
}

func hasWebhook(configuration map[string]any, name string) bool {
	return slices.Contains(valuesAt(configuration, "webhooks", "name"), name)
}

// isAbout reports whether the answer says that a value is taken which is desired, and which the dropped object holds.
func (r *Refusal) isAbout(v value, key Key, dropped, desired map[string]any) bool {
	held := v.of(dropped)
	for _, text := range r.textsAbout(v) {
		named := names(text, key.Namespace+"/"+key.Name) || key.Namespace == r.Key.Namespace && names(text, key.Name)
		if v.shared && !named {
			continue
		}
		for _, wanted := range v.of(desired) {
			if slices.Contains(held, wanted) && (wanted == "true" || names(text, wanted)) {
				return true
			}
		}
	}
	return false
}

// textsAbout returns what the answer says about the value, if it may be taken. Of an object that is invalid it is what
// is wrong with the field.
func (r *Refusal) textsAbout(v value) (texts []string) {
	if r.Status.Code >= http.StatusInternalServerError {
		return nil
	}
	if r.Status.Reason != metav1.StatusReasonInvalid || r.Status.Details == nil || len(r.Status.Details.Causes) == 0 {
		texts = []string{r.Status.Message}
	} else {
		for _, cause := range r.Status.Details.Causes {
			if cause.Field == "" || slices.Contains(v.fields, index.ReplaceAllString(cause.Field, "")) {
				texts = append(texts, cause.Message)
			}
		}
	}
	return slices.DeleteFunc(texts, func(text string) bool { return !isTaken.MatchString(text) })
}

func (v *value) isOf(kind schema.GroupKind) bool { return slices.Contains(v.kinds, kind) }

// of returns the values that an object holds. Those that stand for nothing are none.
func (v *value) of(content map[string]any) (held []string) {
	for _, field := range v.fields {
		held = append(held, valuesAt(content, strings.Split(field, ".")...)...)
	}
	return slices.DeleteFunc(held, func(held string) bool {
		return held == "" || held == "0" || held == "None" || held == "false"
	})
}

// valuesAt returns the values at a path as text, of all elements of lists.
func valuesAt(content any, path ...string) (found []string) {
	switch content := content.(type) {
	case []any:
		for _, element := range content {
			found = append(found, valuesAt(element, path...)...)
		}
	case map[string]any:
		if len(path) > 0 {
			found = valuesAt(content[path[0]], path[1:]...)
		}
	case nil:
	default:
		if len(path) == 0 {
			found = []string{fmt.Sprint(content)}
		}
	}
	return found
}

// names reports whether a text has a value, and not as a part of a longer name, number or address.
func names(text, value string) bool {
	whole := regexp.MustCompile(`(?:^|[^\w./-])` + regexp.QuoteMeta(value) + `(?:$|[^\w./-]|\.(?:$|\W))`)
	return whole.MatchString(text)
}

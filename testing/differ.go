package testing

import (
	"os"
	"reflect"
	"strings"

	"github.com/fatih/color"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
)

// Differ compares observed values with expected ones. Each method returns an empty string if they are equal, else a
// text with one line per difference: a line starts with - for a missing value and with + for an unexpected one. Replace
// [DefaultDiffer], or set the Differ of a test case, to compare in another way.
type Differ interface {
	// Result compares results of a reconcile.
	Result(expected, actual reconcilers.Result) string
	// TrackRequest compares requests to a tracker.
	TrackRequest(expected, actual TrackRequest) string
	// Event compares events.
	Event(expected, actual Event) string
	// ApplyRef compares server-side applies. Options that the expectation leaves unset are unset in actual too.
	ApplyRef(expected, actual ApplyRef) string
	// PatchRef compares patches. Options that the expectation leaves unset are unset in actual too.
	PatchRef(expected, actual PatchRef) string
	// DeleteRef compares deletes. Options that the expectation leaves unset are unset in actual too.
	DeleteRef(expected, actual DeleteRef) string
	// DeleteCollectionRef compares deletes of collections.
	DeleteCollectionRef(expected, actual DeleteCollectionRef) string
	// StashedValue compares values of the stash.
	StashedValue(expected, actual any, key stash.Key) string
	// Resource compares the reconciled resource.
	Resource(expected, actual client.Object) string
	// ResourceStatusUpdate compares objects whose status is updated.
	ResourceStatusUpdate(expected, actual client.Object) string
	// ResourceUpdate compares objects that are updated.
	ResourceUpdate(expected, actual client.Object) string
	// ResourceCreate compares objects that are created.
	ResourceCreate(expected, actual client.Object) string
	// WebhookResponse compares the responses of an admission webhook.
	WebhookResponse(expected, actual admission.Response) string
}

// DefaultDiffer is used by test cases without a Differ of their own. It ignores unexported fields and transition times
// of conditions, also in patches and in server-side applies. In objects that are created, updated or stashed it also
// ignores the fields that the server or the client sets: type meta, creation timestamp and resource version. An empty
// list or map equals nil. Patches and server-side applies are compared as structures.
//
// These fields of components are compared only if the expectation sets them: times and digests in the status; UID,
// digest, fields, generation and time in an inventory record; and, on an expected object with the owner label, its
// digest and the resource version that it is applied with. See [Rollout] for expectations that have them.
var DefaultDiffer Differ = differ{}

// StrictDiffer is DefaultDiffer, but compares the transition times of conditions and all of the status of a component
// too. Set the Now of the test case, in full seconds, so that the times are the same in each run: a condition that
// changes has that time, a condition that does not change keeps its given time.
var StrictDiffer Differ = differ{strict: true}

type differ struct {
	// strict compares transition times.
	strict bool
	// first, unless nil, notes the first difference.
	first *firstDifference
}

// diff compares.
func (d differ) diff(expected, actual any, options ...cmp.Option) string {
	if d.first != nil {
		options = append(options, cmp.Reporter(d.first))
	}
	return cmp.Diff(expected, actual, options...)
}

// unlessCertain compares if it is not certain that the values are equal by the options.
func (d differ) unlessCertain(c comparison, expected, actual any, options ...cmp.Option) string {
	if c.certain(expected, actual) {
		return ""
	}
	return d.diff(expected, actual, options...)
}

// asWritten is thc comparison by writtenObject and the option for transition times.
func (d differ) asWritten() comparison {
	return comparison{
		ignoreUnexported: true, equateEmpty: true, ignoreTypeMeta: true, ignoreServerFields: true,
		ignoreTransition: !d.strict,
	}
}

// times returns the option for transition times.
func (d differ) times() cmp.Options {
	if d.strict {
		return nil
	}
	return cmp.Options{IgnoreLastTransitionTime}
}

func (d differ) Result(expected, actual reconcilers.Result) string {
	return d.diff(expected, actual)
}

func (d differ) TrackRequest(expected, actual TrackRequest) string {
	return d.diff(expected, actual, NormalizeLabelSelector)
}

func (d differ) Event(expected, actual Event) string {
	return d.diff(expected, actual)
}

func (d differ) ApplyRef(expected, actual ApplyRef) string {
	actual.ApplyConfiguration = ignoreUnsetApplied(expected.ApplyConfiguration, actual.ApplyConfiguration)
	if (comparison{}).certain(expected.parts(), actual.parts()) {
		return ""
	}
	return d.diff(expected, actual, NormalizeApplyConfiguration, d.times())
}

// parts returns the ref without its configuration, and the configuration as it is compared.
func (r ApplyRef) parts() []any {
	config := sent(r.ApplyConfiguration)
	r.ApplyConfiguration = nil
	return []any{r, config}
}

func (d differ) PatchRef(expected, actual PatchRef) string {
	expected, actual = expected.inJSON(), actual.inJSON()
	if !d.strict {
		expected.Patch, actual.Patch = withoutTransitionTimes(expected.Patch), withoutTransitionTimes(actual.Patch)
	}
	return d.diff(expected, actual, NormalizePatch)
}

func (d differ) DeleteRef(expected, actual DeleteRef) string {
	return d.diff(expected, actual)
}

func (d differ) DeleteCollectionRef(expected, actual DeleteCollectionRef) string {
	return d.diff(expected, actual, NormalizeLabelSelector, NormalizeFieldSelector)
}

func (d differ) StashedValue(expected, actual any, _ stash.Key) string {
	return d.unlessCertain(d.asWritten(), expected, actual, writtenObject, d.times())
}

func (d differ) Resource(expected, actual client.Object) string {
	actual = d.ignoreUnset(expected, actual)
	c := d.asWritten()
	c.ignoreServerFields = false
	return d.unlessCertain(c, expected, actual,
		reconcilers.IgnoreAllUnexported, d.times(), IgnoreTypeMeta, cmpopts.EquateEmpty())
}

func (d differ) ResourceStatusUpdate(expected, actual client.Object) string {
	actual = d.ignoreUnset(expected, actual)
	c := comparison{ignoreUnexported: true, equateEmpty: true, ignoreTransition: !d.strict}
	if want, ok := statusOf(expected); ok && reflect.TypeOf(expected) == reflect.TypeOf(actual) {
		if got, _ := statusOf(actual); c.equal(want, got, step{field: "Status"}, 0) {
			return ""
		}
	}
	return d.diff(expected, actual, statusOnly, reconcilers.IgnoreAllUnexported, d.times(), cmpopts.EquateEmpty())
}

func (d differ) ResourceUpdate(expected, actual client.Object) string {
	return d.written(expected, actual)
}

func (d differ) ResourceCreate(expected, actual client.Object) string {
	return d.written(expected, actual)
}

// written compares objects that are created or updated.
func (d differ) written(expected, actual client.Object) string {
	want, ok := expected.(*Inventory)
	got, alike := actual.(*Inventory)
	if ok && alike {
		return d.diff(want, want.ignoreUnset(got), writtenObject)
	}
	actual = ignoreUnsetDigest(expected, d.ignoreUnset(expected, actual))
	return d.unlessCertain(d.asWritten(), expected, actual, writtenObject, d.times())
}

// statusOf returns the field Status of an object that is a pointer to a struct.
func statusOf(obj client.Object) (reflect.Value, bool) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	field, ok := v.Elem().Type().FieldByName("Status")
	if !ok || len(field.Index) != 1 {
		return reflect.Value{}, false
	}
	return v.Elem().FieldByIndex(field.Index), true
}

// ignoreUnset returns actual without the computed fields that expected does not set, unless all are compared.
func (d differ) ignoreUnset(expected, actual client.Object) client.Object {
	if d.strict {
		return actual
	}
	return ignoreUnset(expected, actual)
}

func (d differ) WebhookResponse(expected, actual admission.Response) string {
	return d.diff(withoutDerivedPatch(expected), withoutDerivedPatch(actual),
		NormalizePatch, normalizeOperation, reconcilers.IgnoreAllUnexported)
}

// withoutDerivedPatch returns the response without the bytes that are made of its patches.
func withoutDerivedPatch(r admission.Response) admission.Response {
	if len(r.Patches) > 0 {
		r.Patch = nil
	}
	return r
}

// writtenObject compares the fields of an object that its writer decides.
var writtenObject = cmp.Options{
	reconcilers.IgnoreAllUnexported,
	IgnoreTypeMeta,
	IgnoreCreationTimestamp,
	IgnoreResourceVersion,
	cmpopts.EquateEmpty(),
}

// The colours of a diff. They have an effect only if the environment variable COLOR_DIFF is set, to any value.
var (
	// DiffAddedColor is the colour of unexpected values.
	DiffAddedColor = color.New(color.FgGreen)
	// DiffRemovedColor is the colour of missing values.
	DiffRemovedColor = color.New(color.FgRed)
)

func init() {
	_, wanted := os.LookupEnv("COLOR_DIFF")
	for _, c := range []*color.Color{DiffAddedColor, DiffRemovedColor} {
		if wanted {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
	}
}

// ColorizeDiff colours the lines of a diff that start with + or -. Each line of the result ends with a newline, the
// last one included.
func ColorizeDiff(diff string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(diff, "\n") {
		switch {
		case strings.HasPrefix(line, "+"):
			b.WriteString(DiffAddedColor.Sprint(line))
		case strings.HasPrefix(line, "-"):
			b.WriteString(DiffRemovedColor.Sprint(line))
		default:
			b.WriteString(line)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// legend explains the signs of a diff, in its colours.
func legend() string {
	return "(" + DiffRemovedColor.Sprint("-expected") + ", " + DiffAddedColor.Sprint("+actual") + ")"
}

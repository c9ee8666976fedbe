package testing

import (
	"os"

	"github.com/fatih/color"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	"github.com/espalier-dev/espalier/testing/internal/check"
	"github.com/espalier-dev/espalier/testing/internal/words"
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
	first *check.First
}

// written compares what the writer of an object decides.
func (d differ) written() check.Comparison {
	return check.Comparison{
		IgnoreUnexported: true, EquateEmpty: true, IgnoreTypeMeta: true, IgnoreServerFields: true,
		IgnoreLastTransitionTime: !d.strict,
	}
}

func (d differ) Result(expected, actual reconcilers.Result) string {
	return check.Diff(d.first, expected, actual)
}

func (d differ) TrackRequest(expected, actual TrackRequest) string {
	return check.Diff(d.first, expected, actual, NormalizeLabelSelector)
}

func (d differ) Event(expected, actual Event) string {
	return check.Diff(d.first, expected, actual)
}

func (d differ) ApplyRef(expected, actual ApplyRef) string {
	actual.ApplyConfiguration = check.IgnoreUnsetApplied(expected.ApplyConfiguration, actual.ApplyConfiguration)
	if (check.Comparison{}).Certain(expected.parts(), actual.parts()) {
		return ""
	}
	options := cmp.Options{NormalizeApplyConfiguration}
	if !d.strict {
		options = append(options, IgnoreLastTransitionTime)
	}
	return check.Diff(d.first, expected, actual, options)
}

// parts returns the ref without its configuration, and the configuration as it is compared.
func (r ApplyRef) parts() []any {
	config := check.Sent(r.ApplyConfiguration)
	r.ApplyConfiguration = nil
	return []any{r, config}
}

func (d differ) PatchRef(expected, actual PatchRef) string {
	expected, actual = expected.inJSON(), actual.inJSON()
	if !d.strict {
		expected.Patch = check.WithoutTransitionTimes(expected.Patch)
		actual.Patch = check.WithoutTransitionTimes(actual.Patch)
	}
	return check.Diff(d.first, expected, actual, NormalizePatch)
}

func (d differ) DeleteRef(expected, actual DeleteRef) string {
	return check.Diff(d.first, expected, actual)
}

func (d differ) DeleteCollectionRef(expected, actual DeleteCollectionRef) string {
	return check.Diff(d.first, expected, actual, NormalizeLabelSelector, NormalizeFieldSelector)
}

func (d differ) StashedValue(expected, actual any, _ stash.Key) string {
	return d.written().Diff(d.first, expected, actual)
}

func (d differ) Resource(expected, actual client.Object) string {
	c := d.written()
	c.IgnoreServerFields = false
	return c.Diff(d.first, expected, d.ignoreUnset(expected, actual))
}

func (d differ) ResourceStatusUpdate(expected, actual client.Object) string {
	c := check.Comparison{IgnoreUnexported: true, EquateEmpty: true, IgnoreLastTransitionTime: !d.strict}
	return c.DiffStatus(d.first, expected, d.ignoreUnset(expected, actual))
}

func (d differ) ResourceUpdate(expected, actual client.Object) string {
	want, ok := expected.(*Inventory)
	got, alike := actual.(*Inventory)
	if ok && alike {
		return d.written().Diff(d.first, want, want.ignoreUnset(got))
	}
	actual = check.IgnoreUnsetDigest(expected, d.ignoreUnset(expected, actual))
	return d.written().Diff(d.first, expected, actual)
}

func (d differ) ResourceCreate(expected, actual client.Object) string {
	return d.ResourceUpdate(expected, actual)
}

// ignoreUnset returns actual without the computed fields that expected does not set, unless all are compared.
func (d differ) ignoreUnset(expected, actual client.Object) client.Object {
	if d.strict {
		return actual
	}
	return check.IgnoreUnset(expected, actual)
}

func (d differ) WebhookResponse(expected, actual admission.Response) string {
	return check.Diff(d.first, withoutDerivedPatch(expected), withoutDerivedPatch(actual),
		NormalizePatch, check.NormalizeOperation, reconcilers.IgnoreAllUnexported)
}

// withoutDerivedPatch returns the response without the bytes that are made of its patches.
func withoutDerivedPatch(r admission.Response) admission.Response {
	if len(r.Patches) > 0 {
		r.Patch = nil
	}
	return r
}

// differ returns what compares. First, unless nil, notes the first difference, if the Differ is one of this package.
func (c *ExpectConfig) differ(first *check.First) Differ {
	d := c.Differ
	if d == nil {
		d = DefaultDiffer
	}
	if own, ok := d.(differ); ok {
		own.first = first
		return own
	}
	return d
}

// by returns a comparison by a method of the Differ.
func by[T any](c *ExpectConfig, diff func(d Differ, expected, actual T) string) func(*check.First, T, T) string {
	return func(first *check.First, expected, actual T) string { return diff(c.differ(first), expected, actual) }
}

// Options for go-cmp. [DefaultDiffer] uses them.
var (
	// IgnoreLastTransitionTime ignores the transition times of conditions, in typed and unstructured objects.
	IgnoreLastTransitionTime cmp.Option = check.IgnoreLastTransitionTime

	// IgnoreTypeMeta ignores the API version and kind of typed objects. Those of unstructured objects are compared,
	// since nothing else shows their type.
	IgnoreTypeMeta cmp.Option = check.IgnoreTypeMeta

	// IgnoreCreationTimestamp ignores metadata.creationTimestamp, in typed and unstructured objects.
	IgnoreCreationTimestamp cmp.Option = check.IgnoreCreationTimestamp

	// IgnoreResourceVersion ignores metadata.resourceVersion, in typed and unstructured objects.
	IgnoreResourceVersion cmp.Option = check.IgnoreResourceVersion

	// NormalizeLabelSelector compares label selectors by their text. A selector that selects everything equals nil.
	NormalizeLabelSelector = check.NormalizeLabelSelector

	// NormalizeFieldSelector compares field selectors by their text. A selector that selects everything equals nil.
	NormalizeFieldSelector = check.NormalizeFieldSelector

	// NormalizeApplyConfiguration compares apply configurations by their JSON, in any Go types.
	NormalizeApplyConfiguration cmp.Option = check.NormalizeApplyConfiguration

	// NormalizePatch compares fields with the name Patch as JSON. The operations of a JSON patch are compared in order.
	// If one side is not JSON, both are compared as bytes.
	NormalizePatch cmp.Option = check.NormalizePatch
)

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
func ColorizeDiff(diff string) string { return colors().Diff(diff) }

func colors() words.Colors { return words.Colors{Added: DiffAddedColor, Removed: DiffRemovedColor} }

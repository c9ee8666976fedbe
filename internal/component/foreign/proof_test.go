package foreign_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// The items of an array and the values of a map.
var (
	listOfStrings = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}
	mapOfStrings  = &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}
)

type props = map[string]apiextensionsv1.JSONSchemaProps

func raw(s string) apiextensionsv1.JSON { return apiextensionsv1.JSON{Raw: []byte(s)} }

// object is a schema with required properties.
func object(properties props) apiextensionsv1.JSONSchemaProps {
	schema := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	for name := range properties {
		schema.Required = append(schema.Required, name)
	}
	return schema
}

// formatted has a required field of every format that the API server checks.
func formatted() apiextensionsv1.JSONSchemaProps {
	properties := props{}
	for _, format := range []string{
		"bsonobjectid", "byte", "cidr", "creditcard", "date", "date-time", "datetime", "duration", "email", "hexcolor",
		"hostname", "ipv4", "ipv6",
		"isbn", "isbn10", "isbn13", "mac", "password", "rgbcolor", "ssn", "uri", "uuid", "uuid3", "uuid4", "uuid5",
	} {
		properties["f-"+format] = apiextensionsv1.JSONSchemaProps{Type: "string", Format: format}
	}
	return object(properties)
}

func TestProofOfTheFence(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		schema apiextensionsv1.JSONSchemaProps
		change func(*apiextensionsv1.CustomResourceDefinition)
	}{
		{name: "anything goes", schema: apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true)}},
		{name: "nothing known", schema: apiextensionsv1.JSONSchemaProps{}},
		{name: "cluster-wide", schema: object(props{"spec": {Type: "object"}}), change: clusterScoped},
		{name: "every type", schema: object(props{"spec": object(props{
			"string": {Type: "string"}, "integer": {Type: "integer"}, "number": {Type: "number"},
			"boolean": {Type: "boolean"},
			"array": {Type: "array",
				Items: listOfStrings},
			"either": {XIntOrString: true}, "any": {XPreserveUnknownFields: new(true)},
			"map": {Type: "object",
				AdditionalProperties: mapOfStrings},
			"embedded": {Type: "object", XEmbeddedResource: true, XPreserveUnknownFields: new(true)},
			"nullable": {Type: "string", Nullable: true},
		})})},
		{name: "formats", schema: formatted()},
		{name: "enumerations", schema: object(props{"spec": object(props{
			"size": {Type: "string", Enum: []apiextensionsv1.JSON{raw(`"small"`), raw(`"large"`)}},
			"no":   {Type: "integer", Enum: []apiextensionsv1.JSON{raw(`3`)}},
			"null": {Type: "string", Nullable: true, Enum: []apiextensionsv1.JSON{raw(`null`), raw(`"x"`)}},
		})})},
		{name: "bounds and patterns", schema: object(props{"spec": object(props{
			"low": {Type: "integer", Minimum: new(5.0)}, "high": {Type: "number", Maximum: new(-5.0),
				ExclusiveMaximum: true},
			"long": {Type: "string", MinLength: new(int64(40))}, "shaped": {Type: "string", Pattern: "^[a-z]{3}$"},
			"some": {Type: "array", MinItems: new(int64(2)),
				Items: listOfStrings},
			"few": {Type: "object", MinProperties: new(int64(2)), MaxProperties: new(int64(3)),
				AdditionalProperties: mapOfStrings},
			"times": {Type: "integer", MultipleOf: new(7.0), Minimum: new(1.0)},
		})})},
		{name: "defaults", schema: object(props{"spec": object(props{
			"text": {Type: "string", MaxLength: new(int64(3)), Default: new(raw(`"abc"`))},
			"deep": {Type: "object", Properties: props{"n": {Type: "integer"}}, Required: []string{"n"},
				Default: new(raw(`{"n":7}`))},
		})})},
		{name: "nested",
			schema: object(props{"spec": object(props{
				"a": object(props{"b": object(props{"c": {Type: "string"}})}),
			})})},
		{name: "one of two", schema: apiextensionsv1.JSONSchemaProps{
			Required: []string{"spec"},
			Properties: props{"spec": {
				Type: "object", Properties: props{"a": {Type: "string"}, "b": {Type: "integer"}, "c": {Type: "boolean"},
					"d": {Type: "string"}},
				OneOf: []apiextensionsv1.JSONSchemaProps{{Required: []string{"a"}}, {Required: []string{"b"}}},
				AnyOf: []apiextensionsv1.JSONSchemaProps{{Required: []string{"c"}}, {Required: []string{"b"}}},
				AllOf: []apiextensionsv1.JSONSchemaProps{{Required: []string{"d"}}},
			}},
		}},
		{name: "short names", schema: apiextensionsv1.JSONSchemaProps{Properties: props{
			"metadata": {Type: "object", Properties: props{"name": {Type: "string", MaxLength: new(int64(9))}}},
		}}},
		{name: "rules that refuse", schema: apiextensionsv1.JSONSchemaProps{
			Required: []string{"spec"},
			Properties: props{"spec": {Type: "object", Properties: props{"n": {Type: "integer"}},
				XValidations: apiextensionsv1.ValidationRules{{Rule: "has(self.n) && self.n > 3"}}}},
			XValidations: apiextensionsv1.ValidationRules{
				{Rule: "self.metadata.name.startsWith('x')", Message: "must start with x"},
				{Rule: "oldSelf.hasValue()", OptionalOldSelf: new(true)},
			},
		}},
		{name: "several versions", schema: object(props{"spec": {Type: "object"}}),
			change: func(crd *apiextensionsv1.CustomResourceDefinition) {
				next := *crd.Spec.Versions[0].DeepCopy()
				next.Name = "v2"
				next.Schema = schemaOf(object(props{"other": {Type: "string"}}))
				crd.Spec.Versions[0].Storage = false
				crd.Spec.Versions = append(crd.Spec.Versions, next)
			}},
		{name: "stored version not served", schema: object(props{"spec": {Type: "object"}}),
			change: func(crd *apiextensionsv1.CustomResourceDefinition) {
				old := *crd.Spec.Versions[0].DeepCopy()
				old.Name, old.Served = "v0", false
				crd.Spec.Versions[0].Storage = false
				crd.Spec.Versions = append(crd.Spec.Versions, old)
			}},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			crd := crdOf(fmt.Sprintf("Proof%d", i), withSchema(test.schema))
			if test.change != nil {
				test.change(crd)
			}
			install(t, crd)
			g := newGuard(t, plane.Config(t))
			use, err := checkOne(t.Context(), g, keyOf(crd), true)
			assertUse(t, use, err, none)
			assertFences(t, crd, len(crd.Spec.Versions))
			if record := stored(t, crd).Annotations[annotation]; !strings.HasPrefix(record, "proven/") {
				t.Errorf("the record of the proof is %q, want one that begins with proven/", record)
			}
			list := listOf(crd)
			if err := live(t).List(t.Context(), list); err != nil || len(list.Items) != 0 {
				t.Errorf("the trial has left %v (%v), want nothing", list.Items, err)
			}
			use, err = deleteOne(t.Context(), g, keyOf(crd), stored(t, crd).UID)
			assertUse(t, use, err, none)
			assertGone(t, crd)
		})
	}
}

// awkward is a schema without a sample, because allOf restricts the values of a property.
func awkward() apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{
		Required: []string{"spec"},
		Properties: props{"spec": {
			Type: "object", Required: []string{"b"}, Properties: props{"b": {Type: "string"}},
			AllOf: []apiextensionsv1.JSONSchemaProps{{
				Properties: props{"b": {Enum: []apiextensionsv1.JSON{raw(`"x"`)}}},
			}},
		}},
	}
}

func TestProofByAnInstanceThatExists(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Easel", withSchema(awkward())))
	g, requests := guarded(t, interceptor.Funcs{})
	const reason = "the fence of Easel could not be proven: no instance is known that is valid otherwise"
	use, err := checkOne(t.Context(), g, keyOf(crd), true)
	assertUse(t, use, err, unknown(reason))
	assertFences(t, crd, 0)

	// Nothing has changed, so nothing is written. Otherwise everything that watches the definition would wake up again
	// and again.
	generation := stored(t, crd).Generation
	requests.Reset()
	use, err = deleteOne(t.Context(), g, keyOf(crd), stored(t, crd).UID)
	assertUse(t, use, err, unknown(reason))
	if got := stored(t, crd).Generation; got != generation || requests.Counts()[patchOf(crd)] != 0 {
		t.Errorf("the generation is %d and the requests are %v, want %d and no write of the definition", got,
			requests.Counts(), generation)
	}

	mine := instance(crd, plane.Namespace(t), "mine", ours)
	mine.Object["spec"] = map[string]any{"b": "x"}
	create(t, mine)
	use, err = checkOne(t.Context(), g, keyOf(crd), true)
	assertUse(t, use, err, none)
	assertFences(t, crd, 1)
	use, err = deleteOne(t.Context(), g, keyOf(crd), stored(t, crd).UID)
	assertUse(t, use, err, none)
	assertGone(t, crd)
}

func webhookOn(crd *apiextensionsv1.CustomResourceDefinition) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule: admissionregistrationv1.Rule{APIGroups: []string{crd.Spec.Group}, APIVersions: []string{"*"},
			Resources: []string{crd.Spec.Names.Plural}},
	}
}

// nowhere is an address without a server.
var nowhere = admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/admit")}

func mutating(crd *apiextensionsv1.CustomResourceDefinition) client.Object {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "m." + crd.Name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "m." + crd.Name, Rules: []admissionregistrationv1.RuleWithOperations{webhookOn(crd)},
			ClientConfig: nowhere,
			SideEffects:  new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

func validating(crd *apiextensionsv1.CustomResourceDefinition) client.Object {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "v." + crd.Name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "v." + crd.Name, Rules: []admissionregistrationv1.RuleWithOperations{webhookOn(crd)},
			ClientConfig: nowhere,
			SideEffects:  new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// admit installs the webhook and waits until it is asked.
func admit(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, webhook client.Object) (takeAway func()) {
	t.Helper()
	create(t, webhook)
	taken := false
	takeAway = func() {
		if taken {
			return
		}
		taken = true
		if err := live(t).Delete(context.Background(), webhook); err != nil {
			t.Errorf("could not clean up: %v", err)
		}
	}
	t.Cleanup(takeAway)
	// The webhook is called for creations, so a creation with a dry run shows whether it is called.
	controlplanetest.Eventually(t, "the webhook is not asked", func(ctx context.Context) error {
		err := live(t).Create(ctx, instance(crd, "default", "trial", ""), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "webhook") {
			return fmt.Errorf("creation for trial: %v", err)
		}
		return nil
	})
	return takeAway
}

func TestProofDespiteAValidatingWebhook(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Forge"))
	admit(t, crd, validating(crd))
	g := newGuard(t, plane.Config(t))
	use, err := deleteOne(t.Context(), g, keyOf(crd), stored(t, crd).UID)
	assertUse(t, use, err, none)
	assertGone(t, crd)
}

func TestProofWithAMutatingWebhook(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Gauge"))
	takeAway := admit(t, crd, mutating(crd))
	g, requests := guarded(t, interceptor.Funcs{})
	g.ProofTimeout = 300 * time.Millisecond
	const reason = "the fence of Gauge could not be proven: an instance is refused for another reason: " +
		"the server failed, says the webhook m.gauges.smithy.example.com"
	use, err := checkOne(t.Context(), g, keyOf(crd), true)
	assertUse(t, use, err, unknown(reason))
	assertFences(t, crd, 0)

	// The same obstacle: it is not tried again.
	generation := stored(t, crd).Generation
	requests.Reset()
	use, err = checkOne(t.Context(), g, keyOf(crd), true)
	assertUse(t, use, err, unknown(reason))
	if got := stored(t, crd).Generation; got != generation || requests.Counts()[patchOf(crd)] != 0 {
		t.Errorf("the generation is %d and the requests are %v, want %d and no write of the definition", got,
			requests.Counts(), generation)
	}

	// The obstacle is gone.
	takeAway()
	g.ProofTimeout = 0
	controlplanetest.Eventually(t, "the fence is not proven", func(ctx context.Context) error {
		use, err := checkOne(ctx, g, keyOf(crd), true)
		if err != nil || use.State != plan.ForeignNone {
			return fmt.Errorf("%+v, %v", use, err)
		}
		return nil
	})
	assertFences(t, crd, 1)

	// It comes back when the fence is proven already: the server behind it may be deleted before the definition is.
	create(t, mutating(crd))
	t.Cleanup(func() {
		if err := live(t).Delete(context.Background(), mutating(crd)); err != nil {
			t.Errorf("could not clean up: %v", err)
		}
	})
	use, err = deleteOne(t.Context(), g, keyOf(crd), stored(t, crd).UID)
	assertUse(t, use, err, none)
	assertGone(t, crd)
}

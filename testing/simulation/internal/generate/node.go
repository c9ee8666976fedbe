package generate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
)

// node is the compiled schema of a field, of the items of a list or of the values of a map.
type node struct {
	// path is that of [Hints].
	path   string
	schema *structuralschema.Structural
	// values is the validation of the schema, or an empty one.
	values structuralschema.ValueValidation
	// fields are sorted by name.
	fields []fieldNode
	// items and entries are the nodes of the items of a list and of the values of a map.
	items, entries *node
	// keys are those that entries may have; nil allows all.
	keys []string
	// choices are all values that are drawn, unless it is nil.
	choices []any
	// fixed is set if the value is given: it is always there, or never.
	fixed bool
	words *words
	dictionary
	// rules are nil if the node has none of its own, and at the root: they need the metadata.
	rules func() *cel.Validator
	// validator is nil if what is drawn is always valid. It knows all of the schema but its rules.
	validator validation.SchemaValidator
	// sample is a valid value if there is a validator.
	sample any
}

type fieldNode struct {
	name string
	*node
	// required is set if the field has to be there: it has no default either.
	required bool
}

func (f fieldNode) never() bool { return f.fixed && len(f.choices) == 0 }

// compiler makes nodes.
type compiler struct {
	hints Hints
	// used are the paths of the hints that belong to a node.
	used map[string]bool
	errs []error
}

// compile returns the node of the resource.
func compile(
	definition *apiextensionsv1.CustomResourceDefinition, version string, hints Hints,
) (*node, error) {
	normalized, err := hints.normalized()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(definition.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		definition.Spec.Versions[at].Schema.OpenAPIV3Schema, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	// The caller of the generator sets these, and nobody creates a resource with a status.
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		delete(structural.Properties, name)
	}
	if validation := structural.ValueValidation; validation == nil || !slices.Contains(validation.Required, "status") {
		delete(structural.Properties, "status")
	}
	c := compiler{hints: normalized, used: map[string]bool{}}
	root := c.node(structural, "", dictionary{})
	for _, path := range slices.Sorted(maps.Keys(normalized)) {
		if !c.used[path] {
			c.errs = append(c.errs, fmt.Errorf("hint for %s: there is no such field", path))
		}
	}
	return root, errors.Join(c.errs...)
}

func (c *compiler) node(s *structuralschema.Structural, path string, inherited dictionary) *node {
	n := &node{path: path, schema: s, dictionary: inherited.with(s.XValidations)}
	if s.ValueValidation != nil {
		n.values = *s.ValueValidation
	}
	if values, ok := c.hints[path]; ok {
		c.used[path] = true
		n.choices, n.fixed = values, len(values) < 2
		c.checkHints(n)
		return n
	}
	if path != "" {
		n.rules = rulesOf(s)
	}
	for _, value := range n.values.Enum {
		n.choices = append(n.choices, normalize(value.Object))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		n.fields = append(n.fields, fieldNode{
			name: name, node: c.node(&property, path+"."+name, n.dictionary),
			required: slices.Contains(n.values.Required, name) && property.Default.Object == nil,
		})
	}
	if s.Items != nil {
		n.items = c.node(s.Items, path+"[*]", n.dictionary)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		n.entries = c.node(s.AdditionalProperties.Structural, path+"[*]", n.dictionary)
		n.keys = c.keys(path + "[key]")
	}
	if n.values.Pattern != "" {
		var err error
		if n.words, err = newWords(n.values.Pattern, n.values.MinLength, n.values.MaxLength); err != nil {
			c.errs = append(c.errs, fmt.Errorf("%s: pattern %q: %w", path, n.values.Pattern, err))
			return n
		}
	}
	if err := n.addValidator(); err != nil {
		c.errs = append(c.errs, fmt.Errorf("%s: %w", cmp.Or(path, "."), err))
	}
	return n
}

// checkHints reports values that are not valid, with the defaults of what is in them.
func (c *compiler) checkHints(n *node) {
	validator := validation.NewSchemaValidatorFromOpenAPI(n.schema.ToKubeOpenAPI())
	for _, value := range n.choices {
		completed := runtime.DeepCopyJSONValue(value)
		defaulting.Default(completed, n.schema)
		if errs := validation.ValidateCustomResource(nil, completed, validator); len(errs) > 0 && !n.allowsNull(value) {
			c.errs = append(c.errs, fmt.Errorf("hint for %s: %v: %w", n.path, value, errs.ToAggregate()))
		}
	}
}

// keys returns the keys of a map that a hint has.
func (c *compiler) keys(path string) []string {
	values, ok := c.hints[path]
	if !ok {
		return nil
	}
	c.used[path] = true
	keys := []string{}
	for _, value := range values {
		key, ok := value.(string)
		if !ok {
			c.errs = append(c.errs, fmt.Errorf("hint for %s: %v is no string", path, value))
		}
		keys = append(keys, key)
	}
	return keys
}

// addValidator gives the node a validator if it needs one, and a sample of a valid value.
func (n *node) addValidator() error {
	if !n.needsValidator() {
		return nil
	}
	n.validator = validation.NewSchemaValidatorFromOpenAPI(n.schema.ToKubeOpenAPI())
	refused := refusals{}
	r := rand.New(rand.NewPCG(0, 0))
	for range maxTries {
		value := newDrawer(r).attempt(n)
		errs := validation.ValidateCustomResource(nil, value, n.validator)
		if len(errs) == 0 || n.allowsNull(value) {
			n.sample = value
			return nil
		}
		refused.add(errs)
	}
	return fmt.Errorf("no valid value in %d tries; refused most often by %s", maxTries, refused.most())
}

// needsValidator reports whether a value may be drawn that the schema of the node, apart from those in it, refuses.
func (n *node) needsValidator() bool {
	v := &n.values
	if n.rules != nil {
		// A value is changed inside to meet rules.
		return true
	}
	if len(v.AllOf)+len(v.AnyOf)+len(v.OneOf)+len(v.Enum) > 0 || v.Not != nil {
		return true
	}
	switch n.schema.Type {
	case "boolean":
		return false
	case "object":
		// Keys may be drawn twice, and fields may be left out.
		return v.MinProperties != nil || v.MaxProperties != nil
	case "array":
		// A set may have too few items, as those that are drawn may be there.
		return v.MinItems != nil
	default:
		return true
	}
}

// allows reports whether a value is valid, apart from rules.
func (n *node) allows(value any) bool {
	return n.validator == nil || n.allowsNull(value) || n.validator.Validate(value).IsValid()
}

func (n *node) allowsNull(value any) bool { return value == nil && n.schema.Nullable }

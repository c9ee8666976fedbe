package registry

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// The limits of an API server for the estimated cost of one rule, and of all rules of a schema.
const (
	maxRuleCost   = 10_000_000
	maxSchemaCost = 100_000_000
)

// validateRuleFields returns what is wrong with rules apart from their expressions.
func validateRuleFields(rules apiextensions.ValidationRules, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, rule := range rules {
		path := path.Index(i)
		text, message := strings.TrimSpace(rule.Rule), strings.TrimSpace(rule.Message)
		switch {
		case text == "":
			errs = append(errs, field.Required(path.Child("rule"), "rule is not specified"))
		case rule.Message != "" && message == "":
			errs = append(errs, field.Invalid(path.Child("message"), rule.Message, "must be non-empty if specified"))
		case hasLineBreak(message):
			errs = append(errs, field.Invalid(path.Child("message"), rule.Message, "must not contain line breaks"))
		case hasLineBreak(text) && message == "":
			errs = append(errs, field.Required(
				path.Child("message"), "message must be specified if rule contains line breaks"))
		}
		if rule.MessageExpression != "" && strings.TrimSpace(rule.MessageExpression) == "" {
			errs = append(errs, field.Required(
				path.Child("messageExpression"), "messageExpression must be non-empty if specified"))
		}
		reasons := []apiextensions.FieldValueErrorReason{
			apiextensions.FieldValueDuplicate, apiextensions.FieldValueForbidden, apiextensions.FieldValueInvalid,
			apiextensions.FieldValueRequired,
		}
		if rule.Reason != nil && !slices.Contains(reasons, *rule.Reason) {
			errs = append(errs, field.NotSupported(path.Child("reason"), *rule.Reason, reasons))
		}
	}
	return errs
}

func hasLineBreak(s string) bool { return strings.ContainsAny(s, "\r\n") }

// ruleValidation compiles the rules of a schema.
type ruleValidation struct {
	errs field.ErrorList
	cost uint64
	// expensive are the expressions that matter for the cost of the schema.
	expensive []expressionCost
}

type expressionCost struct {
	path *field.Path
	cost uint64
}

// ruleScope is where a schema is.
type ruleScope struct {
	path *field.Path
	root bool
	// times is how many values of an object the schema is for at most. It is 0 if nothing limits them.
	times uint64
	// uncorrelated is the closest list or map around the schema whose old and new items are not known to belong
	// together; nil if there is none.
	uncorrelated *field.Path
}

// validateRules returns what is wrong with the expressions of the rules.
func validateRules(s *structuralschema.Structural, path *field.Path) field.ErrorList {
	var v ruleValidation
	v.visit(s, ruleScope{path: path, root: true, times: 1})
	if v.cost > maxSchemaCost {
		slices.SortStableFunc(v.expensive, func(a, b expressionCost) int { return cmp.Compare(b.cost, a.cost) })
		for _, expression := range v.expensive[:min(len(v.expensive), 4)] {
			v.errs = append(v.errs, field.Forbidden(expression.path,
				"contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"))
		}
		v.errs = append(v.errs, field.Forbidden(path, costMessage(
			"x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema", v.cost, maxSchemaCost)))
	}
	return v.errs
}

func (v *ruleValidation) visit(s *structuralschema.Structural, scope ruleScope) {
	if s == nil {
		return
	}
	v.compile(s, scope)
	inside := func(s *structuralschema.Structural, path *field.Path, limit *int64, correlated bool) {
		next := scope
		next.path, next.root = path, false
		if limit == nil {
			next.times = 0
		} else {
			next.times = multiply(scope.times, uint64(max(*limit, 1)))
		}
		if !correlated && next.uncorrelated == nil {
			next.uncorrelated = scope.path
		}
		v.visit(s, next)
	}
	one := int64(1)
	var values structuralschema.ValueValidation
	if s.ValueValidation != nil {
		values = *s.ValueValidation
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		inside(&property, scope.path.Child("properties").Key(name), &one, cel.MapIsCorrelatable(s.XMapType))
	}
	if s.AdditionalProperties != nil {
		inside(s.AdditionalProperties.Structural, scope.path.Child("additionalProperties"), values.MaxProperties, true)
	}
	inside(s.Items, scope.path.Child("items"), values.MaxItems, s.XListType != nil && *s.XListType == "map")
}

// compile compiles the rules of one schema, without those inside it.
func (v *ruleValidation) compile(s *structuralschema.Structural, scope ruleScope) {
	if len(s.XValidations) == 0 {
		return
	}
	path := scope.path.Child("x-kubernetes-validations")
	results, err := cel.Compile(
		s, model.SchemaDeclType(s, scope.root || s.XEmbeddedResource), celconfig.PerCallLimit,
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), cel.NewExpressionsEnvLoader())
	if err != nil {
		v.errs = append(v.errs, field.InternalError(path, err))
		return
	}
	for i, result := range results {
		rule, path := s.XValidations[i], path.Index(i)
		if rule.FieldPath != "" {
			if _, _, err := cel.ValidFieldPath(rule.FieldPath, s); err != nil {
				v.errs = append(v.errs, field.Invalid(
					path.Child("fieldPath"), rule.FieldPath, "must be a valid path"))
			}
		}
		times := scope.times
		if times == 0 {
			times = result.MaxCardinality
		}
		v.charge("estimated rule cost", path.Child("rule"), multiply(result.MaxCost, times))
		if err := result.Error; err != nil && err.Type == apiservercel.ErrorTypeRequired {
			v.errs = append(v.errs, field.Required(path.Child("rule"), err.Detail))
		} else if err != nil {
			v.errs = append(v.errs, field.Invalid(path.Child("rule"), rule, err.Detail))
		}
		if err := result.MessageExpressionError; err != nil {
			v.errs = append(v.errs, field.Invalid(path.Child("messageExpression"), rule, err.Detail))
		} else if result.MessageExpression != nil {
			v.charge("estimated messageExpression cost", path.Child("messageExpression"),
				result.MessageExpressionMaxCost)
		}
		switch {
		case result.UsesOldSelf && scope.uncorrelated != nil:
			v.errs = append(v.errs, field.Invalid(path.Child("rule"), rule.Rule, fmt.Sprintf(
				"oldSelf cannot be used on the uncorrelatable portion of the schema within %v", scope.uncorrelated)))
		case !result.UsesOldSelf && rule.OptionalOldSelf != nil:
			v.errs = append(v.errs, field.Invalid(path.Child("optionalOldSelf"), *rule.OptionalOldSelf,
				"may not be set if oldSelf is not used in rule"))
		}
	}
}

// charge adds the cost of an expression.
func (v *ruleValidation) charge(what string, path *field.Path, cost uint64) {
	if cost > maxRuleCost {
		v.errs = append(v.errs, field.Forbidden(path, costMessage(what, cost, maxRuleCost)))
	}
	if cost >= maxSchemaCost/100 {
		v.expensive = append(v.expensive, expressionCost{path, cost})
	}
	sum, carry := bits.Add64(v.cost, cost, 0)
	if carry > 0 {
		sum = math.MaxUint64
	}
	v.cost = sum
}

func costMessage(what string, cost, limit uint64) string {
	factor := float64(cost) / float64(limit)
	text := fmt.Sprintf("%.1fx", factor)
	switch {
	case factor > 100:
		text = "more than 100x"
	case factor < 1.5:
		text = fmt.Sprintf("%fx", factor)
	}
	return what + " exceeds budget by factor of " + text + " (try simplifying the rule, or adding maxItems, " +
		"maxProperties, and maxLength where arrays, maps, and strings are declared)"
}

// multiply returns the largest number instead of an overflow.
func multiply(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high > 0 {
		return math.MaxUint64
	}
	return low
}

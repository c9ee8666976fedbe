package helm

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"helm.sh/helm/v4/pkg/chart/v2"
)

// schemaFile is the name of a schema in a chart, and schemaURL its name among schemas.
const (
	schemaFile = "values.schema.json"
	schemaURL  = "file:///" + schemaFile
)

// schemas are the schemas of a chart and its sub-charts, by the first byte of their text, which all copies of a chart
// share. The SDK compiles them in each rendering, and reads whatever they refer to.
type schemas map[*byte]*jsonschema.Schema

// add compiles the schemas of a chart and its sub-charts. A schema may refer to itself and to the standard meta schemas
// only.
func (s schemas) add(c *v2.Chart) error {
	if c.Schema != nil {
		schema, err := compileSchema(c.Schema)
		if err != nil {
			return fmt.Errorf("%s of chart %s: %w", schemaFile, c.ChartFullPath(), err)
		}
		s[&c.Schema[0]] = schema
	}
	for _, dependency := range c.Dependencies() {
		if err := s.add(dependency); err != nil {
			return err
		}
	}
	return nil
}

func compileSchema(text []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, document); err != nil {
		return nil, err
	}
	return compiler.Compile(schemaURL)
}

// noLoader refuses what a schema refers to, because it is outside of the chart.
type noLoader struct{}

var errOutside = errors.New("a schema must not refer to anything outside of it")

// Load accepts any value for a URN, as Helm does for one that it does not know.
func (noLoader) Load(url string) (any, error) {
	if strings.HasPrefix(url, "urn:") {
		return true, nil
	}
	return nil, errOutside
}

// validate checks the values for a chart and its sub-charts. values are coalesced. at is where they are. The text of
// the error has no values.
func (s schemas) validate(c *v2.Chart, values map[string]any, at string) error {
	if len(s) == 0 {
		return nil
	}
	var errs []error
	if len(c.Schema) > 0 && s[&c.Schema[0]] != nil {
		err := s[&c.Schema[0]].Validate(values)
		var invalid *jsonschema.ValidationError
		switch {
		case errors.As(err, &invalid):
			errs = append(errs, explain(invalid, at)...)
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: it cannot be validated", at))
		}
	}
	for _, dependency := range slices.SortedFunc(slices.Values(c.Dependencies()), byName) {
		name := dependency.Name()
		if inner, ok := values[name].(map[string]any); ok {
			errs = append(errs, s.validate(dependency, inner, at+"."+name))
		} else if values[name] != nil {
			errs = append(errs, fmt.Errorf("%s.%s: %w", at, name, errNotMap))
		}
	}
	return errors.Join(errs...)
}

func byName(a, b *v2.Chart) int { return cmp.Compare(a.Name(), b.Name()) }

// explain returns an error for each field that is not as the schema says.
func explain(invalid *jsonschema.ValidationError, at string) []error {
	texts := map[string]bool{}
	collect(invalid, at, texts)
	var errs []error
	for _, text := range slices.Sorted(maps.Keys(texts)) {
		errs = append(errs, errors.New(text))
	}
	return errs
}

func collect(invalid *jsonschema.ValidationError, at string, texts map[string]bool) {
	for _, cause := range invalid.Causes {
		collect(cause, at, texts)
	}
	if len(invalid.Causes) == 0 {
		texts[fieldPath(at, invalid.InstanceLocation)+": "+reason(invalid.ErrorKind)] = true
	}
}

func fieldPath(at string, location []string) string {
	for _, key := range location {
		if _, err := strconv.ParseUint(key, 10, 64); err == nil {
			at += "[" + key + "]"
		} else {
			at += "." + key
		}
	}
	return at
}

// reason says what is wrong with a field, but not what its value is.
func reason(errorKind jsonschema.ErrorKind) string {
	switch k := errorKind.(type) {
	case *kind.Pattern:
		return fmt.Sprintf("it does not match pattern %q", k.Want)
	case *kind.Format:
		return "it is not a valid " + k.Want
	case *kind.Minimum:
		return "minimum: want " + k.Want.RatString()
	case *kind.Maximum:
		return "maximum: want " + k.Want.RatString()
	case *kind.ExclusiveMinimum:
		return "exclusiveMinimum: want " + k.Want.RatString()
	case *kind.ExclusiveMaximum:
		return "exclusiveMaximum: want " + k.Want.RatString()
	case *kind.MultipleOf:
		return "multipleOf: want " + k.Want.RatString()
	case *kind.ContentEncoding, *kind.ContentMediaType, *kind.ContentSchema, *kind.InvalidJsonValue:
		return fmt.Sprintf("it violates %q", strings.Join(errorKind.KeywordPath(), "/"))
	}
	// The rest names fields, types, numbers of items, and what the schema wants.
	return errorKind.LocalizedString(message.NewPrinter(language.English))
}

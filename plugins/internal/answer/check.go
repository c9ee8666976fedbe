package answer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/document"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/plugins/internal/protocol"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Rules say what an answer may ask for.
type Rules struct {
	// Namespace is that of the owner.
	Namespace string
	// Creates and Reads are the kinds of objects that may be written, and that may be read.
	Creates, Reads []schema.GroupVersionKind
	// ClusterScoped reports whether the objects of a kind have no namespace. It may be nil.
	ClusterScoped func(kind schema.GroupVersionKind) bool
	// MaxDependents is how many there may be.
	MaxDependents int
}

const (
	// maxDepth is how many fields a path may have, and maxKey how long the key of a dependent may be.
	maxDepth = 20
	maxKey   = 253
	// maxQuoted is how much of a text of a plugin an error has.
	maxQuoted = 80
)

var errName = fmt.Errorf("give up to %d lower-case letters, digits and hyphens", maxName)

// quote returns the text of a plugin as an error shows it.
func quote(text string) string { return message.Truncate(strconv.Quote(text), maxQuoted) }

// Check returns the dependents of an answer. It returns an error if one of them must not be, and says which and why.
func Check(items []*protocol.Dependent, rules Rules) ([]Dependent, error) {
	if len(items) > rules.MaxDependents {
		return nil, fmt.Errorf("there are %d dependents, and at most %d are allowed", len(items), rules.MaxDependents)
	}
	c := checker{rules: rules, names: map[string]bool{}, values: map[string]bool{}, objects: map[string]string{}}
	dependents := make([]Dependent, 0, len(items))
	for i, item := range items {
		d := decode(item)
		if !isName(d.Name) {
			return nil, fmt.Errorf("the dependent %d has the name %s: %w", i, quote(d.Name), errName)
		}
		if err := c.check(&d, item.GetObject()); err != nil {
			return nil, fmt.Errorf("the dependent %q %w", d.Name, err)
		}
		dependents = append(dependents, d)
	}
	return dependents, nil
}

// checker checks dependents one after the other.
type checker struct {
	rules Rules
	// names and values are those of the dependents so far, and objects are the dependents by their objects.
	names, values map[string]bool
	objects       map[string]string
}

func (c *checker) check(d *Dependent, object []byte) error {
	if c.names[d.Name] {
		return errors.New("is given twice")
	}
	if err := c.checkKind(d); err != nil {
		return err
	}
	if err := c.checkWords(d); err != nil {
		return err
	}
	if err := checkHealth(d.Health); err != nil {
		return err
	}
	if err := c.checkYields(d); err != nil {
		return err
	}
	c.names[d.Name] = true
	if len(object) == 0 {
		if len(d.Needs) == 0 {
			return errors.New("has no object, and needs no value")
		}
		return nil
	}
	if err := c.decodeObject(d, object); err != nil {
		return err
	}
	name := d.Kind.GroupKind().String() + "/" + d.Object.GetName()
	if other, taken := c.objects[name]; taken {
		return fmt.Errorf("has the same object as %q: %s %s", other, d.Kind.Kind, d.Object.GetName())
	}
	c.objects[name] = d.Name
	return nil
}

func (c *checker) checkKind(d *Dependent) error {
	allowed, word := c.rules.Creates, "write"
	if d.ReadOnly {
		allowed, word = c.rules.Reads, "read"
	}
	if !slices.Contains(allowed, d.Kind) {
		return fmt.Errorf("is %s of %s, which the operator does not allow plugins to %s",
			quote(d.Kind.Kind), quote(d.Kind.GroupVersion().String()), word)
	}
	if c.rules.ClusterScoped != nil && c.rules.ClusterScoped(d.Kind) {
		return fmt.Errorf("is %s of %s, which has no namespace", d.Kind.Kind, d.Kind.GroupVersion())
	}
	if len(d.Key()) > maxKey {
		return fmt.Errorf("has a name and a kind that are longer than %d bytes together", maxKey)
	}
	return nil
}

// checkWords checks the switches, and what the dependent waits for.
func (c *checker) checkWords(d *Dependent) error {
	switch {
	case d.ReadOnly && (d.CreateOnly || d.Unowned || d.Recreates):
		return errors.New("is only read, so it must not be create_only, unowned or recreates")
	case d.IgnoreAbsent && !d.ReadOnly:
		return errors.New("is not read_only, so it must not be ignore_absent")
	case d.CreateOnly && d.Recreates:
		return errors.New("must not be both create_only and recreates")
	case d.Unchecked && d.Health != nil:
		return errors.New("must not be unchecked and have a rule of health")
	case d.Independent && len(d.After)+len(d.Needs) > 0:
		return errors.New("must not be independent and wait for others")
	}
	for _, name := range d.After {
		if !c.names[name] {
			return fmt.Errorf("is after %s, which is no dependent before it", quote(name))
		}
	}
	for _, value := range d.Needs {
		if !c.values[value] {
			return fmt.Errorf("needs %s, which no dependent before it yields", quote(value))
		}
	}
	return nil
}

func (c *checker) checkYields(d *Dependent) error {
	for _, y := range d.Yields {
		switch {
		case !isName(y.Name):
			return fmt.Errorf("yields a value with the name %s: %w", quote(y.Name), errName)
		case c.values[y.Name]:
			return fmt.Errorf("yields %q, which is yielded already", y.Name)
		}
		if err := checkPath(y.Path); err != nil {
			return fmt.Errorf("yields %q, whose path %w", y.Name, err)
		}
		c.values[y.Name] = true
	}
	return nil
}

func checkHealth(health *Health) error {
	if health == nil {
		return nil
	}
	if health.Condition == "" {
		if err := checkPath(health.Path); err != nil {
			return fmt.Errorf("has a rule of health without a condition, whose field %w", err)
		}
	}
	if len(health.Attributes) > maxDepth {
		return fmt.Errorf("has %d attributes: give up to %d", len(health.Attributes), maxDepth)
	}
	for _, name := range slices.Sorted(maps.Keys(health.Attributes)) {
		if !isWord(name) {
			return fmt.Errorf("has the attribute %s: give letters, digits, hyphens and dots", quote(name))
		}
		if err := checkPath(health.Attributes[name]); err != nil {
			return fmt.Errorf("has the attribute %q, whose path %w", name, err)
		}
	}
	return nil
}

func checkPath(path []string) error {
	if len(path) == 0 || len(path) > maxDepth || slices.Contains(path, "") {
		return fmt.Errorf("must have 1 to %d fields, none of them empty", maxDepth)
	}
	return nil
}

// decodeObject decodes the object of a dependent, and checks it.
func (c *checker) decodeObject(d *Dependent, text []byte) error {
	// Errors have no part of the object: it may be a Secret.
	if err := document.CheckJSON(text); err != nil {
		return fmt.Errorf("has an object that %w", err)
	}
	fields, err := decodeJSON(text)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: fields}
	if kind := object.GroupVersionKind(); kind != d.Kind {
		return fmt.Errorf("has an object of another kind, %s", quote(kind.String()))
	}
	if d.ReadOnly {
		// Nothing but the name counts.
		name := object.GetName()
		object = &unstructured.Unstructured{}
		object.SetGroupVersionKind(d.Kind)
		object.SetName(name)
		object.SetNamespace(c.rules.Namespace)
		if given, _, _ := unstructured.NestedString(fields, "metadata", "namespace"); given != "" {
			object.SetNamespace(given)
		}
	}
	if err := c.checkMetadata(object); err != nil {
		return err
	}
	object.SetNamespace(c.rules.Namespace)
	d.Object = object
	return nil
}

// decodeJSON decodes one object. Whole numbers stay such.
func decodeJSON(text []byte) (map[string]any, error) {
	object := &unstructured.Unstructured{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	var raw json.RawMessage
	if err := decoder.Decode(&raw); err != nil {
		return nil, errors.New("has an object that is not JSON")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has more than one object")
	}
	if err := object.UnmarshalJSON(raw); err != nil {
		return nil, errors.New("has an object without a kind, or one that is not JSON")
	}
	if object.IsList() {
		return nil, errors.New("has a list, and must have one object")
	}
	return object.Object, nil
}

// ours ends the domain of labels and annotations that only the operator sets.
const ours = "espalier.dev"

// checkMetadata checks what the object says of itself.
func (c *checker) checkMetadata(object *unstructured.Unstructured) error {
	metadata, isMap := object.Object["metadata"].(map[string]any)
	if !isMap {
		return errors.New("has an object without metadata")
	}
	if _, has := object.Object["status"]; has {
		return errors.New("has an object with a status")
	}
	for _, field := range slices.Sorted(maps.Keys(metadata)) {
		switch field {
		case "name", "namespace":
			if _, isText := metadata[field].(string); !isText {
				return fmt.Errorf("has an object whose metadata.%s is no text", field)
			}
		case "labels", "annotations":
			if err := checkMarks(field, metadata[field]); err != nil {
				return err
			}
		default:
			return fmt.Errorf("has an object with %s in metadata, which a plugin must not set", quote(field))
		}
	}
	// Some kinds allow more, such as the colons of a role, and none allows less.
	name := object.GetName()
	if problems := validation.IsDNS1123Subdomain(strings.ReplaceAll(name, ":", "-")); len(problems) > 0 {
		return fmt.Errorf("has an object with the name %s: %s", quote(name), problems[0])
	}
	if namespace := object.GetNamespace(); namespace != "" && namespace != c.rules.Namespace {
		return fmt.Errorf("has an object in the namespace %s, and the owner is in %q",
			quote(namespace), c.rules.Namespace)
	}
	return nil
}

// checkMarks checks labels or annotations.
func checkMarks(field string, value any) error {
	marks, isMap := value.(map[string]any)
	if !isMap {
		return fmt.Errorf("has an object whose metadata.%s are not texts by keys", field)
	}
	for _, key := range slices.Sorted(maps.Keys(marks)) {
		if _, isText := marks[key].(string); !isText {
			return fmt.Errorf("has an object whose metadata.%s are not texts by keys", field)
		}
		domain, _, _ := strings.Cut(key, "/")
		if domain == ours || strings.HasSuffix(domain, "."+ours) {
			return fmt.Errorf("has an object with %s in metadata.%s, which only the operator sets", quote(key), field)
		}
	}
	return nil
}

package generator

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/document"
	"github.com/espalier-dev/espalier/internal/gotype"
)

// Substitute returns a transformer that replaces variables in the objects that selector selects. A nil selector selects
// all. The variables are a map, or a function that returns the value of a variable and whether there is one; it must
// return the same each time. The transformer is [Deterministic].
//
//   - ${NAME} is replaced by the value. A variable that is not there is an error, which names the object, the field and
//     the variable.
//   - ${NAME:-text} is replaced by the text if the variable is not there or empty. The text ends at the first }.
//   - $$ is replaced by $, so $${NAME} stands for ${NAME}. Any other $ stays.
//
// A name has letters, digits and _, and does not start with a digit. It is an error if something else follows ${.
// Values are not searched for variables again.
//
// Variables are replaced in all texts at any depth, also in metadata, but not in the keys of maps. A text stays a text:
// replicas: ${N} does not become a number. The field data of a Secret is in base64, which has no $; use stringData.
func Substitute[V map[string]string | func(name string) (value string, ok bool)](
	variables V, selector func(object client.Object) bool,
) ObjectTransformer {
	s := substitution{selector: selector}
	switch v := any(variables).(type) {
	case map[string]string:
		v = maps.Clone(v)
		s.lookUp = func(name string) (string, bool) { value, ok := v[name]; return value, ok }
	case func(string) (string, bool):
		if s.lookUp = v; v == nil {
			s.lookUp = func(string) (string, bool) { return "", false }
		}
	}
	return s
}

type substitution struct {
	lookUp   func(name string) (string, bool)
	selector func(object client.Object) bool
}

var _ Deterministic = substitution{}

// Deterministic implements [Deterministic].
func (s substitution) Deterministic() bool { return true }

// TransformObjects implements [ObjectTransformer]. The objects keep their Go types.
func (s substitution) TransformObjects(_, _ string, objects []client.Object) ([]client.Object, error) {
	var errs []error
	result := slices.Clone(objects)
	for i, object := range objects {
		if gotype.IsNil(object) || s.selector != nil && !s.selector(object) {
			continue
		}
		replaced, err := s.transform(object)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		result[i] = replaced
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return result, nil
}

// transform returns the object with its variables replaced.
func (s substitution) transform(object client.Object) (client.Object, error) {
	name := nameOf(object)
	var content map[string]any
	var err error
	if thrown := guarded("the conversion", func() {
		content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	}); thrown != nil || err != nil {
		return nil, fmt.Errorf("%s: cannot be converted: %w", name, errors.Join(thrown, err))
	}
	r := replacement{lookUp: s.lookUp}
	content, _ = r.replace(content, "").(map[string]any)
	if err := errors.Join(r.errs...); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !r.changed {
		return object, nil
	}
	if untyped, ok := object.(runtime.Unstructured); ok {
		untyped.SetUnstructuredContent(content)
		return object, nil
	}
	made := reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, made); err != nil {
		// The error may quote the value of a variable, which may be secret.
		return nil, fmt.Errorf("%s: a field does not accept the value of its variable", name)
	}
	return made, nil
}

// nameOf names an object by its kind or Go type, its namespace and its name.
func nameOf(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = strings.TrimLeft(fmt.Sprintf("%T", object), "*")
	}
	return kind + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
}

// replacement replaces the variables of one object.
type replacement struct {
	lookUp  func(name string) (string, bool)
	errs    []error
	changed bool
	// bytes are those of the texts with variables. They are counted before a text is put together.
	bytes int
}

// replace returns value with its variables replaced. Maps and lists are changed.
func (r *replacement) replace(value any, path string) any {
	switch v := value.(type) {
	case string:
		return r.text(v, path)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			v[key] = r.replace(v[key], below(path, key))
		}
	case []any:
		for i := range v {
			v[i] = r.replace(v[i], path+"["+strconv.Itoa(i)+"]")
		}
	case map[string]string:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			v[key] = r.text(v[key], below(path, key))
		}
	case []string:
		for i := range v {
			v[i] = r.text(v[i], path+"["+strconv.Itoa(i)+"]")
		}
	}
	return value
}

var plainKey = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func below(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// token is an escape or what starts as a variable does.
var token = regexp.MustCompile(`\$\$|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\})?`)

func (r *replacement) text(text, path string) string {
	if !strings.Contains(text, "$") {
		return text
	}
	var result strings.Builder
	end := 0
	for _, at := range token.FindAllStringSubmatchIndex(text, -1) {
		result.WriteString(text[end:at[0]])
		end = at[1]
		switch {
		case text[at[0]:at[1]] == "$$":
			result.WriteByte('$')
		case at[2] < 0:
			r.errs = append(r.errs, fmt.Errorf("%s: no name of a variable follows ${, write $${ for that text", path))
		default:
			value, ok := r.lookUp(text[at[2]:at[3]])
			if at[4] >= 0 && value == "" {
				value, ok = text[at[4]+len(":-"):at[5]], true
			}
			if !ok {
				r.errs = append(r.errs, fmt.Errorf("%s: the variable %s is not defined", path, text[at[2]:at[3]]))
			}
			if r.bytes += len(value); r.bytes > document.MaxBytes {
				r.errs = []error{fmt.Errorf(
					"with the values of its variables, the object has more than %d bytes", document.MaxBytes)}
				return text
			}
			result.WriteString(value)
		}
	}
	result.WriteString(text[end:])
	r.changed = r.changed || result.String() != text
	return result.String()
}

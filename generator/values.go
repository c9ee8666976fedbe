package generator

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/espalier-dev/espalier/internal/document"
)

// ValuesConfiguration is implemented by a spec, or a resource, whose users may give parameters of the generator in
// ConfigMaps and Secrets. [ValuesFromSpec] implements it.
type ValuesConfiguration interface {
	// GetValuesFrom returns where the parameters come from. They are merged in this order, and the parameters that the
	// reconciler finds otherwise are merged over them. The references must be part of the spec, so that they are
	// loaded.
	GetValuesFrom() []ValuesReference
}

var _ ValuesConfiguration = (*ValuesFromSpec)(nil)

// ValuesFromSpec lets users give parameters of the generator in ConfigMaps and Secrets. It is a part of a spec: embed
// it with `json:",inline"`.
//
// +kubebuilder:object:generate=true
type ValuesFromSpec struct {
	// ValuesFrom are ConfigMaps and Secrets with values. A later one overrides the ones before, and what is in the
	// resource overrides them all.
	// +optional
	// +listType=atomic
	ValuesFrom []ValuesReference `json:"valuesFrom,omitempty"`
}

// GetValuesFrom implements [ValuesConfiguration].
func (s *ValuesFromSpec) GetValuesFrom() []ValuesReference {
	return orEmpty(s).ValuesFrom
}

// ValuesReference refers to values in a ConfigMap or a Secret in the namespace of the resource.
//
// +kubebuilder:object:generate=true
type ValuesReference struct {
	// Kind is ConfigMap or Secret.
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind"`
	// Name of the ConfigMap or Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key of the values. Default: values.yaml.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
	// TargetPath is where the values belong, as names separated by points, such as "auth.password". A point in a name
	// is written as "\.". The value is then taken as a text. By default, the value is a map of parameters in YAML, of
	// which the first document counts.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	TargetPath string `json:"targetPath,omitempty"`

	// The tag is for converters that look at fields that are not exported.
	loaded *loaded `json:"-"`
}

// Equal reports whether both references say the same. What was loaded does not count.
func (r ValuesReference) Equal(other ValuesReference) bool {
	r.loaded, other.loaded = nil, nil
	return r == other
}

// Values returns the values as parameters. It is an error if the reference was not loaded, or if the values are not
// what TargetPath says. The error shows nothing of the values. The caller owns the map.
func (r *ValuesReference) Values() (map[string]any, error) {
	if r == nil {
		return nil, errNoReference
	}
	value, err := r.loaded.value()
	if err != nil {
		return nil, err
	}
	if r.TargetPath != "" {
		return atPath(r.TargetPath, string(value))
	}
	values := map[string]any{}
	// The error of a parser would show what it did not expect.
	thrown := guarded("the parser", func() {
		var text []byte
		if text, err = document.ToJSON(value); err == nil {
			err = json.Unmarshal(text, &values)
		}
	})
	if errors.Is(err, document.ErrTooLarge) {
		return nil, fmt.Errorf("the key %q of the %s %q %w", r.key(), r.Kind, r.Name, err)
	}
	if err != nil || thrown != nil {
		return nil, fmt.Errorf("the key %q of the %s %q is not a map in YAML", r.key(), r.Kind, r.Name)
	}
	if values == nil {
		values = map[string]any{}
	}
	return values, nil
}

func (r *ValuesReference) key() string {
	if r.Key == "" {
		return "values.yaml"
	}
	return r.Key
}

func (r *ValuesReference) kinds() []string { return []string{kindConfigMap, kindSecret} }
func (r *ValuesReference) set(l *loaded)   { r.loaded = l }
func (r *ValuesReference) target() target {
	details := strings.Join([]string{r.Kind, r.Name, r.key(), r.TargetPath, ""}, "/")
	return target{kind: r.Kind, name: r.Name, key: r.key(), details: details}
}

var errTargetPath = errors.New("targetPath: has an empty name")

// atPath returns a map that has the value at a path.
func atPath(path, value string) (map[string]any, error) {
	var names []string
	name, escaped := "", false
	for _, char := range path {
		switch {
		case escaped:
			name, escaped = name+string(char), false
		case char == '\\':
			escaped = true
		case char == '.':
			names, name = append(names, name), ""
		default:
			name += string(char)
		}
	}
	names = append(names, name)
	var at any = value
	for i := len(names) - 1; i >= 0; i-- {
		if names[i] == "" {
			return nil, errTargetPath
		}
		at = map[string]any{names[i]: at}
	}
	return at.(map[string]any), nil
}

// ValuesOf returns the values that a resource refers to, see [ValuesConfiguration], merged in order. It returns nil if
// there are none. An error names the reference by its index, and shows nothing of the values. A null overrides as well,
// and stays, because a chart deletes its default value then.
func ValuesOf(resource any) (map[string]any, error) {
	configuration, ok := Lookup[ValuesConfiguration](resource)
	if !ok {
		return nil, nil
	}
	var references []ValuesReference
	if err := guarded("GetValuesFrom", func() { references = configuration.GetValuesFrom() }); err != nil {
		return nil, err
	}
	var merged map[string]any
	for i := range references {
		values, err := references[i].Values()
		if err != nil {
			return nil, fmt.Errorf("spec.valuesFrom[%d]: %w", i, err)
		}
		merged = merge(merged, values, keepNulls)
	}
	return merged, nil
}

// WithValues returns parameters that are merged over values, at each call of ToUnstructured. A null in the parameters
// stays.
func WithValues(values map[string]any, parameters Unstructurable) Unstructurable {
	if len(values) == 0 {
		return parameters
	}
	return valued{values, parameters}
}

type valued struct {
	values     map[string]any
	parameters Unstructurable
}

// ToUnstructured implements [Unstructurable].
func (v valued) ToUnstructured() map[string]any {
	return merge(v.values, v.parameters.ToUnstructured(), keepNulls)
}

package generator

// MergeMaps returns base with over merged over it, and leaves both as they are. The result shares nothing with them,
// and is never nil.
//
// Two maps under the same key are merged in the same way. Any other value of over, such as a list or a text, replaces
// the value of base, also where one of them is a map and the other is not. A null deletes the key. Nulls in lists stay.
func MergeMaps(base, over map[string]any) map[string]any {
	return merge(base, over, deleteNulls)
}

// nullPolicy says what becomes of a null that is merged over a map.
type nullPolicy int

const (
	// deleteNulls drops it, and what it is merged over.
	deleteNulls nullPolicy = iota
	// keepNulls has it override like other values.
	keepNulls
	// useNulls drops it together with what it is merged over. It stays where it is merged over nothing.
	useNulls
)

func merge(base, over map[string]any, policy nullPolicy) map[string]any {
	result := make(map[string]any, max(len(base), len(over)))
	for key, value := range base {
		if _, overridden := over[key]; !overridden {
			result[key] = deepCopy(value)
		}
	}
	for key, value := range over {
		below, overrides := base[key]
		switch inner, isMap := value.(map[string]any); {
		case isMap && inner != nil:
			below, _ := below.(map[string]any)
			result[key] = merge(below, inner, policy)
		case value != nil, policy == keepNulls, policy == useNulls && !overrides:
			result[key] = deepCopy(value)
		}
	}
	return result
}

// Defaults returns a transformer that merges the parameters over values, as [MergeMaps] does: values has what is used
// where the user gives nothing. A null of the user removes a default. A null where there is no default stays, so that
// it can remove a default of a chart. Defaults copies values. The transformer is [Deterministic].
func Defaults(values map[string]any) ParameterTransformer {
	values = copyMap(values)
	return parameterMerge(func(parameters map[string]any) map[string]any {
		return merge(values, parameters, useNulls)
	})
}

// Overrides returns a transformer that merges values over the parameters, as [MergeMaps] does: the user cannot change
// what is in values, and a null in values removes what the user gives. Overrides copies values. The transformer is
// [Deterministic].
func Overrides(values map[string]any) ParameterTransformer {
	values = copyMap(values)
	return parameterMerge(func(parameters map[string]any) map[string]any {
		return merge(parameters, values, deleteNulls)
	})
}

// parameterMerge is a deterministic transformer.
type parameterMerge func(parameters map[string]any) map[string]any

var _ Deterministic = parameterMerge(nil)

// TransformParameters implements [ParameterTransformer].
func (m parameterMerge) TransformParameters(_, _ string, parameters Unstructurable) (Unstructurable, error) {
	var given map[string]any
	if parameters != nil {
		given = parameters.ToUnstructured()
	}
	return UnstructurableMap(m(given)), nil
}

// Deterministic implements [Deterministic].
func (m parameterMerge) Deterministic() bool { return true }

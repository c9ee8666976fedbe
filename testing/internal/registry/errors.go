package registry

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// immutable is the error of a field that must not change.
func immutable(at *field.Path, value any) *field.Error {
	return field.Invalid(at, value, apivalidation.FieldImmutableErrorMsg)
}

// invalid makes errors of messages.
func invalid(at *field.Path, value any, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(at, value, message))
	}
	return errs
}

// required requires a value.
func required[T ~string](at *field.Path, value T) field.ErrorList {
	if value != "" {
		return nil
	}
	return field.ErrorList{field.Required(at, "")}
}

// pathSegment requires a value that can be a part of a URL.
func pathSegment(at *field.Path, value string) field.ErrorList {
	if value == "" {
		return required(at, value)
	}
	return invalid(at, value, content.IsPathSegmentName(value))
}

// requiredLabel requires a DNS label.
func requiredLabel(at *field.Path, value string) field.ErrorList {
	if value == "" {
		return required(at, value)
	}
	return invalid(at, value, labelName(value, false))
}

// requiredName requires a DNS subdomain.
func requiredName(at *field.Path, value string) field.ErrorList {
	if value == "" {
		return required(at, value)
	}
	return invalid(at, value, subdomainName(value, false))
}

func isSame(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// oneOf requires one of the values.
func oneOf[T ~string](at *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return supported(at, value, allowed...)
}

// supported requires one of the values. None is a value like others.
func supported[T ~string](at *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, allowed)}
}

// notNegative requires a number that is not negative, if there is one.
func notNegative[T ~int32 | ~int64](at *field.Path, value *T) field.ErrorList {
	if value == nil || *value >= 0 {
		return nil
	}
	return apivalidation.ValidateNonnegativeField(int64(*value), at)
}

// positive requires a number greater than zero, if there is one.
func positive[T ~int32 | ~int64](at *field.Path, value *T) field.ErrorList {
	if value == nil || *value > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, int64(*value), "must be greater than 0")}
}

// between requires a number within limits, if there is one.
func between[T ~int32 | ~int64](at *field.Path, value *T, low, high T) field.ErrorList {
	if value == nil || low <= *value && *value <= high {
		return nil
	}
	return field.ErrorList{field.Invalid(at, int64(*value),
		fmt.Sprintf("must be between %d and %d, inclusive", low, high))}
}

// ordered are the entries of a map in the order of their keys.
func ordered[K ~string, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}

// ratchet leaves out the errors that the object had before, of the same value: what was stored once may stay as it is.
func ratchet(errs, before field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		return slices.ContainsFunc(before, func(b *field.Error) bool {
			return err.Type == b.Type && err.Field == b.Field && equality.Semantic.DeepEqual(err.BadValue, b.BadValue)
		})
	})
}

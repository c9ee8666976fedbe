package write

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// immutable are words of refusals to change a field after the object was created.
var immutable = []string{"immutable", "updates to ", "cannot change", "may not change"}

// IsImmutable reports whether a refusal says that a field cannot be changed after the object was created. Only its
// words say so.
func IsImmutable(refused error) bool {
	text := refused.Error()
	return apierrs.IsInvalid(refused) &&
		slices.ContainsFunc(immutable, func(words string) bool { return strings.Contains(text, words) })
}

// RefusedField returns the first field that a refusal names and in which an object really differs from what is wanted.
func RefusedField(refused error, wanted, there map[string]any) (string, bool) {
	var status apierrs.APIStatus
	if !errors.As(refused, &status) || status.Status().Details == nil {
		return "", false
	}
	for _, cause := range status.Status().Details.Causes {
		value, ok := fieldAt(wanted, cause.Field)
		current, _ := fieldAt(there, cause.Field)
		if ok && setsAnother(value, current) {
			return narrow(cause, value, current), true
		}
	}
	return "", false
}

// narrow returns the field in which two values differ, if a refusal names the one around it, and the fields in that
// which may be changed: "spec: updates for fields other than 'replicas' are forbidden".
func narrow(cause metav1.StatusCause, wanted, there any) string {
	exceptions, _, _ := strings.Cut(cause.Message, "\n")
	members, ok := wanted.(map[string]any)
	if !ok || !strings.Contains(exceptions, "other than") && !strings.Contains(exceptions, "except") {
		return cause.Field
	}
	current, _ := there.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if setsAnother(members[name], current[name]) && !strings.Contains(exceptions, name) {
			return cause.Field + "." + name
		}
	}
	return cause.Field
}

// fieldAt returns what is at a path as the API server writes it, such as spec.containers[0].image or
// metadata.labels[app]. It is false for an empty path, and if there is nothing.
func fieldAt(content any, path string) (value any, ok bool) {
	if path == "" {
		return nil, false
	}
	for path != "" {
		var step string
		step, path = firstStep(path)
		switch at := content.(type) {
		case map[string]any:
			content, ok = at[step]
		case []any:
			index, err := strconv.Atoi(step)
			if ok = err == nil && index >= 0 && index < len(at); ok {
				content = at[index]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return content, ok
}

// firstStep splits a path that is not empty into its first name, key or index and the rest.
func firstStep(path string) (step, rest string) {
	if inner, ok := strings.CutPrefix(path, "["); ok {
		step, rest, _ = strings.Cut(inner, "]")
		return step, rest
	}
	path = strings.TrimPrefix(path, ".")
	if end := strings.IndexAny(path, ".["); end >= 0 {
		return path[:end], path[end:]
	}
	return path, ""
}

// setsAnother reports whether desired sets a value that current does not have. What current has beside that, such as a
// default, is no difference.
func setsAnother(desired, current any) bool {
	switch desired := desired.(type) {
	case nil:
		return false
	case map[string]any:
		there, _ := current.(map[string]any)
		for name, value := range desired {
			if setsAnother(value, there[name]) {
				return true
			}
		}
		return false
	case []any:
		there, _ := current.([]any)
		if len(desired) != len(there) {
			return true
		}
		for i := range desired {
			if setsAnother(desired[i], there[i]) {
				return true
			}
		}
		return false
	}
	return !reflect.DeepEqual(desired, current)
}

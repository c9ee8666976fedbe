package mapped

import "reflect"

// hide gives an answer what the given content has, where the API server has completed that and it is as it was
// completed: it removes what the given content does not have, and restores zero values. Lists are compared element by
// element if they are as long as they were.
func hide(answer, completed, given map[string]any) {
	if completed == nil {
		return
	}
	for name, value := range answer {
		was, ok := completed[name]
		if !ok {
			continue
		}
		wanted, isGiven := given[name]
		if _, isMap := value.(map[string]any); isMap && !isGiven {
			wanted = map[string]any{}
		}
		hideIn(value, was, wanted)
		left, isMap := value.(map[string]any)
		switch {
		case !isGiven && (isMap && len(left) == 0 || reflect.DeepEqual(value, was)):
			delete(answer, name)
		case isGiven && !isMap && isZero(wanted) && reflect.DeepEqual(value, was):
			answer[name] = wanted
		}
	}
}

func isZero(value any) bool { return value == nil || reflect.ValueOf(value).IsZero() }

func hideIn(answer, completed, given any) {
	switch answer := answer.(type) {
	case map[string]any:
		completed, ok := completed.(map[string]any)
		given, isMap := given.(map[string]any)
		if ok && isMap {
			hide(answer, completed, given)
		}
	case []any:
		completed, ok := completed.([]any)
		given, isList := given.([]any)
		if !ok || !isList || len(answer) != len(completed) || len(answer) != len(given) {
			return
		}
		for i := range answer {
			hideIn(answer[i], completed[i], given[i])
		}
	}
}

package differential

import "reflect"

// hide removes from an answer what memory does not have and the API server has completed in a given object, as far as
// it is as it was completed. Where memory has a zero value, it restores that. Lists are compared element by element if
// they are as long as they were.
func hide(answer, completed, memory map[string]any) {
	for name, value := range answer {
		was, ok := completed[name]
		if !ok {
			continue
		}
		inMemory, known := memory[name]
		left, isMap := value.(map[string]any)
		if isMap && !known {
			inMemory = map[string]any{}
		}
		hideIn(value, was, inMemory)
		switch {
		case !known && (isMap && len(left) == 0 || reflect.DeepEqual(value, was)):
			delete(answer, name)
		case known && !isMap && isEmpty(inMemory) && reflect.DeepEqual(value, was):
			answer[name] = inMemory
		}
	}
}

func hideIn(answer, completed, memory any) {
	switch answer := answer.(type) {
	case map[string]any:
		completed, ok := completed.(map[string]any)
		memory, known := memory.(map[string]any)
		if ok && known {
			hide(answer, completed, memory)
		}
	case []any:
		completed, ok := completed.([]any)
		memory, known := memory.([]any)
		if !ok || !known || len(answer) != len(completed) || len(answer) != len(memory) {
			return
		}
		for i := range answer {
			hideIn(answer[i], completed[i], memory[i])
		}
	}
}

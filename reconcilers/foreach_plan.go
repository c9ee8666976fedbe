package reconcilers

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/statusfield"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keyedItem is an item to run the nested node for. Its index is -1 if it is gone.
type keyedItem struct {
	key   string
	index int
}

func (k keyedItem) isGone() bool { return k.index < 0 }

// itemPlan is what becomes of the items of a loop in a request.
type itemPlan struct {
	// runs are the items to run the nested node for: the present ones in their order, then those that are gone.
	runs []keyedItem
	// fresh are the keys that have to be recorded before the nested node runs for their items.
	fresh []string
	// kept are the keys of items that cannot be run for.
	kept []string
	// problems say why.
	problems []itemProblem
}

// itemProblem says why the nested node cannot run for an item.
type itemProblem struct {
	key string
	err error
}

// reasonInvalidItem is the reason of a condition if the nested node cannot run for an item.
const reasonInvalidItem = "InvalidItem"

// condition returns what a condition says of the item.
func (p itemProblem) condition() *metav1.Condition {
	return &metav1.Condition{Status: metav1.ConditionFalse, Reason: reasonInvalidItem, Message: p.err.Error()}
}

// planItems decides what becomes of items with these keys, of which some are recorded. Where all items clean up, two of
// one key are no problem: what that key has goes.
func planItems(loop string, keys, recorded []string, cleansUp bool) itemPlan {
	var plan itemPlan
	first, double, isRecorded := map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, key := range recorded {
		isRecorded[key] = true
	}
	for i, key := range keys {
		if problem := invalidKey(key); problem != "" {
			plan.problems = append(plan.problems, itemProblem{key: message.Truncate(strconv.Quote(key), maxKeyText),
				err: fmt.Errorf("ForEach %q has the item %d with a key that %s", loop, i, problem)})
			continue
		}
		before, known := first[key]
		if !known {
			first[key] = i
			continue
		}
		double[key] = true
		err := fmt.Errorf("ForEach %q has the items %d and %d with the key %q: give each item a key of its own",
			loop, before, i, key)
		plan.problems = append(plan.problems, itemProblem{key: key, err: err})
	}
	for i, key := range keys {
		switch at, valid := first[key]; {
		case !valid, at != i, cleansUp && double[key]:
		case double[key]:
			plan.kept = append(plan.kept, key)
		case cleansUp || isRecorded[key]:
			plan.runs = append(plan.runs, keyedItem{key: key, index: i})
		default:
			plan.fresh = append(plan.fresh, key)
		}
	}
	for _, key := range slices.Sorted(slices.Values(recorded)) {
		if _, present := first[key]; !present || cleansUp && double[key] {
			plan.runs = append(plan.runs, keyedItem{key: key, index: -1})
		}
	}
	if cleansUp {
		plan.problems = nil
	}
	return plan
}

const (
	// longestKey is how long a key may be, in bytes.
	longestKey = 253
	// maxKeyText is how long the text of an invalid key is.
	maxKeyText = 80
)

// invalidKey says what is wrong with a key. It is empty for one that an item may have.
func invalidKey(key string) string {
	switch {
	case key == "":
		return "is empty"
	case len(key) > longestKey:
		return fmt.Sprintf("is longer than %d bytes", longestKey)
	case !utf8.ValidString(key), strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "has characters that cannot be printed"
	case strings.ContainsAny(key, "[]"):
		return "has brackets"
	}
	return ""
}

// itemCondition is what is known of a condition of one item at the end of a request.
type itemCondition struct {
	key string
	// condition is nil if the item has none.
	condition *metav1.Condition
	// missing is true if it is not known what the condition would be.
	missing bool
}

// sumOfItems returns the condition that stands for those of all items: one that is False counts most, then one that is
// Unknown. It returns nil if no item has a condition. It is not known if a condition is missing and none is False.
func sumOfItems(items []itemCondition) (sum *metav1.Condition, known bool) {
	var worst itemCondition
	missing, bad, all := false, 0, 0
	for _, one := range items {
		missing = missing || one.missing
		if one.condition == nil {
			continue
		}
		all++
		if one.condition.Status != metav1.ConditionTrue {
			bad++
		}
		if worst.condition == nil || statusfield.Severity(one.condition) > statusfield.Severity(worst.condition) {
			worst = one
		}
	}
	if worst.condition == nil {
		return nil, !missing
	}
	result := *worst.condition
	result.LastTransitionTime, result.ObservedGeneration = metav1.Time{}, 0
	if bad > 0 {
		result.Message = fmt.Sprintf("%s: %s", worst.key, cmp.Or(result.Message, result.Reason))
	}
	if bad > 1 {
		result.Message += fmt.Sprintf(" (%d of %d items are not ready)", bad, all)
	}
	return &result, !missing || result.Status == metav1.ConditionFalse
}

// worstOf returns what is worst about an item, and false if it is as it should be. Types are those of its conditions,
// in the order of the nodes.
func worstOf(key string, types []string, conditions []metav1.Condition) (apis.ItemStatus, bool) {
	var worst *metav1.Condition
	for _, conditionType := range types {
		c := meta.FindStatusCondition(conditions, conditionType)
		if c != nil && c.Status != metav1.ConditionTrue &&
			(worst == nil || statusfield.Severity(c) > statusfield.Severity(worst)) {
			worst = c
		}
	}
	if worst == nil {
		return apis.ItemStatus{}, false
	}
	return apis.ItemStatus{
		Key: key, Condition: worst.Type, Status: worst.Status, Reason: worst.Reason, Message: worst.Message,
	}, true
}

// maxItems is how many items that are not ready are recorded.
const maxItems = 10

// worstFirst returns the items to record, the worst first.
func worstFirst(items []apis.ItemStatus) []apis.ItemStatus {
	severity := func(item apis.ItemStatus) int {
		return statusfield.Severity(&metav1.Condition{Status: item.Status, Reason: item.Reason})
	}
	slices.SortStableFunc(items, func(a, b apis.ItemStatus) int { return cmp.Compare(severity(b), severity(a)) })
	return items[:min(len(items), maxItems)]
}

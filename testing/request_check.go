package testing

import (
	"reflect"
	"strings"
	"testing"
)

// checkRequest fails a row that passes without an expectation if the reconciler looked for the requested object, which
// is not given, and others of its type are: such a row tests nothing by mistake. A row that was updated has
// expectations now.
func (tc *ReconcilerTestCase) checkRequest(t *testing.T, c *ExpectConfig) {
	t.Helper()
	if t.Failed() || c.report.IsUpdated() {
		return
	}
	text, others := c.explain().MissingRequest(tc.Request.NamespacedName)
	switch {
	case text == "":
	case others && !tc.statesSomething():
		t.Errorf("%s. The row expects nothing, so it tests nothing. Correct the Request, or set ExpectOrder to "+
			"[]string{} if the object must not exist.", text)
	default:
		t.Logf("Note: %s", text)
	}
}

// statesSomething reports whether the row has an expectation, in a field that is set or for another config.
func (tc *ReconcilerTestCase) statesSomething() bool {
	if expectsSomething(tc) {
		return true
	}
	for _, c := range tc.AdditionalConfigs {
		if expectsSomething(&c) {
			return true
		}
	}
	return false
}

// expectsSomething reports whether an expectation is set in a case or a config, a pointer to a struct.
func expectsSomething(tc any) bool {
	row := reflect.ValueOf(tc).Elem()
	for i := range row.NumField() {
		if isExpectation(row.Type().Field(i).Name) && !row.Field(i).IsZero() {
			return true
		}
	}
	return false
}

// isExpectation reports whether a field of a case is an expectation.
func isExpectation(name string) bool {
	return strings.HasPrefix(name, "Expect") || name == "ShouldErr" || name == "ShouldPanic" || name == "Verify"
}

// isPinned reports whether the row is there for its fault alone.
func (tc *ReconcilerTestCase) isPinned() bool { return !tc.Fault.isZero() && !expectsSomething(tc) }

// isPinned reports whether the row is there for its fault alone.
func (tc *SubReconcilerTestCase[Type]) isPinned() bool {
	return !tc.Fault.isZero() && !expectsSomething(tc)
}

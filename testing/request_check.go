package testing

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// checkRequest fails a row that passes without an expectation if the reconciler looked for the requested object, which
// is not given, and others of its type are: such a row tests nothing by mistake. A row that was updated has
// expectations now.
func (tc *ReconcilerTestCase) checkRequest(t *testing.T, c *ExpectConfig) {
	t.Helper()
	if t.Failed() || c.report.IsUpdated() {
		return
	}
	text, others := c.missingRequest(tc.Request)
	switch {
	case text == "":
	case others && !tc.statesSomething():
		t.Errorf("%s. The row expects nothing, so it tests nothing. Correct the Request, or set ExpectOrder to "+
			"[]string{} if the object must not exist.", text)
	default:
		t.Logf("Note: %s", text)
	}
}

// missingRequest says that the object of a request is not given, and whether others of its type are. The text is empty
// if the object is given. The type is that of the first object of that name that was read.
func (c *ExpectConfig) missingRequest(request reconcilers.Request) (text string, others bool) {
	reads := c.made().client.Reads()
	i := slices.IndexFunc(reads, func(r recording.Read) bool { return r.Key == request.NamespacedName })
	if i < 0 || !reads[i].Missed {
		return "", false
	}
	key := objects.NewKey(reads[i].Kind, request.NamespacedName)
	text = fmt.Sprintf("the request is for %s, which is not given", key)
	if request.Name == "" {
		text = "the Request is empty"
	}
	var given []string
	for _, obj := range c.givenObjects("", c.GivenObjects) {
		if obj.key.GroupKind() == key.GroupKind() {
			given = append(given, obj.key.String())
		}
	}
	if len(given) == 0 {
		return text, false
	}
	return text + "; given is " + strings.Join(given, ", "), true
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

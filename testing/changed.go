package testing

import (
	"fmt"
	"reflect"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/check"
	"github.com/espalier-dev/espalier/testing/internal/literal"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// maxChanges is how many fields of a given object an expectation changes at most.
const maxChanges = 8

// givenFixture is a given object that the row writes as a fixture.
type givenFixture struct {
	object client.Object
	// text is the expression of the fixture.
	text string
}

// fixtureOf returns the fixture of an object among what the row is given. It is not ok if there is none.
func (c *ExpectConfig) fixtureOf(obj client.Object) (f givenFixture, ok bool) {
	others := len(c.GivenObjects)
	if c.how.Reconciled >= 0 && c.how.Reconciled < others {
		others--
	}
	for i, given := range c.GivenObjects {
		same := objects.Copy(given)
		if reflect.TypeOf(same) != reflect.TypeOf(obj) || same.GetName() != obj.GetName() ||
			same.GetNamespace() != obj.GetNamespace() {
			continue
		}
		if i == c.how.Reconciled {
			text, ok := c.page().Given("Resource", 0, 1)
			text, isFixture := strings.CutSuffix(text, ".Object()")
			return givenFixture{same, text}, ok && isFixture && !strings.Contains(text, "\n")
		}
		text, ok := c.page().Given("GivenObjects", i, others)
		_, isFixture := given.(interface{ isFixture() })
		return givenFixture{same, text}, ok && isFixture && !strings.Contains(text, "\n")
	}
	return f, false
}

// asChange returns what is written for an object that the row is given as a fixture: the fixture with what is
// different, and a suffix. It is nil if too much is, and if the changed fixture does not meet the call. If only the
// status is compared, nothing else is changed.
func (c *ExpectConfig) asChange(
	value client.Object, onlyStatus bool, suffix string, meets func(client.Object) bool,
) any {
	if value == nil {
		return nil
	}
	given, ok := c.fixtureOf(value)
	if !ok {
		return nil
	}
	typ := reflect.TypeOf(value)
	variable := strings.ToLower(typ.Elem().Name()[:1])
	changed := check.WithoutComputed(given.object)
	skip := func(path string) bool {
		field := strings.TrimPrefix(path, variable+".")
		return onlyStatus && path != variable && !strings.HasPrefix(field, "Status") || unwritten[field]
	}
	want := reflect.ValueOf(value).Elem()
	changes := (&literal.Writer{}).Changes(variable, reflect.ValueOf(changed).Elem(), want, skip)
	if len(changes) > maxChanges || !meets(changed) {
		return nil
	}
	if len(changes) == 0 {
		return literal.Text(func(*literal.Writer) string { return given.text + suffix })
	}
	return literal.Text(func(w *literal.Writer) string {
		again := check.WithoutComputed(given.object)
		lines := w.Changes(variable, reflect.ValueOf(again).Elem(), want, skip)
		body := " " + lines[0] + " "
		if len(lines) > 1 || strings.Contains(body, "\n") || len(body) > 60 {
			body = "\n" + strings.Join(lines, "\n") + "\n"
		}
		return fmt.Sprintf("%s.With(func(%s %s) {%s})%s", given.text, variable, w.TypeOf(typ), body, suffix)
	})
}

// unwritten are fields that a row does not compare, unless it sets them.
var unwritten = map[string]bool{
	"TypeMeta": true, "UID": true, "ResourceVersion": true, "Generation": true, "CreationTimestamp": true,
	"ManagedFields": true, "SelfLink": true,
}

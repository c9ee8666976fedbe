package espalier_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type (
	literal    = reconcilers.ChildReconciler[*resources.Widget, *corev1.ConfigMap, objectList]
	setLiteral = reconcilers.ChildSetReconciler[*resources.Widget, *corev1.ConfigMap, objectList]
)

// set gives a field of a literal a value that is not zero.
func set(literal any, field string) {
	value := reflect.ValueOf(literal).Elem().FieldByName(field)
	switch value.Kind() {
	case reflect.Func:
		value.Set(reflect.MakeFunc(value.Type(), func([]reflect.Value) []reflect.Value { return nil }))
	case reflect.Bool:
		value.SetBool(true)
	case reflect.String:
		value.SetString("x")
	case reflect.Interface:
		value.Set(reflect.ValueOf(&reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{}))
	}
}

// A field that a switch sets has one way to be set.
func TestTuneRefusesWhatASwitchSets(t *testing.T) {
	owned := map[string]string{
		"Name": "the name of the node", "SkipOwnerReference": "Unowned", "LabelChildren": "Labeled",
		"RecreateImmutable": "Recreates", "OptionalKind": "nothing: the kind of a node is optional",
	}
	ofChild := map[string]string{
		"DesiredChild": "the function desired", "Renaming": "nothing: the kind says what a new name means", "ChildIsReady": "Health",
		"ReflectChildStatusOnParent":           "Reports and Observes",
		"ReflectChildStatusOnParentWithError":  "Reports and Observes",
		"ReflectChildStatusOnParentWithResult": "Reports, Observes and RetryAfter",
	}
	ofSet := map[string]string{
		"DesiredChildren": "the function desired", "IdentifyChild": "the names of the objects",
		"ReflectChildrenStatusOnParent":           "Reports and Observes",
		"ReflectChildrenStatusOnParentWithError":  "Reports and Observes",
		"ReflectChildrenStatusOnParentWithResult": "Reports, Observes and RetryAfter",
	}
	ofChildToo := func(field string) node { return owns().Tune(func(c *literal) { set(c, field) }) }
	ofSetToo := func(field string) node { return ownsEach().Tune(func(c *setLiteral) { set(c, field) }) }
	refuses := func(n node, want string) {
		t.Helper()
		if err := validate(n); err == nil || err.Error() != want {
			t.Errorf("the error is %v, expected %s", err, want)
		}
	}
	for word, fields := range map[string][]map[string]string{"Owns": {owned, ofChild}, "OwnsEach": {owned, ofSet}} {
		for _, texts := range fields {
			for field, use := range texts {
				n := ofChildToo(field)
				if word == "OwnsEach" {
					n = ofSetToo(field)
				}
				refuses(n, word+` "ConfigMap" must not set `+field+` by Tune: use `+use)
			}
		}
	}
	for by, use := range map[string]func(*child) *child{
		"CreateOnly: ChildObjectManager, MergeBeforeUpdate, Sanitize, Finalizer": (*child).CreateOnly,
		"Unowned: ListOptions, OurChild":                                         (*child).Unowned,
	} {
		by, fields, _ := strings.Cut(by, ": ")
		for field := range strings.SplitSeq(fields, ", ") {
			refuses(use(owns()).Tune(func(c *literal) { set(c, field) }),
				`Owns "ConfigMap" must not set `+field+` by Tune together with `+by)
		}
	}
}

// labeler is an object manager that gives what it creates a label.
type labeler struct {
	reconcilers.ObjectManager[*corev1.ConfigMap]
}

func (l labeler) Manage(
	ctx context.Context, resource client.Object, actual, desired *corev1.ConfigMap,
) (*corev1.ConfigMap, error) {
	if desired != nil {
		desired.Labels = map[string]string{"tuned": "yes"}
	}
	return l.ObjectManager.Manage(ctx, resource, actual, desired)
}

func TestTuneChangesTheObjectManager(t *testing.T) {
	manager := labeler{&reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{
		Type: &corev1.ConfigMap{}, Name: "x", FieldManager: "x",
	}}
	tuned := configMap.With(func(c *corev1.ConfigMap) { c.Labels = map[string]string{"tuned": "yes"} })
	runBoth(t, tests{"it writes the objects": {
		Resource: widget.Object(), ExpectCreates: []object{tuned}, ExpectEvents: makes,
		ExpectResource: widget.With(isReady).Object(),
	}}, func(c *child) *child {
		return c.Tune(func(c *literal) {}).Tune(func(c *literal) { c.ChildObjectManager = manager })
	}, func(c *children) *children {
		return c.Tune(func(c *setLiteral) { c.ChildObjectManager = manager }).Tune(func(c *setLiteral) {})
	})
}

func validate(n node) error {
	return n.(interface{ Validate(context.Context) error }).Validate(context.Background())
}

package testing

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/check"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// explanations returns what may be the cause of a failure: mistakes in a row that its differences do not show.
func (r *caseRun) explanations() []string {
	var texts []string
	if r.request != nil {
		if text, _ := r.expect.missingRequest(*r.request); text != "" {
			texts = append(texts, text)
		}
	}
	calls, failed := r.expect.made().client.Offered()
	if r.lacksError && len(r.expect.WithReactors) > 0 && !failed {
		text := "no reactor made a call fail; the calls were: " + strings.Join(calls, ", ")
		texts = append(texts, strings.TrimSuffix(text, ": "))
	}
	for _, c := range append([]*ExpectConfig{r.expect}, r.inOrder()...) {
		for _, text := range c.explanations() {
			texts = append(texts, text+c.suffix())
		}
	}
	return texts
}

// givenObject is an object that a config was given.
type givenObject struct {
	// field names the object in the row.
	field string
	key   objects.Key
	// controller is the owner that controls it, nil if there is none.
	controller *metav1.OwnerReference
}

// givenObjects returns the objects of a field that have a kind.
func (c *ExpectConfig) givenObjects(field string, objs []client.Object) []givenObject {
	var all []givenObject
	for i, obj := range objs {
		obj = objects.Copy(obj)
		if kind, err := objects.KindOf(obj, c.Scheme); err == nil {
			key := objects.NewKey(kind, client.ObjectKeyFromObject(obj))
			all = append(all, givenObject{fmt.Sprintf("%s[%d]", field, i), key, metav1.GetControllerOf(obj)})
		}
	}
	return all
}

// explanations returns what may be wrong in the row of a failed test.
func (c *ExpectConfig) explanations() []string {
	given := c.givenObjects("GivenObjects", c.GivenObjects)
	apiGiven := c.givenObjects("APIGivenObjects", c.APIGivenObjects)
	var texts []string
	for _, made := range c.creates() {
		if text := made.explain(given); text != "" {
			texts = append(texts, text)
		}
	}
	reads := func(reader client.Reader) []recording.Read {
		if recorded, ok := reader.(*recording.Client); ok {
			return recorded.Reads()
		}
		return nil
	}
	config := c.made().config
	texts = append(texts, explainReads(reads(config.Client), given, apiGiven,
		"which does not have the APIGivenObjects; it is among the APIGivenObjects", "the client")...)
	texts = append(texts, explainReads(reads(config.APIReader), apiGiven, given,
		"which has the APIGivenObjects only; it is among the GivenObjects", "the APIReader")...)
	for _, list := range []struct {
		field   string
		objects []client.Object
	}{
		{"ExpectCreates", c.ExpectCreates}, {"ExpectUpdates", c.ExpectUpdates},
		{"ExpectStatusUpdates", c.ExpectStatusUpdates},
	} {
		for i, obj := range list.objects {
			obj := objects.Copy(obj)
			if _, _, err := c.Scheme.ObjectKinds(obj); runtime.IsNotRegisteredError(err) && !isInventory(obj) {
				texts = append(texts, fmt.Sprintf("%s[%d]: %s", list.field, i, notInScheme(obj)))
			}
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

func isInventory(obj client.Object) bool {
	_, ok := obj.(*Inventory)
	return ok
}

// create is an object that the code under test creates, or applies.
type create struct {
	key          objects.Key
	generateName string
	controller   *metav1.OwnerReference
	applied      bool
}

// creates returns the objects that were created or applied through the client.
func (c *ExpectConfig) creates() []create {
	var all []create
	for _, action := range c.made().client.CreateActions {
		obj, ok := action.GetObject().(client.Object)
		if !ok {
			continue
		}
		kind := action.GetResource().GroupVersion().WithKind(action.GetResource().Resource)
		key := objects.NewKey(kind, client.ObjectKeyFromObject(obj))
		controller := metav1.GetControllerOf(obj)
		all = append(all, create{key: key, generateName: obj.GetGenerateName(), controller: controller})
	}
	for _, action := range c.made().client.ApplyActions {
		target := targetObject(action)
		key := objects.NewKey(target.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(target))
		controller := controllerIn(check.Sent(action.GetApplyConfiguration()))
		all = append(all, create{key: key, controller: controller, applied: true})
	}
	return all
}

// controllerIn returns the owner that controls an object in JSON, nil if there is none.
func controllerIn(content map[string]any) *metav1.OwnerReference {
	partial := &metav1.PartialObjectMetadata{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, partial) != nil {
		return nil
	}
	return metav1.GetControllerOf(partial)
}

// hasNameOf reports whether an object may be the one that is created.
func (m create) hasNameOf(obj givenObject) bool {
	if m.key.GroupKind() != obj.key.GroupKind() || m.key.Namespace != obj.key.Namespace {
		return false
	}
	if m.key.Name == "" && m.generateName != "" {
		return strings.HasPrefix(obj.key.Name, m.generateName)
	}
	return m.key.Name == obj.key.Name
}

// explain returns why a given object of that name is created nevertheless, empty if none is given.
func (m create) explain(given []givenObject) string {
	i := slices.IndexFunc(given, m.hasNameOf)
	if i < 0 {
		return ""
	}
	obj := given[i]
	what := obj.field + ", " + obj.key.String() + ", "
	switch want, got := m.controller, obj.controller; {
	case want == nil && m.applied, want != nil && got != nil && want.UID == got.UID:
		return ""
	case want == nil && m.key.Name == "":
		return ""
	case want == nil:
		return what + "exists, but is created again: the code does not find it, or does not see it as its own " +
			"(labels, OurChild, ListOptions)"
	case got == nil:
		owner := want.Kind + " " + want.Name
		if m.key.Namespace != "" {
			owner = want.Kind + " " + objects.Path(m.key.Namespace, want.Name)
		}
		return what + "has the name of an object that is created, but " + owner + " does not control it: " + giveMarked
	default:
		return fmt.Sprintf("%shas the name of an object that is created, but is controlled by %s, not by %s: %s",
			what, ownerText(got), ownerText(want), giveMarked)
	}
}

const giveMarked = "if it is to be found, give it as rtesting.WithController(object, resource, scheme)"

func ownerText(ref *metav1.OwnerReference) string {
	return fmt.Sprintf("%s %s of UID %q", ref.Kind, ref.Name, ref.UID)
}

// explainReads explains the reads of objects that reader, one of the two of a config, does not have. There is always
// code that reads what need not exist, so only those are explained that a row has in nearly the same way.
func explainReads(reads []recording.Read, given, elsewhere []givenObject, whereText, reader string) []string {
	var texts []string
	for _, read := range reads {
		if !read.Missed {
			continue
		}
		key := objects.NewKey(read.Kind, read.Key)
		of := func(list []givenObject, same func(objects.Key) bool) int {
			return slices.IndexFunc(list, func(g givenObject) bool {
				return g.key.GroupKind() == key.GroupKind() && same(g.key)
			})
		}
		if of(elsewhere, func(k objects.Key) bool { return k.NamespacedName == key.NamespacedName }) >= 0 {
			texts = append(texts, fmt.Sprintf("%s was read with %s, %s", key, reader, whereText))
		} else if i := of(given, func(k objects.Key) bool { return isNearly(key, k) }); i >= 0 {
			texts = append(texts, fmt.Sprintf("%s was read and is not given; given is %s", key, given[i].key))
		}
	}
	return texts
}

// isNearly reports whether one of two keys may be a mistake for the other: they differ in the namespace alone, or a
// little in the name.
func isNearly(k, other objects.Key) bool {
	if k.Namespace != other.Namespace {
		return k.Name == other.Name
	}
	return k.Name != other.Name && distance(k.Name, other.Name) <= 2
}

// distance returns how many characters have to be inserted, removed or replaced to make b of a.
func distance(a, b string) int {
	previous := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		current := []int{i + 1}
		for j := range len(b) {
			replaced := previous[j]
			if a[i] != b[j] {
				replaced++
			}
			current = append(current, min(replaced, previous[j+1]+1, current[j]+1))
		}
		previous = current
	}
	return previous[len(b)]
}

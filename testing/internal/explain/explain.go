// Package explain says what may be the cause of a failure: mistakes in the objects of a row that its differences do not
// show. It needs what the row gives and the calls that internal/recording has recorded. The row calls it.
package explain

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/check"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// Config is what a row gives, and what was called.
type Config struct {
	Scheme *runtime.Scheme
	// Given are the GivenObjects of the row, and APIGiven its APIGivenObjects.
	Given, APIGiven []client.Object
	// Client and APIReader are those of the config.
	Client, APIReader *recording.Client
}

// Failure returns what may be wrong in a row that failed.
func (c Config) Failure() []string {
	given, apiGiven := c.named("GivenObjects", c.Given), c.named("APIGivenObjects", c.APIGiven)
	var texts []string
	for _, made := range c.creates() {
		if text := made.explain(given); text != "" {
			texts = append(texts, text)
		}
	}
	texts = append(texts, explainReads(c.Client.Reads(), given, apiGiven,
		"which does not have the APIGivenObjects; it is among the APIGivenObjects", "the client")...)
	return append(texts, explainReads(c.APIReader.Reads(), apiGiven, given,
		"which has the APIGivenObjects only; it is among the GivenObjects", "the APIReader")...)
}

// MissingRequest says that the object of a request is not given, and whether others of its type are. The text is empty
// if the object is given. The type is that of the first object of that name that was read.
func (c Config) MissingRequest(request types.NamespacedName) (text string, others bool) {
	reads := c.Client.Reads()
	i := slices.IndexFunc(reads, func(r recording.Read) bool { return r.Key == request })
	if i < 0 || !reads[i].Missed {
		return "", false
	}
	key := objects.NewKey(reads[i].Kind, request)
	text = fmt.Sprintf("the request is for %s, which is not given", key)
	if request.Name == "" {
		text = "the Request is empty"
	}
	var given []string
	for _, obj := range c.named("", c.Given) {
		if obj.key.GroupKind() == key.GroupKind() {
			given = append(given, obj.key.String())
		}
	}
	if len(given) == 0 {
		return text, false
	}
	return text + "; given is " + strings.Join(given, ", "), true
}

// givenObject is an object that a config was given.
type givenObject struct {
	// field names the object in the row.
	field string
	key   objects.Key
	// controller is the owner that controls it, nil if there is none.
	controller *metav1.OwnerReference
}

// named returns the objects of a field that have a kind.
func (c Config) named(field string, objs []client.Object) []givenObject {
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

// create is an object that the code under test creates, or applies.
type create struct {
	key          objects.Key
	generateName string
	controller   *metav1.OwnerReference
	applied      bool
}

// creates returns the objects that were created or applied through the client.
func (c Config) creates() []create {
	keyOf := func(action clientgotesting.Action, name string) objects.Key {
		kind := action.GetResource().GroupVersion().WithKind(action.GetResource().Resource)
		return objects.NewKey(kind, types.NamespacedName{Namespace: action.GetNamespace(), Name: name})
	}
	var all []create
	for _, action := range c.Client.CreateActions {
		if obj, ok := action.GetObject().(client.Object); ok {
			all = append(all, create{
				key: keyOf(action, obj.GetName()), generateName: obj.GetGenerateName(),
				controller: metav1.GetControllerOf(obj),
			})
		}
	}
	for _, action := range c.Client.ApplyActions {
		controller := controllerIn(check.Sent(action.GetApplyConfiguration()))
		all = append(all, create{
			key: keyOf(action, recording.NameOf(action)), controller: controller, applied: true,
		})
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

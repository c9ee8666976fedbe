package answer

import (
	"maps"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/plugins/internal/protocol"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Dependent is an object that an owner needs, by an answer that was checked.
type Dependent struct {
	Name string
	Kind schema.GroupVersionKind
	// Object is as the object should be. It is nil if that is not known yet.
	Object *unstructured.Unstructured

	ReadOnly, IgnoreAbsent, CreateOnly, Unowned, Auxiliary, Unchecked, Recreates, Independent bool

	After, Needs []string
	Yields       []Yield
	// Health is nil for the rules of the kind.
	Health *Health
}

// Yield takes a value from an object.
type Yield struct {
	Name string
	Path []string
}

// Health says when an object is ready.
type Health struct {
	// Condition is the type of the condition that has to be True. If it is empty, the field at Path has to be Value.
	Condition string
	Path      []string
	Value     string
	Reason    string
	// Attributes are paths, by the names of what they lead to.
	Attributes map[string][]string
}

// decode returns a dependent without its object.
func decode(message *protocol.Dependent) Dependent {
	d := Dependent{
		Name:     message.GetName(),
		Kind:     schema.FromAPIVersionAndKind(message.GetApiVersion(), message.GetKind()),
		ReadOnly: message.GetReadOnly(), IgnoreAbsent: message.GetIgnoreAbsent(), CreateOnly: message.GetCreateOnly(),
		Unowned: message.GetUnowned(), Auxiliary: message.GetAuxiliary(), Unchecked: message.GetUnchecked(),
		Recreates: message.GetRecreates(), Independent: message.GetIndependent(),
		After: message.GetAfter(), Needs: message.GetNeeds(),
	}
	for _, y := range message.GetYields() {
		d.Yields = append(d.Yields, Yield{Name: y.GetName(), Path: y.GetPath()})
	}
	if health := message.GetHealth(); health != nil {
		d.Health = &Health{
			Condition: health.GetCondition(), Path: health.GetField().GetPath(), Value: health.GetField().GetValue(),
			Reason: health.GetReason(),
		}
		for name, path := range health.GetAttributes() {
			if d.Health.Attributes == nil {
				d.Health.Attributes = map[string][]string{}
			}
			d.Health.Attributes[name] = path.GetPath()
		}
	}
	return d
}

// Rule returns a text that is the same for dependents that differ in nothing but their names, their objects, and what
// they wait for.
func (d Dependent) Rule() string {
	var b strings.Builder
	write := func(texts ...string) {
		for _, text := range texts {
			b.WriteString(text)
			b.WriteByte(0)
		}
		b.WriteByte(1)
	}
	write(d.Kind.Group, d.Kind.Version, d.Kind.Kind)
	for _, word := range []bool{
		d.ReadOnly, d.IgnoreAbsent, d.CreateOnly, d.Unowned, d.Auxiliary, d.Unchecked, d.Recreates,
	} {
		if word {
			write("x")
		} else {
			write()
		}
	}
	if d.Health == nil {
		return b.String()
	}
	write(d.Health.Condition, d.Health.Value, d.Health.Reason)
	write(d.Health.Path...)
	for _, name := range slices.Sorted(maps.Keys(d.Health.Attributes)) {
		write(name)
		write(d.Health.Attributes[name]...)
	}
	return b.String()
}

// unowned ends the key of a dependent without an owner reference.
const unowned = ":unowned"

// Key identifies a dependent among those of an owner. It is all that is known of one that no answer has any more.
func (d Dependent) Key() string {
	key := d.Name + ":" + d.Kind.GroupKind().String()
	if d.Unowned {
		key += unowned
	}
	return key
}

// ByKey returns what is known of a dependent by its key: its name, its kind without the version, and whether it has an
// owner reference.
func ByKey(key string) Dependent {
	var d Dependent
	key, d.Unowned = strings.CutSuffix(key, unowned)
	name, kind, _ := strings.Cut(key, ":")
	d.Name = name
	group := schema.ParseGroupKind(kind)
	d.Kind = group.WithVersion("")
	return d
}

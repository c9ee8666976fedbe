package fault

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Made is what is known of the objects of a key that were created in a run.
type Made struct {
	// UIDs are those of the objects: there are several if one was created again.
	UIDs []types.UID
	// GenerateName is the prefix of a name that was generated; empty if it was given.
	GenerateName string
	// Address is that of a Pod that has one.
	Address string
	// Fields returns the object that is left; nil if it is gone.
	Fields func() map[string]any
}

// generated is the name of the objects of a prefix; empty if the name of the key was not generated.
func (m Made) generated(name string) string {
	if m.GenerateName == "" || !strings.HasPrefix(name, m.GenerateName) {
		return ""
	}
	return m.GenerateName + "*"
}

// Names gives the same text to what is named by chance: UIDs, generated names, and addresses of Pods. A generated name
// is its prefix with a star, and a number from the second object on, in the order of their contents.
type Names struct {
	made map[Key]*Made
	// groups are the generated names without a number, and aliases those of the objects that are left.
	groups, aliases map[Key]string
	// calls replaces generated names, and texts all, by the cluster of the text. They are made when they are needed.
	calls, texts map[string]*strings.Replacer
}

// NewNames returns the names of objects that were created. The UIDs and names of all others are the same in all runs.
func NewNames(made map[Key]*Made) *Names {
	n := &Names{made: made, groups: map[Key]string{}, aliases: map[Key]string{}}
	groups := map[Key][]Key{}
	for key, m := range made {
		if generated := m.generated(key.Name); generated != "" {
			n.groups[key] = generated
			if m.Fields != nil {
				groups[n.Group(key)] = append(groups[n.Group(key)], key)
			}
		}
	}
	n.forget()
	n.rank(groups)
	return n
}

// forget drops the replacers.
func (n *Names) forget() {
	n.calls, n.texts = map[string]*strings.Replacer{}, map[string]*strings.Replacer{}
}

// rank gives aliases to the objects with generated names that are left, by what they have.
func (n *Names) rank(groups map[Key][]Key) {
	contents := map[Key]string{}
	for _, keys := range groups {
		for _, key := range keys {
			data, _ := json.Marshal(n.Normalize(n.made[key].Fields(), key.Cluster))
			contents[key] = string(data)
		}
	}
	for group, keys := range groups {
		slices.SortFunc(keys, func(a, b Key) int {
			return cmp.Or(cmp.Compare(contents[a], contents[b]), a.Compare(b))
		})
		n.aliases[keys[0]] = group.Name
		for i, key := range keys[1:] {
			n.aliases[key] = group.Name + fmt.Sprint(i+2)
		}
	}
	if len(groups) > 0 {
		n.forget()
	}
}

// Group returns the key of an object, without what was generated of its name.
func (n *Names) Group(key Key) Key {
	key.Name = cmp.Or(n.groups[key], key.Name)
	return key
}

// Alias returns the key of an object as it is called in all runs. That of one with a generated name that is gone is
// the Group; left is not set then.
func (n *Names) Alias(key Key) (alias Key, left bool) {
	left = n.groups[key] == "" || n.aliases[key] != ""
	key.Name = cmp.Or(n.aliases[key], n.groups[key], key.Name)
	return key, left
}

// Normalize returns what must be the same in an object of each run. Fields are those of the object as JSON; they are
// changed.
//
// The result has no metadata that a server sets. Times say that there is one, also within a text. Conditions have no
// transition time. The observed generation of the status and of its conditions says whether it is current, and is left
// out where it may be that of another object. Object references have no version and no UID. What has no order in
// Kubernetes is sorted: conditions, finalizers and owner references.
func (n *Names) Normalize(fields map[string]any, cluster string) map[string]any {
	return normalize(fields, func(text string) string { return n.Text(text, cluster) })
}

// Text replaces what is named by chance in a text of a cluster.
func (n *Names) Text(text, cluster string) string {
	if n.texts[cluster] == nil {
		n.texts[cluster] = n.replacer(cluster, true)
	}
	return n.texts[cluster].Replace(text)
}

// Call replaces generated names in the name of a call to a cluster.
func (n *Names) Call(name, cluster string) string {
	if n.calls[cluster] == nil {
		n.calls[cluster] = n.replacer(cluster, false)
	}
	return n.calls[cluster].Replace(name)
}

// replacer replaces generated names, and also UIDs and addresses if they are asked for, the longest first. What is the
// same in several clusters means that of the given one.
func (n *Names) replacer(cluster string, all bool) *strings.Replacer {
	texts := map[string]string{}
	last := func(a, b Key) int {
		switch {
		case a.Cluster == b.Cluster:
		case a.Cluster == cluster:
			return 1
		case b.Cluster == cluster:
			return -1
		}
		return a.Compare(b)
	}
	for _, key := range slices.SortedFunc(maps.Keys(n.groups), last) {
		alias, _ := n.Alias(key)
		texts[key.Name] = alias.Name
	}
	if all {
		for _, key := range slices.SortedFunc(maps.Keys(n.made), last) {
			alias, _ := n.Alias(key)
			for _, uid := range n.made[key].UIDs {
				texts[string(uid)] = "UID of " + alias.String()
			}
			texts[n.made[key].Address] = "address of " + alias.String()
		}
	}
	delete(texts, "")
	var pairs []string
	for _, text := range slices.SortedFunc(maps.Keys(texts), longestFirst) {
		pairs = append(pairs, text, texts[text])
	}
	return strings.NewReplacer(pairs...)
}

func longestFirst(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) }

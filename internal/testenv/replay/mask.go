package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/store"
)

// mask gives the same text to what is named by chance: UIDs, and names that were generated.
type mask struct {
	// groups are the names of objects with generated names: the prefix with a star. Aliases have a rank by content,
	// too, and only objects that are left.
	groups, aliases map[objectKey]string
	// names replaces generated names.
	names *strings.Replacer
	uids  map[types.UID]objectKey
	// all replaces UIDs too. It is made when it is needed.
	all *strings.Replacer
}

// newMask returns the mask of a run with the changes of each of its clusters.
func newMask(journal map[*cluster][]store.Change) *mask {
	m := &mask{groups: map[objectKey]string{}, aliases: map[objectKey]string{}, uids: map[types.UID]objectKey{}}
	left := map[objectKey]client.Object{}
	for c, changes := range journal {
		for _, change := range changes {
			key := objectKey{change.Key, c.in()}
			if change.After != nil {
				m.uids[change.After.GetUID()] = key
			}
			if change.Before == nil && hasGeneratedName(change.After) {
				m.groups[key] = change.After.GetGenerateName() + "*"
			}
			if m.groups[key] != "" {
				left[key] = change.After
			}
		}
	}
	m.names = m.replacer(nil)
	if len(left) > 0 {
		m.rank(left)
	}
	return m
}

// hasGeneratedName reports whether the name of an object that was created is not of somebody's choice.
func hasGeneratedName(obj client.Object) bool {
	prefix := obj.GetGenerateName()
	return prefix != "" && strings.HasPrefix(obj.GetName(), prefix)
}

// rank gives aliases to objects with generated names, by what they have.
func (m *mask) rank(left map[objectKey]client.Object) {
	contents := map[objectKey]string{}
	groups := map[objectKey][]objectKey{}
	for key, obj := range left {
		if obj == nil {
			continue
		}
		data, _ := json.Marshal(content(obj, m))
		contents[key] = string(data)
		groups[m.group(key)] = append(groups[m.group(key)], key)
	}
	for group, keys := range groups {
		slices.SortFunc(keys, func(a, b objectKey) int {
			return cmp.Or(cmp.Compare(contents[a], contents[b]), compareKeys(a, b))
		})
		m.aliases[keys[0]] = group.Name
		for i, key := range keys[1:] {
			m.aliases[key] = group.Name + fmt.Sprint(i+2)
		}
	}
	m.names, m.all = m.replacer(nil), nil
}

// group returns the key of an object, without what was generated of its name.
func (m *mask) group(key objectKey) objectKey {
	key.Name = cmp.Or(m.groups[key], key.Name)
	return key
}

// alias returns the key of an object as it is called in all runs, unless its name was generated and it is gone.
func (m *mask) alias(key objectKey) (objectKey, bool) {
	if m.groups[key] == "" {
		return key, true
	}
	alias, left := m.aliases[key]
	key.Name = alias
	return key, left
}

// text replaces what is named by chance.
func (m *mask) text(s string) string {
	if m.all == nil {
		m.all = m.replacer(m.uids)
	}
	return m.all.Replace(s)
}

// replacer replaces UIDs, and generated names, the longest first.
func (m *mask) replacer(uids map[types.UID]objectKey) *strings.Replacer {
	texts := map[string]string{}
	name := func(key objectKey) string { return cmp.Or(m.aliases[key], m.groups[key], key.Name) }
	for key := range m.groups {
		texts[key.Name] = name(key)
	}
	for uid, key := range uids {
		key.Name = name(key)
		texts[string(uid)] = "UID of " + key.String()
	}
	var pairs []string
	for _, text := range slices.SortedFunc(maps.Keys(texts), longestFirst) {
		pairs = append(pairs, text, texts[text])
	}
	return strings.NewReplacer(pairs...)
}

func longestFirst(a, b string) int {
	return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
}

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

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// mask gives the same text to what is named by chance: UIDs, and names that were generated. UIDs and names of given
// objects are the same in all runs.
type mask struct {
	// groups are the names of objects with generated names: the prefix with a star. Aliases have a rank by content,
	// too, and only objects that are left.
	groups, aliases map[objectKey]string
	// uids are those of objects that were created; a key has several if it was created again.
	uids map[objectKey][]types.UID
	// names replaces generated names, and all UIDs too, by the cluster of the text. They are made when they are needed.
	names, all map[string]*strings.Replacer
}

// newMask returns the mask of a run with the changes of each of its clusters.
func newMask(journal map[*cluster][]store.Change) *mask {
	m := &mask{groups: map[objectKey]string{}, aliases: map[objectKey]string{}, uids: map[objectKey][]types.UID{}}
	left := map[objectKey]client.Object{}
	for c, changes := range journal {
		for _, change := range changes {
			key := objectKey{change.Key, c.suffix()}
			if change.Before == nil {
				m.uids[key] = append(m.uids[key], change.After.GetUID())
				if hasGeneratedName(change.After) {
					m.groups[key] = change.After.GetGenerateName() + "*"
				}
			}
			if m.groups[key] != "" {
				left[key] = change.After
			}
		}
	}
	m.forget()
	if len(left) > 0 {
		m.rank(left)
	}
	return m
}

// forget drops the replacers.
func (m *mask) forget() {
	m.names, m.all = map[string]*strings.Replacer{}, map[string]*strings.Replacer{}
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
		data, _ := json.Marshal(content(obj, m, key.cluster))
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
	m.forget()
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

// text replaces what is named by chance in a text of a cluster.
func (m *mask) text(s, cluster string) string {
	if m.all[cluster] == nil {
		m.all[cluster] = m.replacer(cluster, m.uids)
	}
	return m.all[cluster].Replace(s)
}

// call replaces generated names in the name of a call.
func (m *mask) call(c *call) string {
	cluster := c.cluster.suffix()
	if m.names[cluster] == nil {
		m.names[cluster] = m.replacer(cluster, nil)
	}
	return m.names[cluster].Replace(c.name)
}

// replacer replaces UIDs, and generated names, the longest first. What is the same in several clusters means that of
// the given one.
func (m *mask) replacer(cluster string, uids map[objectKey][]types.UID) *strings.Replacer {
	texts := map[string]string{}
	name := func(key objectKey) string { return cmp.Or(m.aliases[key], m.groups[key], key.Name) }
	last := func(a, b objectKey) int {
		switch {
		case a.cluster == b.cluster:
		case a.cluster == cluster:
			return 1
		case b.cluster == cluster:
			return -1
		}
		return compareKeys(a, b)
	}
	for _, key := range slices.SortedFunc(maps.Keys(m.groups), last) {
		texts[key.Name] = name(key)
	}
	for _, key := range slices.SortedFunc(maps.Keys(uids), last) {
		alias := key
		alias.Name = name(key)
		for _, uid := range uids[key] {
			texts[string(uid)] = "UID of " + alias.String()
		}
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

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
	// aliases are the names of objects with generated names: the prefix with a star, and a rank by content.
	aliases map[objectKey]string
	// names replaces generated names.
	names *strings.Replacer
	uids  map[types.UID]objectKey
	// all replaces UIDs too. It is made when it is needed.
	all *strings.Replacer
}

// newMask returns the mask of a run with the changes of each of its clusters.
func newMask(journal map[*cluster][]store.Change) *mask {
	m := &mask{aliases: map[objectKey]string{}, uids: map[types.UID]objectKey{}}
	left := map[objectKey]client.Object{}
	for c, changes := range journal {
		for _, change := range changes {
			key := objectKey{change.Key, c.in()}
			if change.After != nil {
				m.uids[change.After.GetUID()] = key
			}
			if change.Before == nil && hasGeneratedName(change.After) {
				m.aliases[key] = change.After.GetGenerateName() + "*"
			}
			if m.aliases[key] != "" {
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
	return prefix != "" && prefix != obj.GetName() && strings.HasPrefix(obj.GetName(), prefix)
}

// rank tells the aliases of objects with the same prefix apart, by what was left of them.
func (m *mask) rank(left map[objectKey]client.Object) {
	contents := map[objectKey]string{}
	groups := map[objectKey][]objectKey{}
	for key, obj := range left {
		if obj == nil {
			m.aliases[key] += " (deleted)"
			continue
		}
		data, _ := json.Marshal(content(obj, m))
		contents[key] = string(data)
		group := m.alias(key)
		groups[group] = append(groups[group], key)
	}
	for _, keys := range groups {
		slices.SortFunc(keys, func(a, b objectKey) int {
			return cmp.Or(cmp.Compare(contents[a], contents[b]), compareKeys(a, b))
		})
		for i, key := range keys[1:] {
			m.aliases[key] += fmt.Sprint(i + 2)
		}
	}
	m.names, m.all = m.replacer(nil), nil
}

// alias returns the key of an object as it is called in all runs.
func (m *mask) alias(key objectKey) objectKey {
	if alias := m.aliases[key]; alias != "" {
		key.Name = alias
	}
	return key
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
	for key, alias := range m.aliases {
		texts[key.Name] = alias
	}
	for uid, key := range uids {
		texts[string(uid)] = "UID of " + m.alias(key).String()
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

package state

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/testing/internal/normalize"
)

// Names gives the same text to what is named by chance: UIDs, generated names, and addresses of Pods. A generated name
// is its prefix with a star, and a number from the second object on, in the order of their contents.
type Names struct {
	// aliases are the generated names.
	aliases map[Key]string
	texts   *strings.Replacer
}

// Names returns the names of a state.
func (s State) Names() *Names {
	n := &Names{aliases: map[Key]string{}}
	groups := map[Key][]*Object{}
	for _, c := range s.created {
		if !isGenerated(c.Key, c.generateName) {
			continue
		}
		group := c.Key
		group.Name = c.generateName + "*"
		n.aliases[c.Key] = group.Name
		if obj := s.Get(c.Key); obj != nil && !slices.Contains(groups[group], obj) {
			groups[group] = append(groups[group], obj)
		}
	}
	n.texts = s.replacer(n.aliases)
	ranked := map[Key]string{}
	for group, objects := range groups {
		contents := map[*Object][]byte{}
		for _, obj := range objects {
			contents[obj], _ = json.Marshal(n.normalize(obj, nil))
		}
		slices.SortFunc(objects, func(a, b *Object) int {
			return cmp.Or(bytes.Compare(contents[a], contents[b]), compareObjects(a, b))
		})
		for i, obj := range objects[1:] {
			ranked[obj.Key] = group.Name + fmt.Sprint(i+2)
		}
	}
	if len(ranked) > 0 {
		maps.Copy(n.aliases, ranked)
		n.texts = s.replacer(n.aliases)
	}
	return n
}

// isGenerated reports whether a name is not of somebody's choice.
func isGenerated(key Key, prefix string) bool {
	return prefix != "" && strings.HasPrefix(key.Name, prefix)
}

// Key returns the key of an object without what is named by chance.
func (n *Names) Key(key Key) Key {
	key.Name = cmp.Or(n.aliases[key], key.Name)
	return key
}

// normalize returns what must be the same in each run. Edit may change the fields of the object before; nil does not.
func (n *Names) normalize(obj *Object, edit func(fields map[string]any)) map[string]any {
	fields := obj.Fields()
	if edit != nil {
		edit(fields)
	}
	return normalize.Object(fields, n.texts.Replace)
}

// replacer replaces what is named by chance, the longest first.
func (s State) replacer(aliases map[Key]string) *strings.Replacer {
	texts := map[string]string{}
	alias := func(key Key) string {
		key.Name = cmp.Or(aliases[key], key.Name)
		return key.String()
	}
	for key, name := range aliases {
		texts[key.Name] = name
	}
	for uid, c := range s.created {
		texts[string(uid)] = "UID of " + alias(c.Key)
	}
	for _, pod := range s.Of(podKind) {
		if status, ok := pod.Fields()["status"].(map[string]any); ok {
			if ip, ok := status["podIP"].(string); ok {
				texts[ip] = "address of " + alias(pod.Key)
			}
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

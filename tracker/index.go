package tracker

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
)

// index finds the topics whose selector may match an object, and skips all others.
//
// A selector that matches an object matches every one of its requirements. So it is enough to keep each topic under one
// requirement that needs a label: under the pairs of key and value that it accepts, or, if it names no values, under
// the key alone. An object can match only topics under its own pairs and keys, and topics that need no label, such as
// labels.Everything(). Of several requirements the index chooses the one whose buckets have the fewest topics:
// `instance=acme` rather than `app=web`, which many have in common.
type index map[bucketKey]map[*topic]struct{}

// bucketKey identifies a bucket of topics. Topics without a namespace are in buckets with an empty one.
type bucketKey struct {
	cluster   any
	kind      schema.GroupKind
	namespace string
	label     labelKey
}

// labelKey is a pair of key and value, or a key with any value. The zero value stands for no label.
type labelKey struct {
	key      string
	value    string
	anyValue bool
}

// add adds a topic that has a selector, and records its buckets in the topic.
func (x index) add(t *topic) {
	requirements, selectable := t.selector.Requirements()
	if !selectable {
		// It matches nothing, so there is no object that it should be found for.
		return
	}
	t.buckets = x.choose(t.key, requirements)
	for _, b := range t.buckets {
		if x[b] == nil {
			x[b] = map[*topic]struct{}{}
		}
		x[b][t] = struct{}{}
	}
}

func (x index) remove(t *topic) {
	for _, b := range t.buckets {
		delete(x[b], t)
		if len(x[b]) == 0 {
			delete(x, b)
		}
	}
}

// choose returns the buckets of the requirement for which the fewest topics have to be evaluated.
func (x index) choose(key topicKey, requirements labels.Requirements) []bucketKey {
	var best []bucketKey
	fewest := 0
	bestByKey := true
	for _, r := range requirements {
		asked, byKey := labelsAskedFor(r)
		if asked == nil || (byKey && !bestByKey) {
			continue
		}
		buckets := make([]bucketKey, 0, len(asked))
		topics := 0
		for _, label := range asked {
			b := key.bucket(key.namespace, label)
			buckets = append(buckets, b)
			topics += len(x[b])
		}
		if best == nil || (bestByKey && !byKey) || topics < fewest {
			best, fewest, bestByKey = buckets, topics, byKey
		}
	}
	if best == nil {
		return []bucketKey{key.bucket(key.namespace, labelKey{})}
	}
	return best
}

// labelsAskedFor returns labels, pairs or one key. An object needs one of them to meet the requirement. It returns none
// if an object without labels may meet it.
func labelsAskedFor(r labels.Requirement) (asked []labelKey, byKey bool) {
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		for _, value := range r.ValuesUnsorted() {
			asked = append(asked, labelKey{key: r.Key(), value: value})
		}
		return asked, false
	case selection.Exists, selection.GreaterThan, selection.LessThan:
		return []labelKey{{key: r.Key(), anyValue: true}}, true
	default:
		return nil, false
	}
}

func (k topicKey) bucket(namespace string, label labelKey) bucketKey {
	return bucketKey{cluster: k.cluster, kind: k.kind, namespace: namespace, label: label}
}

// plausible calls visit with the topics whose selector may match the object with that key and those labels. It visits
// each once: a topic is in several buckets only for values of one key, and an object has only one value for a key.
func (x index) plausible(object topicKey, set labels.Set, visit func(*topic)) {
	if len(x) == 0 {
		return
	}
	bucket := func(namespace string, label labelKey) {
		for t := range x[object.bucket(namespace, label)] {
			visit(t)
		}
	}
	in := func(namespace string) {
		bucket(namespace, labelKey{})
		for key, value := range set {
			bucket(namespace, labelKey{key: key, value: value})
			bucket(namespace, labelKey{key: key, anyValue: true})
		}
	}
	in("")
	if object.namespace != "" {
		in(object.namespace)
	}
}

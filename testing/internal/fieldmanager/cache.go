package fieldmanager

import (
	"reflect"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cache remembers what applies returned. Replays of a table row make the same applies hundreds of times, to objects
// that are equal. An apply takes ten times as long as to find out that it is known.
type cache struct {
	mu      sync.Mutex
	answers map[request]answer
}

// cacheSize is how many answers are kept. They are all forgotten when there are more.
const cacheSize = 512

// request is what is cheap to compare of an apply.
type request struct {
	key                  client.ObjectKey
	fields               *Fields
	manager, subresource string
	force                bool
	time                 int64
}

// answer is what was returned, and for what. None of the objects is changed.
type answer struct {
	live, config, object client.Object
	fields               *Fields
}

// find returns the answer to an equal request. The object is a copy.
func (c *cache) find(r request, live, config client.Object) (obj client.Object, fields *Fields, ok bool) {
	c.mu.Lock()
	a, ok := c.answers[r]
	c.mu.Unlock()
	if !ok || !reflect.DeepEqual(a.live, live) || !reflect.DeepEqual(a.config, config) {
		return nil, nil, false
	}
	return a.object.DeepCopyObject().(client.Object), a.fields, true
}

// add remembers an answer. The caller may change obj.
func (c *cache) add(r request, live, config, obj client.Object, fields *Fields) {
	a := answer{live, config, obj.DeepCopyObject().(client.Object), fields}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil || len(c.answers) >= cacheSize {
		c.answers = map[request]answer{}
	}
	c.answers[r] = a
}

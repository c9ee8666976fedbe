package server

import (
	"fmt"
	"sync/atomic"

	"k8s.io/apiserver/pkg/storage/names"
)

// maxPrefix is how much of a prefix is kept in a generated name: names that may be labels have up to 63 characters.
const maxPrefix = 58

// counter generates names by counting, so that they are the same in each run of a test.
type counter struct{ last atomic.Uint64 }

var _ names.NameGenerator = &counter{}

// GenerateName implements [names.NameGenerator].
func (c *counter) GenerateName(prefix string) string {
	return fmt.Sprintf("%s%05d", prefix[:min(len(prefix), maxPrefix)], c.last.Add(1))
}

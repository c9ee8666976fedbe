package generate_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// bytesSource is a source of randomness that gives the bytes, and others after them.
type bytesSource struct {
	bytes []byte
	after rand.Source
}

func (s *bytesSource) Uint64() uint64 {
	if len(s.bytes) == 0 {
		return s.after.Uint64()
	}
	var next [8]byte
	s.bytes = s.bytes[copy(next[:], s.bytes):]
	return binary.LittleEndian.Uint64(next[:])
}

// FuzzResource has the bytes decide what is drawn.
func FuzzResource(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("0123456789abcdef"))
	g := generator(f, "Keyword")
	f.Fuzz(func(t *testing.T, bytes []byte) {
		c := newChecker(t, "Keyword")
		r := rand.New(&bytesSource{bytes, rand.NewPCG(0, 0)})
		obj := draw(t, g, r)
		stored := c.create(obj)
		c.delete(c.update(g.Edit(r, stored), stored))
		for variant := range g.Smaller(obj) {
			c.create(variant)
			break
		}
	})
}

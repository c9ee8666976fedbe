// Package random has sources of random numbers that a seed decides, and seeds those of the libraries.
package random

import (
	"hash/fnv"
	"io"
	"math/rand"
	randv2 "math/rand/v2"
	"os"
	"strings"
	"sync"

	utilrand "k8s.io/apimachinery/pkg/util/rand"
)

// Source returns a source of its own for each use, which keys name. A draw for one use changes none for another.
func Source(seed uint64, keys ...string) *randv2.Rand {
	return randv2.New(randv2.NewPCG(seed, Hash(keys...)))
}

// Hash returns a number for keys.
func Hash(keys ...string) uint64 {
	sum := fnv.New64a()
	for _, key := range keys {
		_, _ = io.WriteString(sum, key)
		_, _ = sum.Write([]byte{0})
	}
	return sum.Sum64()
}

// Seed seeds the sources that all of the process shares: that of the functions of math/rand, from which client-go draws
// how long it waits before it tries again, and that of apimachinery, from which the API server draws generated names of
// custom resources. With the same seed, a process that does the same in the same order draws the same.
//
// A value drawn from math/rand/v2 or crypto/rand has no seed. Neither has the order of a map, nor the choice of a
// select.
func Seed(seed uint64) {
	letSeed()
	//lint:ignore SA1019 the libraries draw from this source
	rand.Seed(int64(seed))
	utilrand.Seed(int64(seed))
}

// letSeed has math/rand heed a seed, which it does not by itself since Go 1.24.
var letSeed = sync.OnceFunc(func() {
	settings := []string{"randseednop=0"}
	if set := os.Getenv("GODEBUG"); set != "" {
		// Of settings of the same name, the last one counts.
		settings = append([]string{set}, settings...)
	}
	_ = os.Setenv("GODEBUG", strings.Join(settings, ","))
})

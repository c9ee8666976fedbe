package observe

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/managedfields"
)

// fingerprint stands for the value of one key of a Secret. It cannot be guessed from without the key of the process.
type fingerprint struct {
	key string
	sum [16]byte
}

// processKey is random per process, so that fingerprints mean nothing elsewhere.
var processKey = sync.OnceValue(func() []byte {
	key := make([]byte, sha256.Size)
	// It never fails: without randomness the process ends.
	_, _ = rand.Read(key)
	return key
})

// takeFingerprints returns those of data, sorted by key, and wipes the values: they are not needed any more.
func takeFingerprints(data map[string][]byte) []fingerprint {
	prints := make([]fingerprint, 0, len(data))
	for key, value := range data {
		prints = append(prints, fingerprint{key: key, sum: sumOf(key, value)})
		clear(value)
	}
	slices.SortFunc(prints, func(a, b fingerprint) int { return cmp.Compare(a.key, b.key) })
	return prints
}

// sumOf covers the key, so that equal values under different keys do not show.
func sumOf(key string, value []byte) [16]byte {
	mac := hmac.New(sha256.New, processKey())
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(key)))
	_, _ = mac.Write(length[:])
	_, _ = mac.Write([]byte(key))
	_, _ = mac.Write(value)
	var full [sha256.Size]byte
	return [16]byte(mac.Sum(full[:0]))
}

// compareContent tells whether a Secret with the fingerprints holds the desired data, given in base64. Keys that are not desired
// do not count: they are others', or the digest tells. Nor do those that the pointers of ignore name.
func compareContent(desired map[string]string, ignore []string, prints []fingerprint) plan.Content {
	for key, text := range desired {
		if ignoresData(ignore, key) {
			continue
		}
		at, ok := slices.BinarySearchFunc(prints, key, func(p fingerprint, key string) int { return cmp.Compare(p.key, key) })
		if !ok {
			return plan.ContentDifferent
		}
		value, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return plan.ContentDifferent
		}
		same := sumOf(key, value) == prints[at].sum
		clear(value)
		if !same {
			return plan.ContentDifferent
		}
	}
	return plan.ContentSame
}

// ignoresData tells whether one of the pointers names the key of data, or all of data.
func ignoresData(pointers []string, key string) bool {
	return slices.ContainsFunc(managedfields.Pointers(pointers), func(tokens []string) bool {
		return tokens[0] == "data" && (len(tokens) == 1 || len(tokens) == 2 && tokens[1] == key)
	})
}

package observe

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/managedfields"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fingerprint stands for one key of a Secret and its value. Without the key of the process, the value cannot be found
// by trying (invariant L9).
type fingerprint [16]byte

func (f fingerprint) compare(other fingerprint) int { return bytes.Compare(f[:], other[:]) }

// processKey is random, so that a fingerprint means nothing in another process.
var processKey = sync.OnceValue(func() []byte {
	key := make([]byte, sha256.Size)
	// It never returns an error: without randomness the process ends.
	_, _ = rand.Read(key)
	return key
})

// takeFingerprints returns the fingerprints of data, sorted, and wipes the values.
func takeFingerprints(data map[string][]byte) []fingerprint {
	prints := make([]fingerprint, 0, len(data))
	for key, value := range data {
		prints = append(prints, fingerprintOf(key, value))
		clear(value)
	}
	slices.SortFunc(prints, fingerprint.compare)
	return prints
}

func fingerprintOf(key string, value []byte) fingerprint {
	mac := hmac.New(sha256.New, processKey())
	// The length separates the key from the value.
	_, _ = mac.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(key))))
	_, _ = mac.Write([]byte(key))
	_, _ = mac.Write(value)
	return fingerprint(mac.Sum(nil)[:len(fingerprint{})])
}

// compareContent compares the desired data of a Secret, in base64, with fingerprints. Keys that are not desired do not
// count: other field managers own them, or the digest of the manifest has changed. Keys that the pointers of ignore
// name do not count either.
func compareContent(desired map[string]string, ignore []string, prints []fingerprint) plan.Content {
	for key, text := range desired {
		if ignoresData(ignore, key) {
			continue
		}
		value, err := base64.StdEncoding.DecodeString(text)
		_, same := slices.BinarySearchFunc(prints, fingerprintOf(key, value), fingerprint.compare)
		clear(value)
		if err != nil || !same {
			return plan.ContentDifferent
		}
	}
	return plan.ContentSame
}

// ignoresData reports whether one of the JSON pointers names the key of data, or all of data.
func ignoresData(pointers []string, key string) bool {
	return slices.ContainsFunc(managedfields.Pointers(pointers), func(tokens []string) bool {
		return slices.Equal(tokens, []string{"data"}) || slices.Equal(tokens, []string{"data", key})
	})
}

// dataOf returns the data of a Secret, in memory of its own.
func dataOf(secret *unstructured.Unstructured) map[string][]byte {
	data := map[string][]byte{}
	encoded, _ := secret.Object["data"].(map[string]any)
	for key, value := range encoded {
		text, _ := value.(string)
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
			data[key] = decoded
		}
	}
	// An API server answers without stringData. A fake API server may answer with it.
	plain, _ := secret.Object["stringData"].(map[string]any)
	for key, value := range plain {
		if text, ok := value.(string); ok {
			data[key] = []byte(text)
		}
	}
	return data
}

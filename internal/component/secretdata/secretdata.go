// Package secretdata compares the values of Secrets without keeping them: a fingerprint stands for a key and its value.
package secretdata

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync"
)

// Fingerprint stands for one key of a Secret and its value. It means nothing in another process: it is made with a
// random key, so the value cannot be found by trying (invariant L9). The zero value stands for no value.
type Fingerprint [16]byte

// Compare orders fingerprints.
func (f Fingerprint) Compare(other Fingerprint) int { return bytes.Compare(f[:], other[:]) }

// processKey is random, so that a fingerprint means nothing in another process.
var processKey = sync.OnceValue(func() []byte {
	key := make([]byte, sha256.Size)
	// It never returns an error: without randomness the process ends.
	_, _ = rand.Read(key)
	return key
})

// Of returns the fingerprint of a value.
func Of(key string, value []byte) Fingerprint {
	mac := hmac.New(sha256.New, processKey())
	// The length separates the key from the value.
	_, _ = mac.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(key))))
	_, _ = mac.Write([]byte(key))
	_, _ = mac.Write(value)
	return Fingerprint(mac.Sum(nil)[:len(Fingerprint{})])
}

// OfBase64 returns the fingerprint of a value in base64, as a manifest has it. Malformed text has that of no value.
func OfBase64(key, text string) Fingerprint {
	value, err := base64.StdEncoding.DecodeString(text)
	defer clear(value)
	if err != nil {
		return Fingerprint{}
	}
	return Of(key, value)
}

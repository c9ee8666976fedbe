package observe

import (
	"encoding/base64"
	"slices"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/secretdata"
	"github.com/espalier-dev/espalier/internal/managedfields"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// takeFingerprints returns the fingerprints of data, sorted, and wipes the values.
func takeFingerprints(data map[string][]byte) []secretdata.Fingerprint {
	prints := make([]secretdata.Fingerprint, 0, len(data))
	for key, value := range data {
		prints = append(prints, secretdata.Of(key, value))
		clear(value)
	}
	slices.SortFunc(prints, secretdata.Fingerprint.Compare)
	return prints
}

// compareContent compares the desired data of a Secret with what is there. Keys that are not desired do not count:
// other field managers own them, or the digest of the manifest has changed. Keys that the pointers of ignore name do
// not count either.
func compareContent(
	desired map[string]secretdata.Fingerprint, ignore []string, prints []secretdata.Fingerprint,
) plan.Content {
	for key, wanted := range desired {
		if len(ignore) > 0 && ignoresData(ignore, key) {
			continue
		}
		if _, same := slices.BinarySearchFunc(prints, wanted, secretdata.Fingerprint.Compare); !same {
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

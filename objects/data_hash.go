package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/espalier-dev/espalier/internal/gotype"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DataHash returns a digest of what ConfigMaps and Secrets hold, for an annotation of a pod template: the pods are
// replaced when it changes. It depends on the order of the objects. A nil object counts as one that holds nothing.
//
// Of a ConfigMap it is a digest of the content. Of a Secret it is one of the UID and the resource version, since people
// who may see the annotation could guess a short secret from a digest of it. So it also changes with the metadata of a
// Secret. DataHash returns an error for objects of other types.
func DataHash(sources ...client.Object) (string, error) {
	held := make([]any, len(sources))
	for i, source := range sources {
		if gotype.IsNil(source) {
			continue
		}
		switch source := source.(type) {
		case *corev1.ConfigMap:
			held[i] = []any{source.Data, source.BinaryData}
		case *corev1.Secret:
			held[i] = []any{source.UID, source.ResourceVersion}
		default:
			return "", fmt.Errorf("unable to hash the data of %T %s: it is neither a ConfigMap nor a Secret",
				source, client.ObjectKeyFromObject(source))
		}
	}
	content, err := json.Marshal(held) // the keys of maps are sorted
	if err != nil {
		return "", fmt.Errorf("unable to hash data: %w", err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16]), nil
}

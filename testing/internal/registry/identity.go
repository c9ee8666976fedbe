package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Key names an object.
type Key struct {
	Kind            schema.GroupKind
	Namespace, Name string
}

// String returns the kind, without its group, and the name, such as "ConfigMap ns/one".
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind.Kind + " " + k.Name
	}
	return k.Kind.Kind + " " + k.Namespace + "/" + k.Name
}

// UID returns the UID of an object that was created without one, or was given without one. Ended is how many objects of
// its name there were before.
func UID(key Key, ended int) types.UID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%s/%s/%d",
		key.Kind.Group, key.Kind.Kind, key.Namespace, key.Name, ended))
	text := hex.EncodeToString(sum[:16])
	return types.UID(text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:])
}

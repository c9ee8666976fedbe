package engine

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// OwnerText names the resource that a component belongs to, for the annotation that tells people whose an object is. It has the kind
// and the UID: two kinds, or two resources that had the same name one after the other, never share an object.
func OwnerText(kind schema.GroupKind, name types.NamespacedName, uid types.UID) string {
	return strings.Join([]string{kind.String(), name.Namespace, name.Name, string(uid)}, "/")
}

// OwnerID is the owner as the value of a label: 52 characters.
func OwnerID(text string) string {
	sum := sha256.Sum256([]byte(text))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

package engine

import (
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// OwnerText names the resource that a component belongs to, for an annotation on its objects that people read. It has
// the kind and the UID, so that resources of two kinds, or two resources that had the same name one after the other,
// never share an object. The cluster of the resource is named unless it is empty, as it is for objects in that cluster.
// So resources of two clusters never share an object either.
func OwnerText(kind schema.GroupKind, name types.NamespacedName, cluster string, uid types.UID) string {
	parts := []string{kind.String(), name.Namespace, name.Name, cluster, string(uid)}
	if cluster == "" {
		parts = slices.Delete(parts, 3, 4)
	}
	return strings.Join(parts, "/")
}

// OwnerID is the owner as the value of a label: 52 characters.
func OwnerID(text string) string {
	sum := sha256.Sum256([]byte(text))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

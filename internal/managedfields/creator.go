package managedfields

import (
	"crypto/sha256"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
)

// The managed fields of a created object do not tell what its creator set from what the API server added. So the name
// of the creator tells it: it has a digest of the fields that the creator set. As long as the same fields are wanted,
// all others are of the API server.

// creatorDigest is the length of the digest in the name of a creator, which follows the name of the manager and an @.
const creatorDigest = 8

// Creator returns the name under which a manager creates the object of the configuration. It is the name of the manager
// alone if there is no room for a digest.
//
// The digest is of the names of fields and the lengths of lists, not of values. It is stored: a change of it would make
// objects look as if other fields had been set.
func (c Configuration) Creator(manager string) string {
	if len(manager)+1+creatorDigest > validation.FieldManagerMaxLength {
		return manager
	}
	fields := sha256.New()
	writeFields(fields, c.body())
	return manager + "@" + digestText.EncodeToString(fields.Sum(nil))[:creatorDigest]
}

func writeFields(to hash.Hash, value any) {
	switch value := value.(type) {
	case map[string]any:
		io.WriteString(to, "{")
		for _, name := range slices.Sorted(maps.Keys(value)) {
			io.WriteString(to, name+"\x00")
			writeFields(to, value[name])
		}
		io.WriteString(to, "}")
	case []any:
		io.WriteString(to, "[")
		for _, item := range value {
			writeFields(to, item)
		}
		io.WriteString(to, "]")
	default:
		io.WriteString(to, ".")
	}
}

// ManagerOfCreator returns the manager that creates under that name, or the name if it is none of a creator.
func ManagerOfCreator(name string) string {
	if at := strings.LastIndexByte(name, '@'); at > 0 && len(name)-at-1 == creatorDigest {
		return name[:at]
	}
	return name
}

package inventory

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// maxName is how long the name of an inventory may be, which leaves room for the number of a chunk in the name of an object.
const maxName = 253 - len("-1234567890")

// ObjectName is a name for the inventory of a component, for [Options]. It is the same for the same owner and prefix (that of the
// labels and annotations on dependents), differs from that of any other, and shows whose inventory it is as far as that fits.
func ObjectName(prefix, kind string, owner types.NamespacedName, uid types.UID) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", prefix, kind, owner.Namespace, owner.Name, uid))
	hash := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))[:20]
	suffix := "-inventory-" + hash
	clear := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, kind+"-"+owner.Name)
	clear = strings.Trim(clear[:min(len(clear), maxName-len(suffix))], "-")
	return strings.TrimPrefix(clear+suffix, "-")
}

// chunkName is the name of the object that has a chunk.
func (o *Options) chunkName(chunk int) string {
	return o.Name + "-" + strconv.Itoa(chunk)
}

// chunkNumber is the number of the chunk in the object of that name.
func (o *Options) chunkNumber(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, o.Name+"-")
	if !ok {
		return 0, false
	}
	chunk, err := strconv.Atoi(digits)
	return chunk, err == nil && chunk >= 0 && o.chunkName(chunk) == name
}

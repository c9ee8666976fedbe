package inventory

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// maxName is how long the name of an inventory may be, so that the number of a bucket fits behind it.
const maxName = 253 - len("-1234567890")

// ObjectName is a name for the inventory of a component, for [Options]. It is the same for the same owner and prefix
// (the prefix of the labels and annotations on dependents), and differs from the name of any other inventory. It begins
// with the kind and the name of the owner, as far as they fit.
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

// bucketName is the name of the object that is a bucket.
func (o *Options) bucketName(number int) string {
	return o.Name + "-" + strconv.Itoa(number)
}

// bucketNumber is the number of the bucket in the object of that name.
func (o *Options) bucketNumber(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, o.Name+"-")
	if !ok {
		return 0, false
	}
	number, err := strconv.Atoi(digits)
	return number, err == nil && number >= 0 && o.bucketName(number) == name
}

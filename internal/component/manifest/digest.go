package manifest

import (
	"crypto/sha256"
	"encoding/base32"
	"maps"
	"math"
	"slices"
	"strconv"
)

var digestEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// annotationLastApplied is where kubectl keeps a copy of the whole object.
const annotationLastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// digestOf returns a digest of content: the first 16 bytes of the SHA-256 of its canonical form. It outlives the process and
// versions of libraries: objects would be written again, and some recreated, if it changed.
func digestOf(content map[string]any, confidential bool) string {
	if confidential {
		content = withoutValues(content)
	}
	sum := sha256.Sum256(appendMap(make([]byte, 0, 2048), content))
	return digestEncoding.EncodeToString(sum[:16])
}

// withoutValues returns a Secret with the keys of its data, and none of the values: they could be guessed from a digest.
func withoutValues(content map[string]any) map[string]any {
	content = maps.Clone(content)
	if data, ok := content["data"].(map[string]any); ok {
		content["data"] = blank(data)
	}
	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if _, ok := annotations[annotationLastApplied]; ok {
		annotations = maps.Clone(annotations)
		annotations[annotationLastApplied] = ""
		metadata = maps.Clone(metadata)
		metadata["annotations"] = annotations
		content["metadata"] = metadata
	}
	return content
}

func blank(data map[string]any) map[string]any {
	keys := make(map[string]any, len(data))
	for key := range data {
		keys[key] = ""
	}
	return keys
}

// appendValue appends the canonical form of a JSON value: no space, keys sorted by their bytes, and one way to write each
// number and each string.
func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		return appendFloat(b, v)
	case string:
		return appendText(b, v)
	case []any:
		b = append(b, '[')
		for i, element := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, element)
		}
		return append(b, ']')
	case map[string]any:
		return appendMap(b, v)
	default:
		return append(b, "null"...)
	}
}

func appendMap(b []byte, m map[string]any) []byte {
	b = append(b, '{')
	first := true
	for _, key := range slices.Sorted(maps.Keys(m)) {
		// Go types have written this, or not, depending on the version of a library. It means nothing.
		if key == "creationTimestamp" && m[key] == nil {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendText(b, key), ':')
		b = appendValue(b, m[key])
	}
	return append(b, '}')
}

// appendFloat writes whole numbers like integers: decoders do not agree on what 1.0 is.
func appendFloat(b []byte, f float64) []byte {
	if f == math.Trunc(f) && f >= math.MinInt64 && f < math.MaxInt64 {
		return strconv.AppendInt(b, int64(f), 10)
	}
	return strconv.AppendFloat(b, f, 'e', -1, 64)
}

func appendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

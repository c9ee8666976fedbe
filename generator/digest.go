package generator

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strings"
)

// ComponentDigest returns a digest of what a component is configured to be, in 26 lower-case letters and digits. It
// changes if and only if one of the following changes:
//
//   - spec, as JSON. The order of fields and of map entries does not count.
//   - annotations under prefix, except for those that reconcilers write, and for [AnnotationAbandon] and
//     [AnnotationAllowEmpty]. Labels, other annotations and the status do not count.
//   - references. They identify the state of each thing that the component refers to, under a name that the caller
//     chooses, such as its path in the spec.
//
// The digest is stored where others may read it. Therefore references must not contain anything from which a secret can
// be learnt or a guess verified. Use the UID and resourceVersion of a Secret, never its data or a digest of its data.
// If the content has to count, use an HMAC with a key that is stored nowhere.
//
// It is an error if spec cannot be written as JSON.
func ComponentDigest(
	spec any, annotations map[string]string, prefix string, references map[string]string,
) (string, error) {
	canonical, err := canonicalJSON(spec)
	if err != nil {
		return "", fmt.Errorf("spec: %w", err)
	}
	// The fields are named in the text, so what is in one of them cannot pass for something in another.
	text, err := json.Marshal(struct {
		Annotations map[string]string `json:"annotations,omitempty"`
		References  map[string]string `json:"references,omitempty"`
		Spec        json.RawMessage   `json:"spec"`
	}{ownAnnotations(annotations, prefix), references, canonical})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])), nil
}

// canonicalJSON returns value as JSON with sorted keys, so that the order of the fields of a Go struct does not count.
func canonicalJSON(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var generic any
	if err := decoder.Decode(&generic); err != nil {
		return nil, err
	}
	return json.Marshal(generic)
}

// ownAnnotations returns the annotations under prefix, except for the ones that reconcilers write. The resource may
// itself be an object of another component.
func ownAnnotations(annotations map[string]string, prefix string) map[string]string {
	if prefix == "" {
		return nil
	}
	own := map[string]string{}
	for key, value := range annotations {
		name, ok := strings.CutPrefix(key, prefix+"/")
		switch name {
		case AnnotationOwnerID, AnnotationDigest, AnnotationAbandon, AnnotationAllowEmpty:
		default:
			if ok {
				own[name] = value
			}
		}
	}
	return own
}

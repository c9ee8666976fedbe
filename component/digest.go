package component

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strings"
)

// ComponentDigest identifies what a component asks for, in 26 letters and digits, lower case. It changes when any of the
// following does, and with nothing else:
//
//   - spec, as JSON; neither the order of fields nor that of map entries counts;
//   - those of annotations that are under prefix, but for the ones that reconcilers write: to touch any other annotation,
//     a label, or the status is no change;
//   - references: for each thing that the component refers to, under a name of the caller's choice, such as its path in
//     the spec, a text that identifies its state.
//
// The digest is stored where others may read it, so a text in references must not tell anything about a secret, nor let
// a guess be verified: use the UID and resourceVersion of a Secret, never its data nor a digest of them. Where content has to
// count rather than versions, use an HMAC with a key that is stored nowhere.
//
// The error, if any, says that spec cannot be written as JSON.
func ComponentDigest(spec any, annotations map[string]string, prefix string, references map[string]string) (string, error) {
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

// canonicalJSON takes a detour through maps, whose keys are sorted: a field that moves within its Go struct is no change.
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

// ownAnnotations leaves out what reconcilers write. The resource may itself be an object of another component.
func ownAnnotations(annotations map[string]string, prefix string) map[string]string {
	if prefix == "" {
		return nil
	}
	own := map[string]string{}
	for key, value := range annotations {
		name, ok := strings.CutPrefix(key, prefix+"/")
		if ok && name != AnnotationOwnerID && name != AnnotationDigest {
			own[name] = value
		}
	}
	return own
}

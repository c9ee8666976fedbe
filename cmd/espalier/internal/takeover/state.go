package takeover

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Annotation is on a component from the first write until the takeover is finalized or rolled back. It does not have
// the prefix of an operator: the annotations with our prefix are part of what the component is made from.
const Annotation = "migrate.espalier.dev/state"

// State is what has to be known to finish a takeover, and to roll it back.
type State struct {
	Names
	// Status has the fields of the status that the engines share, as the old operator left them.
	Status map[string]any `json:"status"`
}

// maxState is how long the annotation may be. An object has room for 256 KiB of annotations.
const maxState = 240 << 10

// maxContent is how long the content of the annotation may be once it is unpacked.
const maxContent = 16 << 20

// encode returns the value of the annotation.
func (s *State) encode() (string, error) {
	content, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	text := base64.NewEncoder(base64.StdEncoding, &packed)
	// The writers write into memory, which does not fail.
	zip, err := gzip.NewWriterLevel(text, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	_, err = zip.Write(content)
	if err := errors.Join(err, zip.Close(), text.Close()); err != nil {
		return "", err
	}
	if packed.Len() > maxState {
		return "", fmt.Errorf("its inventory makes %d KiB, and an annotation that keeps it for a rollback has %d KiB",
			packed.Len()>>10, maxState>>10)
	}
	return packed.String(), nil
}

// decode reads the value of the annotation.
func decode(value string) (*State, error) {
	zip, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader([]byte(value))))
	if err != nil {
		return nil, fmt.Errorf("the annotation %s is damaged: %w", Annotation, err)
	}
	content, err := io.ReadAll(io.LimitReader(zip, maxContent+1))
	if err == nil && len(content) > maxContent {
		err = fmt.Errorf("it has more than %d MiB", maxContent>>20)
	}
	state := &State{}
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(content))
		decoder.UseNumber()
		err = decoder.Decode(state)
	}
	if err != nil {
		return nil, fmt.Errorf("the annotation %s is damaged: %w", Annotation, err)
	}
	return state, nil
}

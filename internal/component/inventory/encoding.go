package inventory

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/apis"

	"k8s.io/apimachinery/pkg/types"
)

// A chunk is stored as two lines and a body:
//
//	espalier-inventory/1 <SHA-256 of all that follows this line, in hexadecimal>
//	<header, JSON>
//	<records, a line of JSON each, compressed by gzip>
const (
	formatName    = "espalier-inventory/"
	formatVersion = "1"
)

// maxDecoded bounds what a chunk may be once it is not compressed any more. It is far more than what is ever written.
const maxDecoded = 64 << 20

// writers are used again, since each has tables of a megabyte. They are the fastest: most of what is left of a record are UIDs and
// digests, which nothing makes smaller, so that the default would save 6 % of the room and take three times as long.
var writers = sync.Pool{New: func() any {
	// The only error is that of a level that does not exist.
	writer, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	return writer
}}

// header is what a chunk says of itself.
type header struct {
	// Owner is the UID of the resource whose inventory it is.
	Owner types.UID `json:"owner"`
	// Chunk is its number.
	Chunk int `json:"chunk"`
	// Generation counts the saves. Of two chunks with the same record the one with the higher generation tells.
	Generation int64 `json:"generation"`
	// Chunks are the numbers of all chunks that must be there. Only the root has it.
	Chunks []int `json:"chunks,omitempty"`
	// Records is how many there are.
	Records int `json:"records"`
}

// encode returns a chunk with these records.
func encode(h header, records []*apis.InventoryRecord) ([]byte, error) {
	h.Records = len(records)
	head, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	content.Write(head)
	content.WriteByte('\n')
	body := writers.Get().(*gzip.Writer)
	defer writers.Put(body)
	body.Reset(&content)
	lines := json.NewEncoder(body)
	for _, record := range records {
		if err := lines.Encode(record); err != nil {
			return nil, err
		}
	}
	if err := body.Close(); err != nil {
		return nil, err
	}
	chunk := []byte(formatName + formatVersion + " " + checksum(content.Bytes()) + "\n")
	return append(chunk, content.Bytes()...), nil
}

func checksum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// isChunk tells whether content looks like a chunk, of whatever version.
func isChunk(content []byte) bool {
	return bytes.HasPrefix(content, []byte(formatName))
}

// decode reads a chunk, and refuses one that was changed in any way since it was written.
func decode(chunk []byte) (header, []apis.InventoryRecord, error) {
	first, content, ok := bytes.Cut(chunk, []byte("\n"))
	format, sum, ok2 := strings.Cut(string(first), " ")
	version, ok3 := strings.CutPrefix(format, formatName)
	if !ok || !ok2 || !ok3 {
		return header{}, nil, errors.New("it is no chunk of an inventory")
	}
	if version != formatVersion {
		return header{}, nil, fmt.Errorf("its format %q is not known", version)
	}
	if checksum(content) != sum {
		return header{}, nil, errors.New("its checksum is wrong")
	}
	head, body, ok := bytes.Cut(content, []byte("\n"))
	if !ok {
		return header{}, nil, errors.New("it has no records")
	}
	var h header
	if err := strict(bytes.NewReader(head)).Decode(&h); err != nil {
		return header{}, nil, fmt.Errorf("its header cannot be read: %w", err)
	}
	records, err := decodeRecords(body)
	if err != nil {
		return header{}, nil, fmt.Errorf("its records cannot be read: %w", err)
	}
	if len(records) != h.Records {
		return header{}, nil, fmt.Errorf("it has %d records of %d", len(records), h.Records)
	}
	return h, records, nil
}

func decodeRecords(body []byte) ([]apis.InventoryRecord, error) {
	plain, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	lines := strict(io.LimitReader(plain, maxDecoded))
	var records []apis.InventoryRecord
	for {
		var record apis.InventoryRecord
		err := lines.Decode(&record)
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
}

// strict refuses members that are not known: what they say would be lost with the next write.
func strict(r io.Reader) *json.Decoder {
	decoder := json.NewDecoder(r)
	decoder.DisallowUnknownFields()
	return decoder
}

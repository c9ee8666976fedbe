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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A bucket is stored as two lines and a body:
//
//	espalier-inventory/1 <SHA-256 of all that follows this line, in hexadecimal>
//	<header, JSON>
//	<records, a line of JSON each, compressed by gzip>
const (
	formatName    = "espalier-inventory/"
	formatVersion = "1"
)

// maxDecoded limits the size of the records of a bucket without compression. It is far more than what is ever written.
var maxDecoded int64 = 64 << 20

// writers are used again, since each has tables of a megabyte. They compress fast: a record consists mostly of UIDs and
// digests, which do not compress, so the default level would save 6 % of the size and take three times as long.
var writers = sync.Pool{New: func() any {
	// It fails only for a level that does not exist.
	writer, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	return writer
}}

// header is what a bucket says of itself.
type header struct {
	// Owner is the UID of the resource that has the inventory.
	Owner types.UID `json:"owner"`
	// Bucket is its number.
	Bucket int `json:"bucket"`
	// Complete reports whether all buckets existed before this one was written.
	Complete bool `json:"complete,omitempty"`
	// Records is how many there are.
	Records int `json:"records"`
}

// encode returns the content of a bucket with these records.
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
	first := []byte(formatName + formatVersion + " " + checksum(content.Bytes()) + "\n")
	return append(first, content.Bytes()...), nil
}

func checksum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Read returns the records that an object keeps, a Secret or a ConfigMap. ok is false, without an error, if it keeps
// none.
func Read(object client.Object) (records []apis.InventoryRecord, ok bool, err error) {
	content := contentOf(object)
	if !bytes.HasPrefix(content, []byte(formatName)) {
		return nil, false, nil
	}
	_, records, err = decode(content)
	if err == nil {
		err = Validate(records)
	}
	if err != nil {
		return nil, true, fmt.Errorf("the records of %s cannot be read: %w", client.ObjectKeyFromObject(object), err)
	}
	return records, true, nil
}

// decode reads the content of a bucket, and refuses one that was changed in any way since it was written.
func decode(bucket []byte) (header, []apis.InventoryRecord, error) {
	first, content, ok := bytes.Cut(bucket, []byte("\n"))
	format, sum, ok2 := strings.Cut(string(first), " ")
	version, ok3 := strings.CutPrefix(format, formatName)
	if !ok || !ok2 || !ok3 {
		return header{}, nil, errors.New("it is no bucket of an inventory")
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

// strict refuses unknown members: the next write would lose them.
func strict(r io.Reader) *json.Decoder {
	decoder := json.NewDecoder(r)
	decoder.DisallowUnknownFields()
	return decoder
}

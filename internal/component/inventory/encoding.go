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
	"github.com/espalier-dev/espalier/internal/component/plan"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A bucket is stored as two lines and a body:
//
//	espalier-inventory/1 <SHA-256 of all that follows this line, in hexadecimal>
//	<header, JSON>
//	<records, a line of JSON each, compressed by gzip>
//
// An operator that is rolled back keeps what it does not know of a header and of a record, also if it changes the
// record, and does without it. So a later release that adds a member raises the version if an operator that ignores the
// member could delete or orphan an object, or if the member is inside of another one; if it does not, it must expect
// that the record has changed beside the member. An operator refuses a version that it does not know. The status has no
// version, and loses the member with the first write.
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

// encode returns the content of a bucket with these records, and with what is unknown of them.
func encode(h header, records []*apis.InventoryRecord, others unknown) ([]byte, error) {
	h.Records = len(records)
	head, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	content.Write(withMembers(head, others.header))
	content.WriteByte('\n')
	body := writers.Get().(*gzip.Writer)
	defer writers.Put(body)
	body.Reset(&content)
	for _, record := range records {
		line, err := json.Marshal(record)
		if err != nil {
			return nil, err
		}
		line = withMembers(line, others.records[plan.KeyOf(*record)])
		if _, err := body.Write(append(line, '\n')); err != nil {
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
	_, records, _, err = decode(content)
	if err == nil {
		err = Validate(records)
	}
	if err != nil {
		return nil, true, fmt.Errorf("the records of %s cannot be read: %w", client.ObjectKeyFromObject(object), err)
	}
	return records, true, nil
}

// decode reads the content of a bucket, and refuses one that was changed in any way since it was written.
func decode(bucket []byte) (header, []apis.InventoryRecord, unknown, error) {
	refuse := func(err error) (header, []apis.InventoryRecord, unknown, error) {
		return header{}, nil, unknown{}, err
	}
	first, content, ok := bytes.Cut(bucket, []byte("\n"))
	format, sum, ok2 := strings.Cut(string(first), " ")
	version, ok3 := strings.CutPrefix(format, formatName)
	if !ok || !ok2 || !ok3 {
		return refuse(errors.New("it is no bucket of an inventory"))
	}
	if version != formatVersion {
		return refuse(fmt.Errorf("its format %q is not known", version))
	}
	if checksum(content) != sum {
		return refuse(errors.New("its checksum is wrong"))
	}
	head, body, ok := bytes.Cut(content, []byte("\n"))
	if !ok {
		return refuse(errors.New("it has no records"))
	}
	h, others, err := decodeObject[header](head, headerMembers)
	if err != nil {
		return refuse(fmt.Errorf("its header cannot be read: %w", err))
	}
	records, ofRecords, err := decodeRecords(body)
	if err != nil {
		return refuse(fmt.Errorf("its records cannot be read: %w", err))
	}
	if len(records) != h.Records {
		return refuse(fmt.Errorf("it has %d records of %d", len(records), h.Records))
	}
	return h, records, unknown{header: others, records: ofRecords}, nil
}

// decodeRecords returns records, and the members of them that are not known.
func decodeRecords(body []byte) (records []apis.InventoryRecord, others map[plan.Key]string, err error) {
	plain, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	lines := json.NewDecoder(io.LimitReader(plain, maxDecoded))
	for {
		var line json.RawMessage
		err := lines.Decode(&line)
		if errors.Is(err, io.EOF) {
			return records, others, nil
		}
		if err != nil {
			return nil, nil, err
		}
		record, members, err := decodeObject[apis.InventoryRecord](line, recordMembers)
		if err != nil {
			return nil, nil, err
		}
		records = append(records, record)
		if members != "" {
			if others == nil {
				others = make(map[plan.Key]string)
			}
			others[plan.KeyOf(record)] = members
		}
	}
}

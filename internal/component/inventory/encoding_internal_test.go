package inventory

import (
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"

	"github.com/google/go-cmp/cmp"
)

func sample(t testing.TB) (header, []*apis.InventoryRecord, []byte) {
	t.Helper()
	h := header{Owner: "the-owner", Bucket: 1, Complete: true}
	given := []*apis.InventoryRecord{
		{Version: "v1", Kind: "ConfigMap", Namespace: "a", Name: "b", Phase: apis.PhaseReady, Message: "a\nline <&>"},
		{Version: "v1", Kind: "Namespace", Name: "a", PurgeOrder: new(int16)},
	}
	bucket, err := encode(h, given, unknown{})
	if err != nil {
		t.Fatal(err)
	}
	h.Records = 2
	return h, given, bucket
}

func TestDecodeReadsWhatEncodeWrote(t *testing.T) {
	want, given, bucket := sample(t)
	got, records, others, err := decode(bucket)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]apis.InventoryRecord{*given[0], *given[1]}, records); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if others.header != "" || len(others.records) > 0 {
		t.Errorf("unknown are %v, want none", others)
	}
	again, err := encode(want, given, others)
	if err != nil || !bytes.Equal(again, bucket) {
		t.Errorf("the same records make the content %q (%v), want %q", again, err, bucket)
	}
}

// TestDecodeNoticesAnyDamage changes each byte, and cuts the bucket off at each.
func TestDecodeNoticesAnyDamage(t *testing.T) {
	_, _, bucket := sample(t)
	for i := range bucket {
		for _, flip := range []byte{1, 0x20, 0x80} {
			damaged := bytes.Clone(bucket)
			damaged[i] ^= flip
			if _, _, _, err := decode(damaged); err == nil {
				t.Errorf("byte %d became %q and was decoded, want an error", i, damaged[i])
			}
		}
		if _, _, _, err := decode(bucket[:i]); err == nil {
			t.Errorf("all after byte %d is gone and was decoded, want an error", i)
		}
	}
	if _, _, _, err := decode(append(bytes.Clone(bucket), '\n')); err == nil {
		t.Error("a byte too many was decoded, want an error")
	}
}

// sign returns a bucket of a version.
func sign(version, content string) string {
	return formatName + version + " " + checksum([]byte(content)) + "\n" + content
}

// body returns lines as they are in a bucket.
func body(lines string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(lines))
	_ = w.Close()
	return b.String()
}

func TestDecodeRefuses(t *testing.T) {
	before := maxDecoded
	t.Cleanup(func() { maxDecoded = before })
	maxDecoded = 1 << 10
	const one = `{"version":"v1","kind":"K","name":"n"}` + "\n"
	tests := map[string]struct{ bucket, want string }{
		"nothing":         {"", "it is no bucket of an inventory"},
		"something else":  {"apiVersion: v1\nkind: List\n", "it is no bucket of an inventory"},
		"a later format":  {sign("2", "x"), `its format "2" is not known`},
		"another content": {strings.Replace(sign("1", "x"), "x", "y", 1), "its checksum is wrong"},
		"no body":         {sign("1", "{}"), "it has no records"},
		"no header":       {sign("1", "\n"), "its header cannot be read: EOF"},
		"a list":          {sign("1", "[]\n"), "its header cannot be read: json: cannot unmarshal array into Go value of type inventory.header"},
		"no compression":  {sign("1", `{"records":1}`+"\n"+one), "its records cannot be read: gzip: invalid header"},
		"no text":         {sign("1", `{"records":1}`+"\n"+body(`{"extra":1,"name":2}`)), "its records cannot be read: json: cannot unmarshal number into Go struct field InventoryRecord.name of type string"},
		"a later type":    {sign("1", `{"records":1}`+"\n"+body(`{"extra":1,"managedTypes":[{"scope":1}]}`)), `its records cannot be read: json: unknown field "scope"`},
		"half a record":   {sign("1", `{"records":1}`+"\n"+body(one[:20])), "its records cannot be read: unexpected EOF"},
		"a record less":   {sign("1", `{"records":2}`+"\n"+body(one)), "it has 1 records of 2"},
		"far too many to hold": {
			sign("1", `{"records":1}`+"\n"+body(strings.Repeat(" ", int(maxDecoded))+one)), "it has 0 records of 1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, _, err := decode([]byte(tc.bucket))
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestDecodeKeepsWhatALaterReleaseWrote reads a bucket with members that this release does not know, and writes it again.
func TestDecodeKeepsWhatALaterReleaseWrote(t *testing.T) {
	const (
		inHeader = `"writer":"0.9.0"`
		inRecord = `"note":"a\u003cb <\/> é","large":12345678901234567890.10,"deep":{"b":[1, {"a":null}],"a":1e2},"Note":{}`
		known    = `{"version":"v1","kind":"ConfigMap","name":"a"`
		second   = `{"version":"v1","kind":"Secret","name":"b","phase":"Ready"}`
	)
	later := sign("1", `{"writer":"0.9.0","owner":"u","bucket":1,"records":2}`+"\n"+
		body(`{"version":"v1", "note":"a\u003cb <\/> é", "kind":"ConfigMap" , "large":12345678901234567890.10,`+"\n"+
			`"deep":{"b":[1, {"a":null}],"a":1e2}, "name":"a","Note":{}}`+second))
	h, records, others, err := decode([]byte(later))
	if err != nil {
		t.Fatal(err)
	}
	records[0].Phase = apis.PhaseReady
	written, err := encode(h, []*apis.InventoryRecord{&records[0], &records[1]}, others)
	if err != nil {
		t.Fatal(err)
	}
	want := sign("1", `{"owner":"u","bucket":1,"records":2,`+inHeader+"}\n"+
		body(known+`,"phase":"Ready",`+inRecord+"}\n"+second+"\n"))
	if diff := cmp.Diff(plain(t, []byte(want)), plain(t, written)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, kept := range []unknown{others.of([]*apis.InventoryRecord{&records[1]}), others.of(nil)} {
		if kept.header != inHeader || len(kept.records) > 0 {
			t.Errorf("unknown are %v without the record, want those of the header alone", kept)
		}
	}
}

// plain returns what the header and the records of a bucket say.
func plain(t testing.TB, bucket []byte) string {
	t.Helper()
	lines := bytes.SplitN(bucket, []byte("\n"), 3)
	reader, err := gzip.NewReader(bytes.NewReader(lines[2]))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(lines[1]) + "\n" + string(text)
}

// FuzzDecodeRecords: what is read is written, what is written is read.
func FuzzDecodeRecords(f *testing.F) {
	f.Add(`{"version":"v1","kind":"K","name":"n"}`)
	f.Add(`{"a":{"b":[1,"}"]},"version":"v1","A":"\"","kind":"K","name":"n","b":1}`)
	f.Fuzz(func(t *testing.T, lines string) {
		records, others, err := decodeRecords([]byte(body(lines)))
		if err != nil || Validate(records) != nil {
			return
		}
		var all []*apis.InventoryRecord
		for i := range records {
			all = append(all, &records[i])
		}
		bucket, err := encode(header{}, all, unknown{records: others})
		if err != nil {
			t.Fatal(err)
		}
		_, again, othersAgain, err := decode(bucket)
		if err != nil || !Equal(records, again) || !maps.Equal(others, othersAgain.records) {
			t.Errorf("%q was written as %q, and is read as %v with %v (%v)", lines, plain(t, bucket), again, othersAgain, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	_, _, bucket := sample(f)
	f.Add(bucket)
	f.Add([]byte(formatName + "1 x\n{}\n"))
	f.Fuzz(func(_ *testing.T, bucket []byte) {
		_, _, _, _ = decode(bucket)
		// Past the checksum, too.
		_, content, _ := bytes.Cut(bucket, []byte("\n"))
		_, _, _, _ = decode([]byte(formatName + formatVersion + " " + checksum(content) + "\n" + string(content)))
	})
}

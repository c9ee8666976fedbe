package inventory

import (
	"bytes"
	"compress/gzip"
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
	bucket, err := encode(h, given)
	if err != nil {
		t.Fatal(err)
	}
	h.Records = 2
	return h, given, bucket
}

func TestDecodeReadsWhatEncodeWrote(t *testing.T) {
	want, given, bucket := sample(t)
	got, records, err := decode(bucket)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]apis.InventoryRecord{*given[0], *given[1]}, records); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := encode(want, given)
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
			if _, _, err := decode(damaged); err == nil {
				t.Errorf("byte %d became %q and was decoded, want an error", i, damaged[i])
			}
		}
		if _, _, err := decode(bucket[:i]); err == nil {
			t.Errorf("all after byte %d is gone and was decoded, want an error", i)
		}
	}
	if _, _, err := decode(append(bytes.Clone(bucket), '\n')); err == nil {
		t.Error("a byte too many was decoded, want an error")
	}
}

func TestDecodeRefuses(t *testing.T) {
	before := maxDecoded
	t.Cleanup(func() { maxDecoded = before })
	maxDecoded = 1 << 10
	sign := func(version, content string) string {
		return formatName + version + " " + checksum([]byte(content)) + "\n" + content
	}
	body := func(lines string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(lines))
		_ = w.Close()
		return b.String()
	}
	const one = `{"version":"v1","kind":"K","name":"n"}` + "\n"
	tests := map[string]struct{ bucket, want string }{
		"nothing":         {"", "it is no bucket of an inventory"},
		"something else":  {"apiVersion: v1\nkind: List\n", "it is no bucket of an inventory"},
		"a later format":  {sign("2", "x"), `its format "2" is not known`},
		"another content": {strings.Replace(sign("1", "x"), "x", "y", 1), "its checksum is wrong"},
		"no body":         {sign("1", "{}"), "it has no records"},
		"no header":       {sign("1", "\n"), "its header cannot be read: EOF"},
		"a later header":  {sign("1", `{"extra":1}`+"\n"), `its header cannot be read: json: unknown field "extra"`},
		"no compression":  {sign("1", `{"records":1}`+"\n"+one), "its records cannot be read: gzip: invalid header"},
		"a later record":  {sign("1", `{"records":1}`+"\n"+body(`{"extra":1}`)), `its records cannot be read: json: unknown field "extra"`},
		"half a record":   {sign("1", `{"records":1}`+"\n"+body(one[:20])), "its records cannot be read: unexpected EOF"},
		"a record less":   {sign("1", `{"records":2}`+"\n"+body(one)), "it has 1 records of 2"},
		"far too many to hold": {
			sign("1", `{"records":1}`+"\n"+body(strings.Repeat(" ", int(maxDecoded))+one)), "it has 0 records of 1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := decode([]byte(tc.bucket))
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	_, _, bucket := sample(f)
	f.Add(bucket)
	f.Add([]byte(formatName + "1 x\n{}\n"))
	f.Fuzz(func(_ *testing.T, bucket []byte) {
		_, _, _ = decode(bucket)
		// Past the checksum, too.
		_, content, _ := bytes.Cut(bucket, []byte("\n"))
		_, _, _ = decode([]byte(formatName + formatVersion + " " + checksum(content) + "\n" + string(content)))
	})
}

package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"

	"github.com/google/go-cmp/cmp"
)

func named(names ...string) []apis.InventoryRecord {
	var all []apis.InventoryRecord
	for _, name := range names {
		name, message, _ := strings.Cut(name, "=")
		all = append(all, apis.InventoryRecord{Version: "v1", Kind: "K", Name: name, Message: message})
	}
	return all
}

// String is the layout in short: name@home, with the message behind the name.
func (l layout) String() string {
	var parts []string
	for i, r := range l.records {
		name := r.Name
		if r.Message != "" {
			name += "=" + r.Message
		}
		parts = append(parts, fmt.Sprintf("%s@%d", name, l.homes[i]))
	}
	return strings.Join(parts, " ")
}

func TestMerge(t *testing.T) {
	chunk := func(number int, generation int64, names ...string) found {
		return found{header: header{Chunk: number, Generation: generation}, records: named(names...)}
	}
	tests := map[string]struct {
		chunks []found
		want   string
		stale  map[int]bool
	}{
		"none":          {},
		"in order":      {chunks: []found{chunk(0, 1, "c", "a"), chunk(1, 1, "b")}, want: "a@0 b@1 c@0"},
		"the newer one": {chunks: []found{chunk(0, 1, "a=old", "b"), chunk(1, 2, "a=new")}, want: "a=new@1 b@0", stale: map[int]bool{0: true}},
		"wherever":      {chunks: []found{chunk(0, 2, "a=new"), chunk(1, 1, "a=old")}, want: "a=new@0", stale: map[int]bool{1: true}},
		"the later one": {chunks: []found{chunk(0, 1, "a=0"), chunk(1, 1, "a=1")}, want: "a=1@1", stale: map[int]bool{0: true}},
		"both are stale": {
			chunks: []found{chunk(0, 1, "a=0", "b=0"), chunk(1, 2, "b=1", "c=1"), chunk(2, 3, "c=2")},
			want:   "a=0@0 b=1@1 c=2@2", stale: map[int]bool{0: true, 1: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				got, stale := merge(tc.chunks)
				if got.String() != tc.want || !maps.Equal(stale, tc.stale) {
					t.Errorf("got %s, stale %v", got, stale)
				}
				slices.Reverse(tc.chunks)
			}
		})
	}
}

func TestChangeTo(t *testing.T) {
	// Each of the records takes 38 bytes, and a message 13 and its length more.
	stored := layout{records: named("a", "b", "c", "d"), homes: []int{0, 0, 1, 3}}
	tests := map[string]struct {
		from    layout
		to      []apis.InventoryRecord
		room    int
		want    string
		changed []int
	}{
		"the same":                       {from: stored, to: named("a", "b", "c", "d"), want: "a@0 b@0 c@1 d@3"},
		"another order":                  {from: stored, to: named("d", "b", "c", "a"), want: "d@3 b@0 c@1 a@0"},
		"a content":                      {from: stored, to: named("a", "b", "c=x", "d"), want: "a@0 b@0 c=x@1 d@3", changed: []int{1}},
		"one less":                       {from: stored, to: named("a", "c", "d"), want: "a@0 c@1 d@3", changed: []int{0}},
		"one more, with room":            {from: stored, to: named("a", "b", "c", "d", "e"), want: "a@0 b@0 c@1 d@3 e@1", changed: []int{1}},
		"one more, where it is written":  {from: stored, to: named("a", "b", "c", "d=x", "e"), want: "a@0 b@0 c@1 d=x@3 e@3", changed: []int{3}},
		"more than there is room":        {from: stored, to: named("a", "b", "c", "d", "e", "f", "g", "h", "i"), want: "a@0 b@0 c@1 d@3 e@1 f@3 g@4 h@4 i@5", changed: []int{1, 3, 4, 5}},
		"the first":                      {to: named("a", "b", "c"), want: "a@0 b@0 c@1", changed: []int{0, 1}},
		"too large for any, and yet put": {to: named("a", "b"), room: 10, want: "a@0 b@1", changed: []int{0, 1}},
		"none":                           {from: stored, changed: []int{0, 1, 3}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var chunks []int
			if len(tc.from.records) > 0 {
				chunks = []int{0, 1, 3}
			}
			if tc.room == 0 {
				tc.room = 100
			}
			got, changed := tc.from.changeTo(tc.to, chunks, tc.room)
			if got.String() != tc.want || !slices.Equal(slices.Sorted(maps.Keys(changed)), tc.changed) {
				t.Errorf("got %s, changed %v", got, slices.Sorted(maps.Keys(changed)))
			}
		})
	}
}

// TestDraft has chunks of two bytes per record.
func TestDraft(t *testing.T) {
	tests := map[string]struct {
		homes          []int
		stored, listed []int
		changed        []int
		limit          int
		want           [][]int
		chunks         []int
		err            string
	}{
		"nothing":        {homes: []int{0, 0, 1}, stored: []int{0, 1}, listed: []int{0, 1}, want: [][]int{nil, nil, nil}, chunks: []int{0, 1}},
		"one":            {homes: []int{0, 0, 1}, stored: []int{0, 1}, listed: []int{0, 1}, changed: []int{1}, want: [][]int{{1}, nil, nil}, chunks: []int{0, 1}},
		"the root":       {homes: []int{0, 0, 1}, stored: []int{0, 1}, listed: []int{0, 1}, changed: []int{0}, want: [][]int{nil, {0}, nil}, chunks: []int{0, 1}},
		"the first":      {homes: []int{0, 1}, changed: []int{0, 1}, want: [][]int{{1}, {0}, nil}, chunks: []int{0, 1}},
		"a new one":      {homes: []int{0, 1}, stored: []int{0}, listed: []int{0}, changed: []int{1}, want: [][]int{{1}, {0}, nil}, chunks: []int{0, 1}},
		"one not listed": {homes: []int{0, 4}, stored: []int{0, 4}, listed: []int{0}, want: [][]int{nil, {0}, nil}, chunks: []int{0, 4}},
		"one overflows": {
			homes: []int{0, 1, 1, 1, 1}, stored: []int{0, 1}, listed: []int{0, 1}, changed: []int{1}, limit: 5,
			want: [][]int{{2}, {0}, {1}}, chunks: []int{0, 1, 2},
		},
		"one overflows twice": {
			homes: []int{0, 1, 1, 1, 1, 1, 1, 1, 1}, stored: []int{0, 1}, listed: []int{0, 1}, changed: []int{1}, limit: 5,
			want: [][]int{{2, 3, 4}, {0}, {1}}, chunks: []int{0, 1, 2, 3, 4},
		},
		"a new one overflows": {
			homes: []int{0, 1, 1, 1, 1, 1}, stored: []int{0}, listed: []int{0}, changed: []int{1}, limit: 7,
			want: [][]int{{1, 2}, {0}, nil}, chunks: []int{0, 1, 2},
		},
		"the root overflows": {
			homes: []int{0, 0, 0, 0, 0}, stored: []int{0}, listed: []int{0}, changed: []int{0}, limit: 7,
			want: [][]int{{1}, {0}, nil}, chunks: []int{0, 1},
		},
		"a record is too large": {homes: []int{0}, changed: []int{0}, limit: 1, err: "a chunk of the inventory takes 2 bytes, and at most 1 fit"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			next := layout{homes: slices.Clone(tc.homes)}
			for i := range tc.homes {
				next.records = append(next.records, named(fmt.Sprint(i))...)
			}
			changed := map[int]bool{}
			for _, chunk := range tc.changed {
				changed[chunk] = true
			}
			if tc.limit == 0 {
				tc.limit = 100
			}
			got, err := drafter{
				stored: tc.stored, listed: tc.listed, limit: tc.limit,
				encode: func(_ int, _ []int, records []*apis.InventoryRecord) ([]byte, error) {
					return make([]byte, 2*len(records)), nil
				},
			}.draft(next, changed)
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.waves()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !slices.Equal(got.chunks, tc.chunks) {
				t.Errorf("chunks %v", got.chunks)
			}
			for chunk, payload := range got.payloads {
				held := 0
				for _, home := range got.homes {
					if home == chunk {
						held++
					}
				}
				if 2*held != len(payload) {
					t.Errorf("chunk %d has %d records, and was encoded with %d", chunk, held, len(payload))
				}
			}
		})
	}
}

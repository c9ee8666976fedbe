package sharder

import (
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// tokens is how many points of the circle a shard has.
const tokens = 100

// hashes is a circle of hashes with the points of shards. A key belongs to the shard of the first point at its hash or
// after it.
type hashes struct {
	points []uint64
	shards map[uint64]string
}

func newHashes(shards ...string) hashes {
	h := hashes{shards: map[uint64]string{}}
	for _, shard := range shards {
		for i := range tokens {
			point := xxhash.Sum64String(shard + strconv.Itoa(i))
			h.points, h.shards[point] = append(h.points, point), shard
		}
	}
	slices.Sort(h.points)
	return h
}

// shard returns the shard of a key, "" if there are no shards.
func (h hashes) shard(key string) string {
	if len(h.points) == 0 {
		return ""
	}
	i, _ := slices.BinarySearch(h.points, xxhash.Sum64String(key))
	return h.shards[h.points[i%len(h.points)]]
}

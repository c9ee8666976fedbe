package inventory

import (
	"github.com/espalier-dev/espalier/apis"

	"k8s.io/apimachinery/pkg/types"
)

// packed is a record in memory, in 64 bytes instead of 320: most records differ in few fields, and share the others.
type packed struct {
	name, digest string
	uid          types.UID
	generation   int64
	// others has the other fields. It never changes.
	others *apis.InventoryRecord
}

func (p *packed) record() apis.InventoryRecord {
	r := *p.others
	r.Name, r.Digest, r.UID, r.Generation = p.name, p.digest, p.uid, p.generation
	return r
}

// maxShared is how many different records are looked through for one that can be shared. Records of one kind come one
// after the other.
const maxShared = 8

// pack packs compact records.
func pack(records []apis.InventoryRecord) []packed {
	result := make([]packed, len(records))
	var shared []*apis.InventoryRecord
	for i := range records {
		r := &records[i]
		result[i] = packed{name: r.Name, digest: r.Digest, uid: r.UID, generation: r.Generation}
		others := *r
		others.Name, others.Digest, others.UID, others.Generation = "", "", "", 0
		for _, known := range shared {
			if same(known, &others) {
				result[i].others = known
				break
			}
		}
		if result[i].others != nil {
			continue
		}
		result[i].others = new(others)
		if shared = append(shared, result[i].others); len(shared) > maxShared {
			shared = shared[1:]
		}
	}
	return result
}

func unpack(all []packed) []apis.InventoryRecord {
	records := make([]apis.InventoryRecord, len(all))
	for i := range all {
		records[i] = all[i].record()
	}
	return records
}

// equalPacked reports whether records, once compact, are the packed ones, in the same order.
func equalPacked(all []packed, records []apis.InventoryRecord) bool {
	if len(all) != len(records) {
		return false
	}
	for i := range all {
		known, record := all[i].record(), Compact(records[i])
		if !same(&known, &record) {
			return false
		}
	}
	return true
}

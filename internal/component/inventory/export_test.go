package inventory

import "github.com/espalier-dev/espalier/apis"

func PackAndUnpack(records []apis.InventoryRecord) []apis.InventoryRecord {
	return unpack(pack(records))
}

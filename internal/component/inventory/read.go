package inventory

import (
	"fmt"

	"github.com/espalier-dev/espalier/apis"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Read returns the records that an object keeps, a Secret or a ConfigMap. ok is false, without an error, if it is none that keeps
// records.
func Read(object client.Object) (records []apis.InventoryRecord, ok bool, err error) {
	chunk := payloadOf(object)
	if !isChunk(chunk) {
		return nil, false, nil
	}
	_, records, err = decode(chunk)
	if err == nil {
		err = Validate(records)
	}
	if err != nil {
		return nil, true, fmt.Errorf("the records of %s cannot be read: %w", client.ObjectKeyFromObject(object), err)
	}
	return records, true, nil
}

package fieldmanager_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/fieldmanager"
)

// An API server joins the oldest entries of updates when there are more than ten.
func TestEntriesOfOldUpdatesAreJoined(t *testing.T) {
	t.Parallel()
	fieldmanager.BuiltIn()
	synctest.Test(t, func(t *testing.T) {
		kind := testKinds["ConfigMap"]
		ours, theirs := fieldmanager.New(kind.GroupVersionKind, kind.converter, kind.create), newReference(kind)
		var expected, live client.Object
		var fields *fieldmanager.Fields
		content := kind.identity()
		for i := range 30 {
			time.Sleep(time.Duration(i%2) * time.Second)
			set(content, fmt.Sprintf("data.%d", i), "1")
			// The names are in another order than the times.
			s := step{
				next:  kind.asObject(content),
				write: fieldmanager.Write{Manager: fmt.Sprint("m", i*7%30), Time: time.Now()},
			}
			var err error
			if expected, err = theirs.write(expected, s); err != nil {
				t.Fatal(err)
			}
			live, fields, _ = writeOurs(ours, live, fields, s)
			if diff := cmp.Diff(expected.GetManagedFields(), fields.Entries()); diff != "" {
				t.Fatalf("after update %d, managed fields differ (-API server, +this package):\n%s", i, diff)
			}
		}
		if got := len(fields.Entries()); got != 10 {
			t.Errorf("%d entries are left", got)
		}
	})
}

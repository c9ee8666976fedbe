package realserver_test

import (
	"flag"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/testing/internal/realserver"
)

func TestTheSummaryCountsRows(t *testing.T) {
	if err := flag.Set("rtesting.differential", "true"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rows [][]string
		want string
	}{
		{want: "0 rows ran in memory and on the server, and 0 of them differ\n"},
		{
			rows: [][]string{{}, {"get A: x"}, {"list B: y", "get A: x", "list B: y"}},
			want: "3 rows ran in memory and on the server, and 2 of them differ\n" +
				"   2  get A: x\n   1  list B: y\n",
		},
	} {
		realserver.Use(&rest.Config{}, true)
		for _, differences := range test.rows {
			realserver.Compared(differences...)
		}
		out := &strings.Builder{}
		realserver.Summary(out)
		if out.String() != test.want {
			t.Errorf("got\n%s\nwant\n%s", out, test.want)
		}
	}
}

package realserver_test

import (
	"flag"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/testing/internal/realserver"
)

func TestTheSummaryCountsRows(t *testing.T) {
	differ := func(differences ...string) func() { return func() { realserver.RowDiffers(differences...) } }
	runs := func(inMemory string) func() { return func() { realserver.RowRuns(inMemory) } }
	for _, test := range []struct {
		differential string
		calls        []func()
		want         string
	}{
		{differential: "true", want: "0 rows ran in memory and on the server, and 0 of them differ\n"},
		{
			differential: "true",
			calls: []func(){
				runs(""), runs(""), differ("get A: x"), runs(""), differ("list B: y", "get A: x", "list B: y"),
			},
			want: "3 rows ran in memory and on the server, and 2 of them differ\n" +
				"   2  get A: x\n   1  list B: y\n",
		},
		{
			differential: "false",
			calls:        []func(){runs("it has reactors"), runs(""), runs("it has reactors")},
			want:         "1 rows ran on the server\n   2  in memory alone: it has reactors\n",
		},
	} {
		if err := flag.Set("rtesting.differential", test.differential); err != nil {
			t.Fatal(err)
		}
		realserver.Use(&rest.Config{}, true)
		for _, call := range test.calls {
			call()
		}
		out := &strings.Builder{}
		realserver.Summary(out)
		if out.String() != test.want {
			t.Errorf("got\n%s\nwant\n%s", out, test.want)
		}
	}
}

package stuck_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// docsPage has the rows.
const docsPage = "../../docs/stuck.md"

// place is where a quote is to be seen, as the page calls it.
type place string

const (
	inCondition place = "Condition"
	onPage      place = "Page of the resource"
	onList      place = "Page of the root"
	onFirstPage place = "First page"
	inLog       place = "Log"
	inMetrics   place = "Metric"
	inEvents    place = "Event"
	inObject    place = "Object"
)

// quote is a text that is seen somewhere.
type quote struct {
	place place
	text  string
}

var (
	anchor = regexp.MustCompile(`^<a id="([a-z-]+)"></a>`)
	quoted = regexp.MustCompile(
		"(Condition|Page of the resource|Page of the root|First page|Log|Metric|Event|Object):|`` (.+?) ``|`([^`]+)`")
)

// rowsOf returns what the rows of the page quote, by their anchors.
func rowsOf(t *testing.T) map[string][]quote {
	t.Helper()
	content, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]quote{}
	for line := range strings.Lines(string(content)) {
		cells := strings.Split(strings.Trim(line, "|\n"), " | ")
		found := anchor.FindStringSubmatch(strings.TrimSpace(cells[0]))
		if found == nil {
			continue
		}
		if len(cells) != 4 {
			t.Fatalf("the row %s has %d cells, want 4", found[1], len(cells))
		}
		var quotes []quote
		var at place
		for _, match := range quoted.FindAllStringSubmatch(cells[1], -1) {
			if match[1] != "" {
				at = place(match[1])
				continue
			}
			quotes = append(quotes, quote{at, strings.ReplaceAll(match[2]+match[3], `\|`, "|")})
		}
		if len(quotes) == 0 || at == "" || rows[found[1]] != nil {
			t.Fatalf("the row %s quotes nothing, does not say where, or is there twice", found[1])
		}
		rows[found[1]] = quotes
	}
	return rows
}

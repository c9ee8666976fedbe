package monitoring

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of docs/alerts.md")

const dashboardFile = "../../metrics/monitoring/dashboard.json"

// dashboard has the parts of a Grafana dashboard that the tests read.
type dashboard struct {
	ID         *int   `json:"id"`
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type variable struct {
	Name       string     `json:"name"`
	Type       string     `json:"type"`
	Query      any        `json:"query"`
	Datasource datasource `json:"datasource"`
	IncludeAll bool       `json:"includeAll"`
	AllValue   string     `json:"allValue"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type panel struct {
	ID          int        `json:"id"`
	Type        string     `json:"type"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Datasource  datasource `json:"datasource"`
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct {
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
		RefID        string `json:"refId"`
	} `json:"targets"`
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	content, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatalf("%s: %v", dashboardFile, err)
	}
	return d
}

// substituted are the variables as Grafana replaces them if all values are selected and the interval of scrapes is the
// one of the tests.
var substituted = strings.NewReplacer(
	"$namespace", ".*", "$controller", ".*", "$kind", ".*", "$__rate_interval", "2m",
)

// labelValues is a query of a variable.
var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// namedPanel is how the page of alerts names a panel.
var namedPanel = regexp.MustCompile(`panel\s\*([^*]+)\*`)

// expressions returns what the panels and the variables query.
func (d dashboard) expressions() []string {
	var all []string
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, substituted.Replace(target.Expr))
		}
	}
	for _, v := range d.Templating.List {
		if query, ok := v.Query.(string); ok && v.Type == "query" {
			if match := labelValues.FindStringSubmatch(query); match != nil {
				all = append(all, substituted.Replace(fmt.Sprintf("group by (%s) (%s)", match[2], match[1])))
			}
		}
	}
	return all
}

// TestDashboard checks what Grafana needs to import the dashboard, and what a reader needs.
func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	if d.ID != nil || d.UID == "" || d.Title == "" {
		t.Errorf("the id is %v, the uid %q and the title %q: want none, one and one", d.ID, d.UID, d.Title)
	}
	var names []string
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
		if v.Type != "query" {
			continue
		}
		if query, _ := v.Query.(string); !labelValues.MatchString(query) || !v.IncludeAll || v.AllValue != ".*" ||
			v.Datasource.UID != "${datasource}" {
			t.Errorf("the variable %s is %+v, want all or some values of a label of the chosen data source", v.Name, v)
		}
	}
	if want := []string{"datasource", "namespace", "controller", "kind"}; !slices.Equal(names, want) {
		t.Errorf("the variables are %v, want %v", names, want)
	}
	ids, titles, taken := map[int]bool{}, map[string]bool{}, map[[2]int]string{}
	page, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		if ids[p.ID] || titles[p.Title] || p.Title == "" {
			t.Errorf("the id %d or the title %q is not the only one", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q is over %q, or beyond the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" || p.Description == "" {
			t.Errorf("%q has no query or no description, or does not ask the chosen data source", p.Title)
		}
		for _, target := range p.Targets {
			if !strings.Contains(target.Expr, `namespace=~"$namespace"`) {
				t.Errorf("%q does not select by namespace: %s", p.Title, target.Expr)
			}
		}
	}
	for _, match := range namedPanel.FindAllStringSubmatch(string(page), -1) {
		if !titles[match[1]] {
			t.Errorf("%s names the panel %q, which the dashboard does not have", pageFile, match[1])
		}
	}
}

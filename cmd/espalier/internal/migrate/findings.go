package migrate

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"go/token"
	"go/types"
	"net/url"
	"slices"
	"strings"
)

// Finding is a place whose behavior may differ.
type Finding struct {
	Position
	// What, There and Here are the row of the documentation.
	What  string `json:"what"`
	There string `json:"there"`
	Here  string `json:"here"`
	// Check says what to look at.
	Check string `json:"check"`
	Link  string `json:"link"`
}

// Unseen is a difference that code does not show.
type Unseen struct {
	What    string `json:"what"`
	There   string `json:"there"`
	Here    string `json:"here"`
	Because string `json:"because"`
}

// row is one of a table of docs/migration.md.
type row struct{ What, There, Here string }

//go:embed rows.json
var rowsFile []byte

// rows are those of the tables, by their first cell. The file is made from the page by the test of it, with -update.
var rows = func() map[string]row {
	var all []row
	if err := json.Unmarshal(rowsFile, &all); err != nil {
		panic(fmt.Sprintf("rows.json: %v", err)) // it is part of the program
	}
	byWhat := map[string]row{}
	for _, r := range all {
		byWhat[r.What] = r
	}
	return byWhat
}()

// page is where people read the documentation.
const page = "https://github.com/espalier-dev/espalier/blob/main/docs/migration.md"

// link leads to the row of the page, by its text as a browser shows it.
func (r row) link() string {
	return page + "#:~:text=" + strings.ReplaceAll(url.PathEscape(strings.ReplaceAll(r.What, "`", "")), "-", "%2D")
}

// addFindings adds what the finders of the origins find in files that use them.
func (p *Plan) addFindings(c *code) {
	for _, of := range origins {
		groups := group(c.files, of)
		if len(groups) == 0 {
			continue
		}
		for _, d := range of.differences {
			if d.find == nil {
				r := rows[d.what]
				p.Unseen = append(p.Unseen, Unseen{What: r.What, There: r.There, Here: r.Here, Because: d.unseen})
			}
		}
		var found []Finding
		for _, files := range groups {
			found = append(found, p.findIn(files, of)...)
		}
		order := map[string]int{}
		for i, d := range of.differences {
			order[d.what] = i
		}
		slices.SortStableFunc(found, func(a, b Finding) int {
			if a.What != b.What {
				return order[a.What] - order[b.What]
			}
			return a.compare(b.Position)
		})
		p.Findings = append(p.Findings, slices.CompactFunc(found, func(a, b Finding) bool {
			return a.What == b.What && a.Position == b.Position
		})...)
	}
}

// group returns the typed files by package, of those packages that use the origin. A package and its external tests are
// two.
func group(files []*source, of *origin) [][]*source {
	byPackage := map[*types.Package][]*source{}
	var order []*types.Package
	for _, s := range files {
		if s.info == nil {
			continue
		}
		if byPackage[s.pkg] == nil {
			order = append(order, s.pkg)
		}
		byPackage[s.pkg] = append(byPackage[s.pkg], s)
	}
	var groups [][]*source
	for _, pkg := range order {
		if slices.ContainsFunc(pkg.Imports(), func(imported *types.Package) bool {
			from, ok := originOf(imported.Path())
			return ok && from == of
		}) {
			groups = append(groups, byPackage[pkg])
		}
	}
	return groups
}

func (p *Plan) findIn(files []*source, of *origin) []Finding {
	f := newFacts(files, of)
	var found []Finding
	for _, d := range of.differences {
		if d.find == nil {
			continue
		}
		for _, at := range d.find(f) {
			if s := fileAt(files, at); s != nil {
				r := rows[d.what]
				found = append(found, Finding{
					Position: p.position(s, at), What: r.What, There: r.There, Here: r.Here,
					Check: d.check, Link: r.link(),
				})
			}
		}
	}
	return found
}

// fileAt is the file with a place.
func fileAt(files []*source, at token.Pos) *source {
	for _, s := range files {
		if s.syntax.FileStart <= at && at < s.syntax.FileEnd {
			return s
		}
	}
	return nil
}

package monitoring

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"

	"github.com/espalier-dev/espalier/testing/simulation"
)

const (
	rulesFile = "../../metrics/monitoring/alerts.yaml"
	// prefix is that of the names of all alerts.
	prefix = "Espalier"
)

// readAlerts reads the rules as Prometheus does. All of them are alerts.
func readAlerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation, exprParser, slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if t.Failed() {
		t.FailNow()
	}
	var alerts []rulefmt.Rule
	for _, group := range groups.Groups {
		alerts = append(alerts, group.Rules...)
	}
	return alerts
}

// alert is one that fires.
type alert struct {
	text string
	// active is when its expression begins to hold, fires when it begins to fire, and ends when it does not hold any more.
	active, fires, ends time.Time
}

// firing returns the alerts of a rule that fire, as Prometheus decides it: if the expression holds at each evaluation
// for as long as the rule says. Ends is zero if an alert fires at the last evaluation.
func (r *recording) firing(ctx context.Context, rule rulefmt.Rule) ([]alert, error) {
	matrix, warnings, err := r.query(ctx, rule.Expr)
	if err != nil || len(warnings) > 0 {
		return nil, fmt.Errorf("%s: %w %v", rule.Alert, err, warnings)
	}
	var alerts []alert
	for _, s := range matrix {
		for points := s.Floats; len(points) > 0; {
			last := 0
			for last+1 < len(points) && points[last+1].T-points[last].T == interval.Milliseconds() {
				last++
			}
			a := alert{active: time.UnixMilli(points[0].T), fires: time.UnixMilli(points[0].T).Add(time.Duration(rule.For))}
			if end := time.UnixMilli(points[last].T); !end.Before(a.fires) {
				if a.text, err = expand(ctx, rule, s, points[last]); err != nil {
					return nil, fmt.Errorf("%s: %w", rule.Alert, err)
				}
				if end.UnixMilli() < r.scrapes[len(r.scrapes)-1]-interval.Milliseconds() {
					a.ends = end.Add(interval)
				}
				alerts = append(alerts, a)
			}
			points = points[last+1:]
		}
	}
	return alerts, nil
}

// expand returns the description of an alert.
func expand(ctx context.Context, rule rulefmt.Rule, s promql.Series, at promql.FPoint) (string, error) {
	const variables = "{{$labels := .Labels}}{{$value := .Value}}"
	text := variables + rule.Annotations["description"]
	data := template.AlertTemplateData(s.Metric.Map(), nil, "", promql.Sample{T: at.T, F: at.F})
	options := []string{"missingkey=error"}
	return template.NewTemplateExpander(ctx, text, rule.Alert, data, model.Time(at.T), nil, &url.URL{}, options).Expand()
}

// TestStories tells all stories. Of each alert, one story says that it fires and ends, and all others that it does not.
// It also evaluates the expressions of the dashboard, of which each has a result in some story.
func TestStories(t *testing.T) {
	if testing.Short() {
		t.Skip("runs operators in simulations")
	}
	o := &observed{
		alerts: readAlerts(t), panels: readDashboard(t).expressions(), known: newKnownMetrics(t), seen: map[string]bool{},
	}
	told := 0
	for _, story := range stories {
		t.Run(strings.ReplaceAll(story.name, " ", "-"), func(t *testing.T) {
			begin, r := time.Now(), newRecording()
			simulation.Run(t, story.options(t), recorded(r, story.tell))
			end := time.Now()
			o.observe(t, r, story.fires)
			told++
			t.Logf("%d scrapes of %d series took %v, their evaluation %v", len(r.scrapes), len(r.series),
				end.Sub(begin).Round(time.Millisecond), time.Since(end).Round(time.Millisecond))
		})
	}
	if !t.Failed() && told == len(stories) { // else a flag has selected some
		o.complete(t)
	}
}

// observed is what was seen in stories.
type observed struct {
	alerts []rulefmt.Rule
	panels []string
	known  knownMetrics
	// seen are the alerts that fired, and the expressions that had a result.
	seen map[string]bool
}

// observe evaluates alerts and expressions over a story. The alerts that are wanted fire and end, and no others.
func (o *observed) observe(t *testing.T, r *recording, want []string) {
	t.Helper()
	var fired []string
	for _, rule := range o.alerts {
		name := strings.TrimPrefix(rule.Alert, prefix)
		found, err := r.firing(t.Context(), rule)
		if err != nil {
			t.Error(err)
		}
		for _, a := range found {
			fired = append(fired, name)
			o.seen[rule.Alert] = true
			t.Logf("%s fires %v after its cause is seen, and ends after %v: %s",
				name, a.fires.Sub(a.active), a.ends.Sub(a.active), a.text)
			if a.ends.IsZero() {
				t.Errorf("%s still fires when the story ends", name)
			}
		}
	}
	slices.Sort(fired)
	if want := slices.Sorted(slices.Values(want)); !slices.Equal(fired, want) {
		t.Errorf("there fire %v, want %v", fired, want)
	}
	for _, expr := range o.panels {
		matrix, warnings, err := r.query(t.Context(), expr)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %v", expr, err, warnings)
		}
		o.seen[expr] = o.seen[expr] || len(matrix) > 0
	}
	o.known.scraped(t, r)
}

// complete checks that each alert fired, that each expression had a result, and that what they select exists.
func (o *observed) complete(t *testing.T) {
	t.Helper()
	used := map[string]bool{}
	for _, rule := range o.alerts {
		o.known.check(t, rule.Alert, rule.Expr, used)
		if !o.seen[rule.Alert] {
			t.Errorf("%s fires in no story", rule.Alert)
		}
	}
	for _, expr := range o.panels {
		o.known.check(t, "the dashboard", expr, used)
		if !o.seen[expr] {
			t.Errorf("an expression of the dashboard has no result in any story: %s", expr)
		}
	}
	o.known.unused(t, used)
}

const (
	pageFile    = "../../docs/alerts.md"
	tableBegins = "<!-- Generated by \"go test -run TestRules . -update\" in test/monitoring. -->\n"
	tableEnds   = "<!-- End of what is generated. -->\n"
	pageURL     = "https://github.com/espalier-dev/espalier/blob/main/docs/alerts.md#"
)

// TestRules checks what each rule says, and that the page of alerts has its table and a heading for each.
func TestRules(t *testing.T) {
	content, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	page := string(content)
	var table strings.Builder
	table.WriteString("| alert | severity | after | what it says |\n|---|---|---|---|\n")
	names := map[string]bool{}
	for _, rule := range readAlerts(t) {
		if !strings.HasPrefix(rule.Alert, prefix) || names[rule.Alert] {
			t.Errorf("%q does not begin with %s, or is there twice", rule.Alert, prefix)
		}
		names[rule.Alert] = true
		checkRule(t, rule)
		if !strings.Contains(page, "\n### "+rule.Alert+"\n") {
			t.Errorf("%s has no heading for %s", pageFile, rule.Alert)
		}
		fmt.Fprintf(&table, "| [%s](#%s) | %s | %s | %s |\n",
			rule.Alert, strings.ToLower(rule.Alert), rule.Labels["severity"], rule.For, rule.Annotations["summary"])
	}
	for line := range strings.Lines(page) {
		if name, ok := strings.CutPrefix(line, "### "+prefix); ok && !names[prefix+strings.TrimSpace(name)] {
			t.Errorf("%s has a heading for %s%s, which is no alert", pageFile, prefix, name)
		}
	}
	before, rest, begins := strings.Cut(page, tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s has no table between the lines\n%s%s", pageFile, tableBegins, tableEnds)
	}
	want := before + tableBegins + "\n" + table.String() + "\n" + tableEnds + after
	if *update {
		if err := os.WriteFile(pageFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want, page); diff != "" {
		t.Errorf("%s differs, the flag -update writes it (-rules, +page):\n%s", pageFile, diff)
	}
}

// checkRule checks what somebody who is called needs of an alert.
func checkRule(t *testing.T, rule rulefmt.Rule) {
	t.Helper()
	if rule.For <= 0 {
		t.Errorf("%s fires at once", rule.Alert)
	}
	if severity := rule.Labels["severity"]; severity != "warning" && severity != "critical" {
		t.Errorf("%s has the severity %q, want warning or critical", rule.Alert, severity)
	}
	if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
		t.Errorf("%s has no summary or no description", rule.Alert)
	}
	if got, want := rule.Annotations["runbook_url"], pageURL+strings.ToLower(rule.Alert); got != want {
		t.Errorf("%s has the runbook_url %q, want %q", rule.Alert, got, want)
	}
}

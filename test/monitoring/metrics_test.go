package monitoring

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// metricsFile has the table of the metrics of Espalier.
const metricsFile = "../../docs/metrics.md"

// knownMetrics are the labels of all metrics that there are, by name. Those of Espalier are as docs/metrics.md has them,
// those of controller-runtime as they were scraped.
type knownMetrics map[string][]string

// documented are the pages that have the values of labels.
var documented = []string{metricsFile, "../../docs/states.md"}

// attached are the labels that service discovery adds.
var attached = []string{"namespace", "pod", "job"}

var tableRow = regexp.MustCompile("(?m)^\\| `(espalier_\\w+)` \\| (\\w+) \\| (.*?) \\|")

func newKnownMetrics(t *testing.T) knownMetrics {
	t.Helper()
	page, err := os.ReadFile(metricsFile)
	if err != nil {
		t.Fatal(err)
	}
	m := knownMetrics{}
	for _, row := range tableRow.FindAllStringSubmatch(string(page), -1) {
		name, has := row[1], slices.Clone(attached)
		for _, label := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[3], -1) {
			if has = append(has, label[1]); slices.Contains(attached, label[1]) {
				has = append(has, "exported_"+label[1])
			}
		}
		m[name] = has
		if row[2] == "histogram" {
			m[name+"_bucket"], m[name+"_sum"], m[name+"_count"] = append(slices.Clone(has), "le"), has, has
			delete(m, name)
		}
	}
	if len(m) < 20 {
		t.Fatalf("%s has the metrics %v", metricsFile, m)
	}
	return m
}

// scraped checks that what is scraped of Espalier is as documented, and takes over the rest.
func (m knownMetrics) scraped(t *testing.T, r *recording) {
	t.Helper()
	for _, s := range r.series {
		name := s.Metric.Get(model.MetricNameLabel)
		s.Metric.Range(func(l labels.Label) {
			known := slices.Contains(m[name], l.Name) || l.Name == model.MetricNameLabel
			if !known && strings.HasPrefix(name, "espalier_") {
				t.Errorf("%s has no metric %s with the label %s", metricsFile, name, l.Name)
			}
			if !known {
				m[name] = append(m[name], l.Name)
			}
		})
	}
}

// check checks that the metrics and labels of an expression exist, and notes which ones it uses.
func (m knownMetrics) check(t *testing.T, where, expr string, used map[string]bool) {
	t.Helper()
	root, err := exprParser.ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	parser.Inspect(root, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			for _, matcher := range node.LabelMatchers {
				m.checkLabel(t, where, node.Name, matcher.Name)
				checkValues(t, where, node.Name, matcher)
			}
			used[node.Name] = true
		case *parser.AggregateExpr:
			selector := firstSelector(node)
			for _, label := range node.Grouping {
				m.checkLabel(t, where, selector, label)
			}
		}
		return nil
	})
}

func (m knownMetrics) checkLabel(t *testing.T, where, metric, label string) {
	t.Helper()
	if has, ok := m[metric]; !ok || label != model.MetricNameLabel && !slices.Contains(has, label) {
		t.Errorf("%s uses the label %s of the metric %s, which has %v", where, label, metric, has)
	}
}

// checkValues checks that the values of a label of Espalier that are selected exist, but for names of users.
func checkValues(t *testing.T, where, metric string, matcher *labels.Matcher) {
	t.Helper()
	if !strings.HasPrefix(metric, "espalier_") || !isEnumeration.MatchString(matcher.Value) || matcher.Name == "type" {
		return
	}
	var pages strings.Builder
	for _, file := range documented {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pages.Write(page)
	}
	for v := range strings.SplitSeq(matcher.Value, "|") {
		if !strings.Contains(pages.String(), "`"+v+"`") {
			t.Errorf("%s selects %s, and %v know no %s", where, matcher, documented, v)
		}
	}
}

// isEnumeration matches names in CamelCase.
var isEnumeration = regexp.MustCompile(`^[A-Z]\w*(\|[A-Z]\w*)*$`)

// firstSelector returns the name of the first metric in an expression.
func firstSelector(node parser.Node) (name string) {
	parser.Inspect(node, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok && name == "" {
			name = selector.Name
		}
		return nil
	})
	return name
}

// unused reports metrics of Espalier that neither an alert nor the dashboard uses.
func (m knownMetrics) unused(t *testing.T, used map[string]bool) {
	t.Helper()
	for name := range m {
		base := name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			base = strings.TrimSuffix(base, suffix)
		}
		if strings.HasPrefix(name, "espalier_") && !used[base] && !used[base+"_bucket"] && !used[base+"_sum"] {
			t.Errorf("neither an alert nor the dashboard uses %s", name)
		}
	}
}

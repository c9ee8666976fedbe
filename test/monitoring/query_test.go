package monitoring

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

var (
	exprParser = parser.NewParser(parser.Options{})
	engine     = promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return interval.Milliseconds() }, Parser: exprParser,
	})
)

// query evaluates an expression at each scrape. It returns the warnings of the engine, too.
func (r *recording) query(ctx context.Context, expr string) (promql.Matrix, annotations.Annotations, error) {
	first, last := time.UnixMilli(r.scrapes[0]), time.UnixMilli(r.scrapes[len(r.scrapes)-1])
	q, err := engine.NewRangeQuery(ctx, r, nil, expr, first, last, interval)
	if err != nil {
		return nil, nil, err
	}
	defer q.Close()
	result := q.Exec(ctx)
	matrix, err := result.Matrix()
	var copied promql.Matrix
	for _, s := range matrix {
		copied = append(copied, promql.Series{Metric: s.Metric, Floats: slices.Clone(s.Floats)})
	}
	return copied, result.Warnings, err
}

// Querier implements [storage.Queryable].
func (r *recording) Querier(int64, int64) (storage.Querier, error) { return querier{r}, nil }

type querier struct{ *recording }

// Select implements [storage.Querier].
func (q querier) Select(
	_ context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher,
) storage.SeriesSet {
	at := func(p promql.FPoint, t int64) int { return cmp.Compare(p.T, t) }
	set := &seriesSet{}
	for _, s := range q.series {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Metric.Get(m.Name)) }) {
			from, _ := slices.BinarySearchFunc(s.Floats, hints.Start, at)
			to, _ := slices.BinarySearchFunc(s.Floats, hints.End+1, at)
			set.list = append(set.list, promql.Series{Metric: s.Metric, Floats: s.Floats[from:to]})
		}
	}
	slices.SortFunc(set.list, func(a, b promql.Series) int { return labels.Compare(a.Metric, b.Metric) })
	return set
}

// LabelValues and LabelNames implement [storage.Querier]. The engine does not call them.
func (querier) LabelValues(
	context.Context, string, *storage.LabelHints, ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(
	context.Context, *storage.LabelHints, ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) Close() error { return nil }

// seriesSet implements [storage.SeriesSet].
type seriesSet struct {
	list []promql.Series
	next int
}

func (s *seriesSet) Next() bool                        { s.next++; return s.next <= len(s.list) }
func (s *seriesSet) At() storage.Series                { return promql.NewStorageSeries(s.list[s.next-1]) }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

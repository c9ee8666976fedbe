package monitoring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/espalier-dev/espalier/testing/simulation"
)

// interval is how often the operator is scraped, and alerts are evaluated.
const interval = 30 * time.Second

// targets has the operator of each world as Prometheus finds it.
var targets simulation.External[target]

// target is the operator as Prometheus finds it: with the metrics of the process that runs now.
type target struct {
	mu        sync.Mutex
	registry  *prometheus.Registry
	processes int
}

// begin returns the registry of a new process.
func (t *target) begin() prometheus.Registerer {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.registry = prometheus.NewRegistry()
	t.processes++
	return t.registry
}

// gather returns the text that the metrics server of the process answers, and the name of the pod. It leaves out what is
// of Go and of the process. The metrics of controller-runtime are those of all processes of this test binary.
func (t *target) gather() (text []byte, pod string, err error) {
	t.mu.Lock()
	own, pod := t.registry, fmt.Sprintf("operator-%d", t.processes)
	t.mu.Unlock()
	families, err := prometheus.Gatherers{own, runtimemetrics.Registry}.Gather()
	if err != nil {
		return nil, "", err
	}
	var encoded bytes.Buffer
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "go_") || strings.HasPrefix(family.GetName(), "process_") {
			continue
		}
		if _, err := expfmt.MetricFamilyToText(&encoded, family); err != nil {
			return nil, "", err
		}
	}
	return encoded.Bytes(), pod, nil
}

// recording has what Prometheus stores of a target.
type recording struct {
	symbols *labels.SymbolTable
	series  map[uint64]*series
	// scrapes are when the target was scraped, in milliseconds.
	scrapes []int64
}

type series struct {
	promql.Series
	fresh bool // whether the last scrape had it
}

func newRecording() *recording {
	return &recording{symbols: labels.NewSymbolTable(), series: map[uint64]*series{}}
}

// run scrapes the target until the context is done.
func (r *recording) run(ctx context.Context, t *target) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		text, pod, err := t.gather()
		if err == nil {
			err = r.add(text, pod, time.Now().UnixMilli())
		}
		if err != nil {
			return fmt.Errorf("scrape the operator: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// add stores the samples of a scrape with the labels that Kubernetes service discovery adds. A series that the scrape
// lacks becomes stale.
func (r *recording) add(text []byte, pod string, now int64) error {
	r.scrapes = append(r.scrapes, now)
	for _, s := range r.series {
		s.fresh = false
	}
	parser := textparse.NewPromParser(text, r.symbols, false)
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var scraped labels.Labels
		parser.Labels(&scraped)
		_, _, sample := parser.Series()
		s := r.seriesOf(scraped, pod)
		s.Floats = append(s.Floats, promql.FPoint{T: now, F: sample})
		s.fresh = true
	}
	for _, s := range r.series {
		if last := s.Floats[len(s.Floats)-1]; !s.fresh && !value.IsStaleNaN(last.F) {
			s.Floats = append(s.Floats, promql.FPoint{T: now, F: math.Float64frombits(value.StaleNaN)})
		}
	}
	return nil
}

// seriesOf returns the series of what was scraped. As Prometheus does, it keeps a scraped label that the target has, too,
// under another name.
func (r *recording) seriesOf(scraped labels.Labels, pod string) *series {
	b := labels.NewBuilder(scraped)
	for name, v := range map[string]string{"namespace": "operators", "job": "operator", "pod": pod} {
		if was := scraped.Get(name); was != "" {
			b.Set("exported_"+name, was)
		}
		b.Set(name, v)
	}
	metric := b.Labels()
	s := r.series[metric.Hash()]
	if s == nil {
		s = &series{Series: promql.Series{Metric: metric}}
		r.series[metric.Hash()] = s
	}
	return s
}

// recorded returns a story that is scraped while it is told.
func recorded(r *recording, story func(w *simulation.World)) func(w *simulation.World) {
	return func(w *simulation.World) {
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := r.run(ctx, targets.Of(w)); err != nil {
				w.Error(err)
			}
		}()
		defer func() { stop(); <-done }()
		story(w)
	}
}

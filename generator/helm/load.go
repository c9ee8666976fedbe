package helm

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/gotemplate"
)

// parsed is a chart as all renderings share it. Nothing of it changes.
type parsed struct {
	// chart has templates that are instrumented.
	chart *v2.Chart
	// digest is that of the files.
	digest string
	// schemas validate the values.
	schemas schemas
	// definitions are the objects in the folders crds, by their file.
	definitions map[*common.File][]*unstructured.Unstructured
	// discovers is true if the objects may depend on what the cluster serves.
	discovers bool
	// looksUp is true if templates may look up objects.
	looksUp bool
}

// load reads and parses a chart. The arguments are those of [NewGenerator].
func load(folder fs.FS, name string) (p *parsed, err error) {
	defer recoverInto(&err)
	files, err := readFiles(folder, name)
	if err != nil {
		return nil, err
	}
	contents := map[string][]byte{}
	for _, file := range files {
		contents[file.Name] = file.Data
	}
	digest, err := generator.ComponentDigest(contents, nil, "", nil)
	if err != nil {
		return nil, err
	}
	chart, err := loader.LoadFiles(files)
	if _, ok := err.(v2.ValidationError); ok {
		return nil, fmt.Errorf("file Chart.yaml: %w", err)
	}
	if err != nil {
		return nil, err
	}
	if chart.Metadata.Type != "" && chart.Metadata.Type != "application" {
		return nil, fmt.Errorf("file Chart.yaml: type: a chart of type %s has no objects", chart.Metadata.Type)
	}
	if err := checkDependencies(chart); err != nil {
		return nil, err
	}
	sortCharts(chart)
	p = &parsed{
		chart: chart, digest: digest, schemas: schemas{}, definitions: map[*common.File][]*unstructured.Unstructured{},
		discovers: chart.Metadata.KubeVersion != "",
	}
	if err := p.schemas.add(chart); err != nil {
		return nil, err
	}
	for _, crd := range chart.CRDObjects() {
		if p.definitions[crd.File], err = parseDefinitions(crd.Filename, string(crd.File.Data)); err != nil {
			return nil, err
		}
	}
	return p, p.instrument(chart)
}

// recoverInto turns a panic of the SDK into an error. The text has nothing of a value that is not an error of the Go
// runtime, because it may be secret.
func recoverInto(err *error) {
	switch p := recover().(type) {
	case nil:
	case runtime.Error:
		*err = fmt.Errorf("the SDK of Helm has panicked: %w", p)
	default:
		*err = errors.New("the SDK of Helm has panicked")
	}
}

// checkDependencies refuses a chart without one of the sub-charts that it declares, also if that is not enabled.
func checkDependencies(chart *v2.Chart) error {
	for i, declared := range chart.Metadata.Dependencies {
		if declared == nil {
			return fmt.Errorf("file Chart.yaml: dependencies[%d]: it is empty", i)
		}
		has := func(c *v2.Chart) bool { return c.Name() == declared.Name }
		if !slices.ContainsFunc(chart.Dependencies(), has) {
			return fmt.Errorf("file Chart.yaml: dependencies[%d]: chart %s is not in the folder charts",
				i, declared.Name)
		}
	}
	return nil
}

// sortCharts sorts sub-charts by name. The SDK returns them in another order each time.
func sortCharts(chart *v2.Chart) {
	dependencies := chart.Dependencies()
	slices.SortStableFunc(dependencies, byName)
	for _, dependency := range dependencies {
		sortCharts(dependency)
	}
}

// instrument replaces the templates of a chart and its sub-charts, and drops the second copy that the SDK keeps.
func (p *parsed) instrument(chart *v2.Chart) error {
	chart.Raw = nil
	for _, file := range chart.Templates {
		// The SDK leaves out others as well.
		if chart.Metadata.Type == "library" && !strings.HasPrefix(path.Base(file.Name), "_") {
			continue
		}
		p.note(string(file.Data))
		name := path.Join(chart.ChartFullPath(), file.Name)
		text, err := gotemplate.Instrument(name, string(file.Data), "", "")
		if err != nil {
			return asParseError(err)
		}
		file.Data = []byte(text)
	}
	for _, dependency := range chart.Dependencies() {
		if err := p.instrument(dependency); err != nil {
			return err
		}
	}
	return nil
}

var parseError = regexp.MustCompile(`(?s)^template: (.*?:\d+): (.*)$`)

// asParseError returns an error of the parser with the words of Helm.
func asParseError(err error) error {
	if match := parseError.FindStringSubmatch(err.Error()); match != nil {
		return fmt.Errorf("parse error at (%s): %s", match[1], match[2])
	}
	return err
}

// note finds out what a template may depend on. A template that calls tpl may depend on anything, because the text that
// it executes may come from the parameters.
func (p *parsed) note(template string) {
	computed := strings.Contains(template, "tpl")
	p.discovers = p.discovers || computed || strings.Contains(template, "Capabilities")
	p.looksUp = p.looksUp || computed || strings.Contains(template, "ookup")
}

// clone copies what the SDK changes when it renders: the charts and their metadata. The rest is shared.
func clone(chart *v2.Chart) *v2.Chart {
	out, metadata := *chart, *chart.Metadata
	metadata.Dependencies = slices.Clone(metadata.Dependencies)
	for i, dependency := range metadata.Dependencies {
		if dependency != nil {
			d := *dependency
			metadata.Dependencies[i] = &d
		}
	}
	out.Metadata = &metadata
	out.SetDependencies()
	for _, dependency := range chart.Dependencies() {
		out.AddDependency(clone(dependency))
	}
	return &out
}

package helm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"
	"text/template"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/espalier-dev/espalier/generator/gotemplate"
)

// render returns the output of each template. chart is a copy, which is changed.
func (p *parsed) render(
	ctx context.Context, chart *v2.Chart, values map[string]any, options common.ReleaseOptions,
	guard *gotemplate.Guard,
) (map[string]string, error) {
	capabilities, err := p.capabilities(ctx)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(chart, values); err != nil {
		return nil, invalidValues(err)
	}
	// The schemas are compiled already.
	top, err := commonutil.ToRenderValuesWithSchemaValidation(chart, values, options, capabilities, true)
	if err != nil {
		return nil, invalidValues(err)
	}
	coalesced, err := top.Table("Values")
	if err != nil {
		return nil, invalidValues(err)
	}
	if err := p.schemas.validate(chart, coalesced.AsMap(), "values"); err != nil {
		return nil, fmt.Errorf("the values are not as %s says: %w", schemaFile, err)
	}
	functions, failed := templateFunctions(ctx, guard)
	files, err := engine.Engine{CustomTemplateFuncs: functions}.RenderWithContext(ctx, chart, top)
	if limit := guard.Err(err); limit != nil {
		return nil, limit
	}
	if err != nil {
		return nil, &renderError{text: withoutValues(err.Error()), cause: failed()}
	}
	return files, nil
}

// capabilities returns those of the cluster as Helm does, and checks that they suffice.
func (p *parsed) capabilities(ctx context.Context) (*common.Capabilities, error) {
	if !p.discovers {
		// Nothing reads them.
		return common.DefaultCapabilities, nil
	}
	served, err := gotemplate.Discover(ctx)
	if err != nil {
		return nil, err
	}
	capabilities := &common.Capabilities{
		KubeVersion: common.KubeVersion{
			Version: served.Version.GitVersion, Major: served.Version.Major, Minor: served.Version.Minor,
		},
		APIVersions: versionSet(served),
		HelmVersion: common.DefaultCapabilities.HelmVersion,
	}
	constraint := p.chart.Metadata.KubeVersion
	if constraint != "" && !chartutil.IsCompatibleRange(constraint, capabilities.KubeVersion.String()) {
		return nil, fmt.Errorf("file Chart.yaml: kubeVersion: the chart needs %s, and the cluster has %s",
			constraint, served.Version.GitVersion)
	}
	return capabilities, nil
}

// versionSet has all versions of groups, and all kinds in them.
func versionSet(served *gotemplate.Served) common.VersionSet {
	var versions common.VersionSet
	for _, list := range served.Resources {
		versions = append(versions, list.GroupVersion)
		for _, resource := range list.APIResources {
			versions = append(versions, list.GroupVersion+"/"+resource.Kind)
		}
	}
	return versions
}

// further are the functions that charts may call, and that Helm does not have, or has without a cluster.
var further = []string{
	"lookup", "mustLookup", "lookupList", "localLookup", "mustLocalLookup", "localLookupList",
	"bitwiseShiftLeft", "bitwiseShiftRight", "bitwiseAnd", "bitwiseOr", "bitwiseXor",
	"parseIPv4Address", "formatIPv4Address",
}

// lookupFunction looks up one object or many.
type lookupFunction = func(apiVersion, kind, namespace, name string) (map[string]any, error)

// templateFunctions returns the functions to add to those of Helm, and a function that returns the first error of a
// lookup.
func templateFunctions(
	ctx context.Context, guard *gotemplate.Guard,
) (functions template.FuncMap, failed func() error) {
	functions = template.FuncMap{}
	all := gotemplate.Functions(ctx)
	for _, name := range further {
		if function, ok := all[name]; ok {
			functions[name] = function
		}
	}
	maps.Copy(functions, guard.Functions())
	var mu sync.Mutex
	var first error
	if lookup, ok := functions["lookup"].(lookupFunction); ok {
		functions["lookup"] = func(apiVersion, kind, namespace, name string) (map[string]any, error) {
			found, err := lookup(apiVersion, kind, namespace, name)
			// The lookup has let others go on, so this holds nobody back.
			if meta.IsNoMatchError(err) && isServed(ctx, apiVersion) {
				// Helm finds nothing of a kind that a version does not have. Another version is an error.
				return map[string]any{}, nil
			}
			mu.Lock()
			defer mu.Unlock()
			if first == nil {
				first = err
			}
			return found, err
		}
	}
	return functions, func() error {
		mu.Lock()
		defer mu.Unlock()
		return first
	}
}

func isServed(ctx context.Context, apiVersion string) bool {
	served, err := gotemplate.Discover(ctx)
	if err != nil {
		return false
	}
	for _, list := range served.Resources {
		if list.GroupVersion == apiVersion {
			return true
		}
	}
	return false
}

// renderError is an error of a template. The SDK keeps only the text of its cause.
type renderError struct {
	text  string
	cause error
}

func (e *renderError) Error() string { return e.text }

// Unwrap returns the error of a lookup, if there was one.
func (e *renderError) Unwrap() error { return e.cause }

var mismatch = regexp.MustCompile(`(?s)^type mismatch on ([^:]*): .*`)

// invalidValues replaces an error of the SDK, which contains a value.
func invalidValues(err error) error {
	if match := mismatch.FindStringSubmatch(err.Error()); match != nil {
		return fmt.Errorf("values of chart %s: %w", match[1], errNotMap)
	}
	return errors.New("the values cannot be merged with those of the chart")
}

var (
	// inner is where a text that tpl executes fails, with parts of the text; untold is the same without a reason.
	inner    = regexp.MustCompile(`(?s)error during tpl function execution for ".*>:\s+`)
	untold   = regexp.MustCompile(`(?s)error during tpl function execution for ".*`)
	unparsed = regexp.MustCompile(`(?s)(cannot parse template|error calling espalierGuardText:)\s.*`)
	iterated = regexp.MustCompile(`(?s)(can't iterate over) .*`)
	calling  = regexp.MustCompile(`error calling (\w+):\s`)
)

// spoken are functions whose errors have no values, or only those that the chart wants to be seen.
var spoken = map[string]bool{
	"include": true, "tpl": true, "fail": true, "required": true, "call": true, "index": true, "slice": true,
	"len": true, "eq": true, "ne": true, "lt": true, "le": true, "gt": true, "ge": true, "lookup": true,
	"mustLookup": true, "lookupList": true, "localLookup": true, "mustLocalLookup": true, "localLookupList": true,
}

// withoutValues returns the text of an error of the SDK on one line, without values that functions have got.
func withoutValues(text string) string {
	text = unparsed.ReplaceAllString(text, "error calling tpl: the text is not a template")
	text = gotemplate.Original(text)
	text = inner.ReplaceAllString(text, "in its text: ")
	text = untold.ReplaceAllString(text, "its text cannot be executed")
	text = iterated.ReplaceAllString(text, "$1 a value")
	for _, match := range calling.FindAllStringSubmatchIndex(text, -1) {
		if !spoken[text[match[2]:match[3]]] {
			text = text[:match[3]] + ": it does not accept its arguments"
			break
		}
	}
	lines := strings.Split(strings.TrimPrefix(text, "template: "), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, " ")
}

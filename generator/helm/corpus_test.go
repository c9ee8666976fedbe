package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template/parse"
	"time"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	charts "helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	v1 "helm.sh/helm/v4/pkg/release/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/gotemplate"
)

// The corpus is testdata/corpus, with a chart in each folder, and testdata/cases, with values for each chart. The
// folder testdata/packed has sub-charts that are packed into the chart umbrella.
const (
	corpusFolder = "testdata/corpus"
	casesFolder  = "testdata/cases"
	packedFolder = "testdata/packed"
)

// corpusChart returns a copy of a chart of the corpus, in a folder of its own.
func corpusChart(t testing.TB, name string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(corpusFolder, name))); err != nil {
		t.Fatal(err)
	}
	if name == "umbrella" {
		file := filepath.Join(folder, "charts", "packed-1.2.3.tgz")
		if err := os.WriteFile(file, pack(t, os.DirFS(packedFolder)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// pack returns an archive of all files in a folder.
func pack(t testing.TB, folder fs.FS) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	tarred := tar.NewWriter(zipped)
	if err := tarred.AddFS(folder); err != nil {
		t.Fatal(err)
	}
	if err := tarred.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// corpusCases returns the values of each case of a chart, as text. The case "default" has none.
func corpusCases(t testing.TB, chart string) map[string]string {
	t.Helper()
	cases := map[string]string{"default": ""}
	files, err := filepath.Glob(filepath.Join(casesFolder, chart, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		cases[strings.TrimSuffix(filepath.Base(file), ".yaml")] = string(content)
	}
	return cases
}

func corpusValues(t testing.TB, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func corpusCharts(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(corpusFolder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

const (
	corpusRelease   = "shop"
	corpusNamespace = "north"
)

// What the cluster serves, for both sides.
var (
	corpusVersion = common.KubeVersion{Version: "v1.34.2", Major: "1", Minor: "34"}
	corpusServed  = []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "secrets", Kind: "Secret"}}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
	}
)

// rendering is what a chart gives, of one side.
type rendering struct {
	// Definitions are those in the folders crds, Hooks and Manifests the other objects. All are in order.
	Definitions, Hooks, Manifests []map[string]any
}

// bySDK renders a chart as "helm template" does.
func bySDK(t testing.TB, folder string, values map[string]any, upgrade bool) (rendering, error) {
	t.Helper()
	chart, err := loader.LoadDir(folder)
	if err != nil {
		return rendering{}, err
	}
	accessor, err := charts.NewAccessor(chart)
	if err != nil {
		return rendering{}, err
	}
	if err := action.CheckDependencies(chart, accessor.MetaDependencies()); err != nil {
		return rendering{}, err
	}
	if chart.Metadata.Type == "library" {
		return rendering{}, fmt.Errorf("library charts are not installable")
	}
	discard := slog.New(slog.NewTextHandler(io.Discard, nil)).Handler()
	install := action.NewInstall(action.NewConfiguration(action.ConfigurationSetLogger(discard)))
	install.DryRunStrategy = action.DryRunClient
	install.ReleaseName, install.Namespace = corpusRelease, corpusNamespace
	install.Replace, install.IsUpgrade = true, upgrade
	install.KubeVersion = &corpusVersion
	install.APIVersions = common.VersionSet{"v1", "v1/Secret", "apps/v1", "apps/v1/Deployment"}
	result, err := install.Run(chart, values)
	if err != nil {
		return rendering{}, err
	}
	release := result.(*v1.Release)
	var r rendering
	for _, crd := range chart.CRDObjects() {
		r.Definitions = append(r.Definitions, parseAll(t, string(crd.File.Data))...)
	}
	r.Manifests = parseAll(t, release.Manifest)
	for _, hook := range release.Hooks {
		r.Hooks = append(r.Hooks, parseAll(t, hook.Manifest)...)
	}
	return r, nil
}

// parseAll parses YAML documents, apart from the code under test. Documents without content are left out.
func parseAll(t testing.TB, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for document := range strings.SplitSeq("\n"+strings.ReplaceAll(text, "\r\n", "\n"), "\n---") {
		var content map[string]any
		if err := yaml.Unmarshal([]byte(document), &content); err != nil {
			t.Fatalf("the error is %v, want none in\n%s", err, document)
		}
		if content != nil {
			all = append(all, content)
		}
	}
	return all
}

// byUs renders a chart by a generator, without the annotations that it adds. An error of the translation counts.
func byUs(ctx context.Context, made *Generator, values map[string]any, upgrade bool) (rendering, error) {
	chart := clone(made.chart)
	files, err := made.render(ctx, chart, values, common.ReleaseOptions{
		Name: corpusRelease, Namespace: corpusNamespace, Revision: 1, IsInstall: !upgrade, IsUpgrade: upgrade,
	}, gotemplate.NewGuard(ctx, made.options.Limits))
	if err != nil {
		return rendering{}, err
	}
	objects, err := parseFiles(files, made.options.Limits)
	if err != nil {
		return rendering{}, err
	}
	var r rendering
	for _, object := range definitionsOf(chart, made.definitions) {
		r.Definitions = append(r.Definitions, floats(object.Object).(map[string]any))
	}
	for _, object := range objects {
		content := floats(object.DeepCopy().Object).(map[string]any)
		if _, ok := object.GetAnnotations()[v1.HookAnnotation]; ok {
			r.Hooks = append(r.Hooks, content)
		} else {
			r.Manifests = append(r.Manifests, content)
		}
	}
	_, err = translate(objects, release{prefix: testPrefix, install: !upgrade}, &Options{})
	return r, err
}

// floats returns a value with all numbers as JSON has them.
func floats(value any) any {
	switch v := value.(type) {
	case int64:
		return float64(v)
	case map[string]any:
		for key := range v {
			v[key] = floats(v[key])
		}
	case []any:
		for i := range v {
			v[i] = floats(v[i])
		}
	}
	return value
}

func corpusContext(t testing.TB) context.Context {
	t.Helper()
	client := fake.NewClientBuilder().Build()
	discovery := &fakediscovery.FakeDiscovery{
		FakedServerVersion: &version.Info{Major: "1", Minor: "34", GitVersion: corpusVersion.Version},
		Fake:               &clienttesting.Fake{Resources: corpusServed},
	}
	resource := &unstructured.Unstructured{}
	resource.SetName(corpusRelease)
	return generator.NewContext(t.Context()).WithReconcilerName(testPrefix).WithComponent(resource).
		WithComponentRevision(1).WithClient(client).WithLocalClient(client).WithDiscovery(discovery)
}

// refusedByClusters are the cases that "helm template" accepts, and "helm install" refuses, since the objects are not
// valid: one has no kind, or an annotation that is not a text.
var refusedByClusters = map[string]bool{"documents/never": true, "broken/number": true, "broken/boolean": true}

// refused are the cases, and the charts, that Helm refuses.
var refused = map[string]bool{
	"broken/yaml": true, "broken/index": true, "broken/nil": true, "broken/type": true, "broken/missing": true,
	"broken/must": true, "broken/panic": true, "broken/text": true,
	"functions/fails":    true,
	"includes/not-given": true, "includes/empty-given": true, "includes/bad-tpl": true, "includes/tpl-of-unknown": true,
	"includes/endless": true, "includes/no-string": true,
	"schema/too-few": true, "schema/wrong-type": true, "schema/missing": true, "schema/enum": true,
	"schema/pattern": true, "schema/sub-chart": true, "schema/sub-chart-type": true,
	"umbrella/scalar-for-sub-chart": true,
	"incomplete":                    true, "library": true, "too-new": true, "unparsable": true,
}

// TestSameAsHelm: for each case of the corpus, the objects are those of "helm template", in the same order; and what
// Helm refuses is an error.
func TestSameAsHelm(t *testing.T) {
	t.Parallel()
	for _, name := range corpusCharts(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := corpusChart(t, name)
			// Keys take long to generate with the race detector.
			limits := gotemplate.Limits{Time: 5 * time.Minute}
			made, loadErr := NewGenerator(os.DirFS(folder), "", Options{Limits: limits})
			for testCase, text := range corpusCases(t, name) {
				for _, upgrade := range []bool{false, true} {
					what := corpusCase{name, testCase, upgrade}
					want, wantErr := bySDK(t, folder, corpusValues(t, text), upgrade)
					var got rendering
					err := loadErr
					if err == nil {
						got, err = byUs(corpusContext(t), made, corpusValues(t, text), upgrade)
					}
					if refusedByClusters[name+"/"+testCase] {
						if err == nil || wantErr != nil {
							t.Errorf("%v: want our error alone:\nerror of Helm: %v\nour error: %v", what, wantErr, err)
						}
						continue
					}
					checkSame(t, what, want, got, wantErr, err)
				}
			}
		})
	}
}

// corpusCase identifies a rendering.
type corpusCase struct {
	chart, name string
	upgrade     bool
}

func checkSame(t *testing.T, what corpusCase, want, got rendering, wantErr, err error) {
	t.Helper()
	isRefused := refused[what.chart+"/"+what.name] || refused[what.chart]
	switch {
	case err == nil && wantErr == nil && isRefused:
		t.Errorf("%v: nobody refuses it, want it refused", what)
	case (err == nil) != (wantErr == nil):
		t.Errorf("%v: want both errors or none:\nerror of Helm: %v\nour error: %v", what, wantErr, err)
	case err != nil:
		if !isRefused {
			t.Errorf("%v: both refuse it, want it accepted:\nerror of Helm: %v\nour error: %v", what, wantErr, err)
		}
	default:
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: the result differs, want that of Helm (-Helm +ours):\n%s", what, diff)
		}
		if len(want.Definitions)+len(want.Hooks)+len(want.Manifests) == 0 {
			t.Errorf("%v: there are no objects, want some", what)
		}
	}
}

// TestCorpusIsComplete: each function that Helm gives to templates is called in the corpus, and each method of its
// objects.
func TestCorpusIsComplete(t *testing.T) {
	t.Parallel()
	functions, fields := map[string]bool{}, map[string]bool{}
	for _, folder := range []string{corpusFolder, packedFolder} {
		for name, text := range templatesIn(t, folder) {
			collectUses(t, name, text, functions, fields)
		}
	}
	for _, name := range helmFunctions(t) {
		if !functions[name] {
			t.Errorf("no template calls %s, want one that does", name)
		}
	}
	for _, name := range []string{
		"Release.Name", "Release.Namespace", "Release.Service", "Release.Revision", "Release.IsInstall",
		"Release.IsUpgrade", "Chart.Name", "Chart.IsRoot", "Values", "Subcharts", "Template.Name", "Template.BasePath",
		"Capabilities.KubeVersion.Version", "Capabilities.KubeVersion.Major", "Capabilities.KubeVersion.Minor",
		"Capabilities.KubeVersion.GitVersion", "Capabilities.APIVersions.Has", "Capabilities.HelmVersion.Version",
		"Files.Get", "Files.GetBytes", "Files.Glob", "Files.Lines", "AsConfig", "AsSecrets",
	} {
		if !fields[name] {
			t.Errorf("no template uses .%s, want one that does", name)
		}
	}
}

// helmFunctions lists the functions of Helm: those of Sprig, and those in the source of the SDK.
func helmFunctions(t *testing.T) []string {
	t.Helper()
	all := map[string]bool{}
	for name := range sprig.TxtFuncMap() {
		all[name] = true
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "helm.sh/helm/v4/pkg/engine")
	list.Stderr = os.Stderr
	folder, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	functions := filepath.Join(strings.TrimSpace(string(folder)), "funcs.go")
	file, err := parser.ParseFile(token.NewFileSet(), functions, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := len(all)
	ast.Inspect(file, func(node ast.Node) bool {
		if pair, ok := node.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.BasicLit); ok && key.Kind == token.STRING {
				name, err := strconv.Unquote(key.Value)
				if err != nil {
					t.Fatal(err)
				}
				all[name] = true
			}
		}
		return true
	})
	if len(all) < count+10 {
		t.Fatalf("the SDK seems to add %d functions, want at least 10", len(all)-count)
	}
	// Helm removes these.
	delete(all, "env")
	delete(all, "expandenv")
	return slices.Sorted(maps.Keys(all))
}

// templatesIn returns the templates below a folder. Those that are not to be parsed are left out.
func templatesIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	templates := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.Contains(name, "/templates/") || path.Dir(name) == "unparsable/templates" {
			return err
		}
		content, err := os.ReadFile(filepath.Join(folder, name))
		templates[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return templates
}

// collectUses adds the functions that a template calls, and the fields that it reads.
func collectUses(t *testing.T, name, text string, functions, fields map[string]bool) {
	t.Helper()
	tree := parse.New(name)
	tree.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := tree.Parse(text, "", "", trees); err != nil {
		t.Fatal(err)
	}
	addFields := func(names []string) {
		for i := range names {
			fields[strings.Join(names[:i+1], ".")] = true
		}
	}
	var visit func(node parse.Node)
	visitPipe := func(pipe *parse.PipeNode) {
		if pipe != nil {
			visit(pipe)
		}
	}
	branch := func(node *parse.BranchNode) {
		visitPipe(node.Pipe)
		visit(node.List)
		if node.ElseList != nil {
			visit(node.ElseList)
		}
	}
	visit = func(node parse.Node) {
		switch n := node.(type) {
		case *parse.ListNode:
			for _, child := range n.Nodes {
				visit(child)
			}
		case *parse.ActionNode:
			visitPipe(n.Pipe)
		case *parse.TemplateNode:
			visitPipe(n.Pipe)
		case *parse.IfNode:
			branch(&n.BranchNode)
		case *parse.RangeNode:
			branch(&n.BranchNode)
		case *parse.WithNode:
			branch(&n.BranchNode)
		case *parse.PipeNode:
			for _, command := range n.Cmds {
				visit(command)
			}
		case *parse.CommandNode:
			for _, argument := range n.Args {
				visit(argument)
			}
		case *parse.ChainNode:
			visit(n.Node)
			addFields(n.Field)
		case *parse.IdentifierNode:
			functions[n.Ident] = true
		case *parse.FieldNode:
			addFields(n.Ident)
		case *parse.VariableNode:
			addFields(n.Ident[1:])
		}
	}
	for _, tree := range trees {
		visit(tree.Root)
	}
}

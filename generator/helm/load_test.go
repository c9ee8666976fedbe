package helm_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/espalier-dev/espalier/generator/helm"
)

var simple = files{"templates/main.yaml": configMap("main", "  a: b")}

func TestSources(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := os.CopyFS(filepath.Join(disk, "a", "chart"), simple.folder()); err != nil {
		t.Fatal(err)
	}
	archive := packed(t, simple.in("demo"))
	write(t, filepath.Join(disk, "demo.tgz"), archive)
	link(t, "chart", filepath.Join(disk, "a", "link"))
	nested := fstest.MapFS{"demo.tgz": {Data: []byte(archive)}}
	for name, file := range simple.folder() {
		nested["a/chart/"+name] = file
	}
	for name, row := range map[string]struct {
		folder fs.FS
		path   string
	}{
		"folder itself":            {simple.folder(), ""},
		"dot":                      {simple.folder(), "."},
		"folder in a folder":       {nested, "a/chart"},
		"path that is not clean":   {nested, "./a//chart/"},
		"path with a slash":        {nested, "/a/chart"},
		"archive":                  {nested, "demo.tgz"},
		"operating system":         {os.DirFS(disk), "a/chart"},
		"disk":                     {nil, filepath.Join(disk, "a", "chart")},
		"link to a chart on disk":  {nil, filepath.Join(disk, "a", "link")},
		"archive on disk":          {nil, filepath.Join(disk, "demo.tgz")},
		"archive in the OS folder": {os.DirFS(disk), "demo.tgz"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			generator, err := helm.NewGenerator(row.folder, row.path, helm.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := dataOf(t, generate(t, generator, newCluster(), "{}"))["a"]; got != "b" {
				t.Errorf("want the value b, got %v", got)
			}
		})
	}
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t testing.TB, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func TestHelmignore(t *testing.T) {
	t.Parallel()
	generator := load(t, files{
		".helmignore":                   "# comment\n*.bak\nsecret/\n/files/top.txt\n",
		"files/top.txt":                 "x",
		"files/in/top.txt":              "y",
		"secret/key.txt":                "z",
		"templates/old.bak":             "{{ not a template",
		"templates/.swp":                "{{ not a template",
		"templates/main.yaml":           configMap("main", `  got: {{ range $name, $_ := .Files }}{{ $name }} {{ end }}`),
		"charts/one/Chart.yaml":         "apiVersion: v2\nname: one\nversion: 1.0.0\n",
		"charts/one/templates/none.bak": "{{ not a template",
	}, helm.Options{})
	if got := dataOf(t, generate(t, generator, newCluster(), "{}"))["got"]; got != ".helmignore files/in/top.txt" {
		t.Errorf("want the files that are not ignored, got %v", got)
	}
}

func TestChartsThatAreRefused(t *testing.T) {
	t.Parallel()
	schema := func(text string) files { return simple.and(files{"values.schema.json": text}) }
	traversal := func(name string) files {
		return files{"charts/one-1.0.0.tgz": packed(t, sub("one").in("one").and(files{name: "x"}))}
	}
	for name, row := range map[string]struct {
		chart files
		want  string
	}{
		"no metadata":   {files{"Chart.yaml": ""}, "Chart.yaml"},
		"wrong version": {files{"Chart.yaml": "apiVersion: v2\nname: demo\nversion: x\n"}, "version"},
		"library":       {files{"Chart.yaml": chartYAML + "type: library\n"}, "a chart of type library has no objects"},
		"values":        {files{"values.yaml": "a: [\n"}, "values.yaml"},
		"missing dependency": {
			files{"Chart.yaml": depending("- {name: two, version: 1.x, condition: never}\n")},
			"dependencies[0]: chart two is not in the folder charts",
		},
		"empty dependency":         {files{"Chart.yaml": depending("-\n")}, "dependencies"},
		"definition without kind":  {files{"crds/a.yaml": "apiVersion: v1\n"}, "demo/crds/a.yaml: document 1: it has no kind"},
		"definition that is wrong": {files{"crds/a.yaml": "a: b\n c: s3cret\n"}, "demo/crds/a.yaml: document 1: line 2: it is not valid YAML"},
		"helmignore":               {files{".helmignore": "a/**\n"}, ".helmignore: double-star"},
		"schema that is no JSON":   {schema("{"), "values.schema.json of chart demo"},
		"empty schema":             {schema(""), "values.schema.json of chart demo"},
		"remote schema":            {schema(`{"$ref": "https://example.com/a.json"}`), "must not refer to anything outside"},
		"schema on the disk":       {schema(`{"$ref": "file:///etc/passwd"}`), "must not refer to anything outside"},
		"schema next to it":        {schema(`{"$ref": "other.json"}`), "must not refer to anything outside"},
		"relative to a remote ID":  {schema(`{"$id": "http://example.com/a.json", "$ref": "b.json"}`), "must not refer to anything outside"},
		"remote meta schema":       {schema(`{"$schema": "http://example.com/meta.json"}`), "must not refer to anything outside"},
		"schema of a sub-chart": {
			schema(`{"$ref": "http://localhost/a.json"}`).in("charts/demo"), "values.schema.json of chart demo/charts/demo",
		},
		"absolute path":      {traversal("one//etc/passwd"), "charts/one-1.0.0.tgz: unable to unpack: chart illegally contains absolute paths"},
		"path to the parent": {traversal("one/../../../etc/passwd"), "charts/one-1.0.0.tgz: unable to unpack: chart illegally references parent directory"},
		"sub-chart is no archive": {
			files{"charts/one-1.0.0.tgz": "x"}, "charts/one-1.0.0.tgz: unable to unpack",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := helm.NewGenerator(row.chart.folder(), "", helm.Options{})
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("want an error with %q, got %v", row.want, err)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("want no content in the error, got %v", err)
			}
		})
	}
}

func TestSchemasThatReferToThemselves(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"fragment":    `{"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}`,
		"own ID":      `{"$id": "https://example.com/a.json", "$ref": "a.json#/$defs/a", "$defs": {"a": {"type": "object"}}}`,
		"meta schema": `{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}`,
		"newest meta": `{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}`,
		"reference":   `{"properties": {"a": {"$ref": "http://json-schema.org/draft-07/schema#"}}}`,
		"urn":         `{"$ref": "urn:example:a"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			generate(t, load(t, simple.and(files{"values.schema.json": schema}), helm.Options{}), newCluster(), "{}")
		})
	}
}

func TestFoldersThatAreLeft(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	write(t, filepath.Join(disk, "secret"), "s3cret")
	if err := os.Mkdir(filepath.Join(disk, "outside"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct{ link, target, want string }{
		"file":              {"files", "../secret", "files"},
		"absolute file":     {"templates/a.yaml", filepath.Join(disk, "secret"), "templates/a.yaml"},
		"folder":            {"charts", "../outside", "charts"},
		"values":            {"values.yaml", "../secret", "values.yaml"},
		"ignored files":     {".helmignore", "../secret", ".helmignore"},
		"metadata":          {"Chart.yaml", "../secret", "Chart.yaml"},
		"loop":              {"files", ".", "files"},
		"loop of two":       {"templates/loop", "../templates", "templates/loop"},
		"target is missing": {"files", "nothing", "files"},
	} {
		chart := filepath.Join(disk, strings.ReplaceAll(name, " ", "-"))
		source := simple.folder()
		if row.link == "Chart.yaml" {
			delete(source, "Chart.yaml")
		}
		if err := os.CopyFS(chart, source); err != nil {
			t.Fatal(err)
		}
		link(t, row.target, filepath.Join(chart, row.link))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, try := range []struct {
				folder fs.FS
				path   string
			}{{nil, chart}, {os.DirFS(chart), ""}, {os.DirFS(disk), filepath.Base(chart)}} {
				_, err := helm.NewGenerator(try.folder, try.path, helm.Options{})
				if err == nil || !strings.Contains(strings.TrimPrefix(err.Error(), "unable to load chart"), row.want) {
					t.Errorf("want an error that names %s, got %v", row.want, err)
				}
				if err != nil && strings.Contains(err.Error(), "s3cret") {
					t.Errorf("want no content in the error, got %v", err)
				}
			}
		})
	}
}

func TestLinksThatStayInTheFolder(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := os.CopyFS(filepath.Join(disk, "..data"), simple.folder()); err != nil {
		t.Fatal(err)
	}
	link(t, "..data/Chart.yaml", filepath.Join(disk, "Chart.yaml"))
	link(t, "..data/templates", filepath.Join(disk, "templates"))
	generator, err := helm.NewGenerator(nil, disk, helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := dataOf(t, generate(t, generator, newCluster(), "{}"))["a"]; got != "b" {
		t.Errorf("want the value b, got %v", got)
	}
	_, err = helm.NewGenerator(os.DirFS(disk), "", helm.Options{})
	if err == nil || !strings.Contains(err.Error(), "it is a symbolic link") {
		t.Errorf("want links to be refused, got %v", err)
	}
}

func TestPathsThatAreRefused(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := os.CopyFS(filepath.Join(disk, "chart"), simple.folder()); err != nil {
		t.Fatal(err)
	}
	link(t, "chart", filepath.Join(disk, "link"))
	link(t, ".", filepath.Join(disk, "here"))
	write(t, filepath.Join(disk, "demo.tgz"), packed(t, simple.in("demo").and(files{"demo/../../x": "y"})))
	for name, row := range map[string]struct {
		folder     fs.FS
		path, want string
	}{
		"nothing":             {nil, "", "there is neither a folder nor a path"},
		"missing":             {simple.folder(), "other", "other"},
		"missing on disk":     {nil, filepath.Join(disk, "other"), "other"},
		"parent":              {os.DirFS(filepath.Join(disk, "chart")), "../chart", "../chart"},
		"link":                {os.DirFS(disk), "link", "it is a symbolic link"},
		"link on the way":     {os.DirFS(disk), "here/chart", "it is a symbolic link"},
		"a file":              {simple.folder(), "Chart.yaml", "Chart.yaml"},
		"archive that leaves": {nil, filepath.Join(disk, "demo.tgz"), "demo.tgz\": unable to unpack"},
		"unknown policy":      {simple.folder(), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := helm.Options{}
			if row.want == "" {
				options.Definitions, row.want = "Sometimes", `"Sometimes" is not a policy`
			}
			_, err := helm.NewGenerator(row.folder, row.path, options)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("want an error with %q, got %v", row.want, err)
			}
		})
	}
}

// A chart that is small when it is packed must not fill the memory.
func TestSizeIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it unpacks 200 MiB")
	}
	zeros := strings.Repeat("\x00", 60<<20)
	inner := packed(t, sub("one").in("one").and(files{"one/zeros": zeros}))
	for name, chart := range map[string]files{
		"folder": {"a": zeros, "b": zeros},
		"packed sub-charts": {
			"charts/one-1.0.0.tgz": inner, "charts/two-1.0.0.tgz": inner,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := helm.NewGenerator(maps.Clone(chart).folder(), "", helm.Options{})
			if err == nil || !strings.Contains(err.Error(), "the chart has more than 104857600 bytes") {
				t.Errorf("want the chart to be refused, got %v", err)
			}
		})
	}
}

// Package scaffold makes the files of a new project, and of a root for one that exists.
//
// The templates are a project that compiles, in the folder project: the packages in common, with those in tree or in
// component and in a folder for what generates the objects; or those in plugin alone. The tests of this module run its
// tests. [Options.Files] leaves out what options do not ask for, and puts in names.
package scaffold

import (
	"embed"
	"fmt"
	"go/format"
	"io/fs"
	"path"
	"strings"
)

//go:generate controller-gen object paths=./project/...
//go:generate controller-gen crd paths=./project/tree/api/... output:crd:dir=project/tree/config/crd
//go:generate controller-gen crd paths=./project/component/api/... output:crd:dir=project/component/config/crd
//go:generate controller-gen webhook paths=./project/common/webhook output:webhook:dir=project/tree/config/webhook
//go:generate controller-gen webhook paths=./project/common/webhook output:webhook:dir=project/component/config/webhook
//go:generate go -C project/tree run ./config/generate
//go:generate go -C project/component run ./config/generate

//go:embed all:project
var embedded embed.FS

// Files are the contents of files by their paths, with slashes.
type Files map[string][]byte

// layers returns the folders of templates that the project is made of.
func (o Options) layers() []string {
	if o.Plugin != "" {
		return []string{"project/plugin"}
	}
	if o.Component == "" {
		return []string{"project/common", "project/tree"}
	}
	return []string{"project/common", "project/tree/story", "project/component", "project/" + o.Component}
}

// Files returns the files of a new project. The options are complete.
func (o Options) Files() (Files, error) {
	files := Files{"go.mod": []byte(o.goMod())}
	for _, layer := range o.layers() {
		if err := o.addLayer(files, layer); err != nil {
			return nil, err
		}
	}
	if header := o.header(); header != "" {
		files["hack/boilerplate.go.txt"] = []byte(header)
	}
	return files, nil
}

// addLayer adds the files of a folder of templates.
func (o Options) addLayer(files Files, layer string) error {
	return fs.WalkDir(embedded, layer, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		at := strings.Join(strings.Split(name, "/")[2:], "/")
		if !o.wants(at) {
			return nil
		}
		template, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		files[o.replaceTokens(at)], err = o.render(at, string(template))
		return err
	})
}

// wants reports whether the project has the file of a template.
func (o Options) wants(at string) bool {
	switch {
	case strings.Contains(path.Base(at), "defaulting"):
		return o.Defaulting
	case strings.Contains(path.Base(at), "validating"):
		return o.Validating
	case strings.Contains(at, "webhook"):
		return o.Defaulting || o.Validating
	}
	return true
}

// render returns the content of a file, from its template, whose path decides what is derived: names of files of the
// project have the kind, which may be any word.
func (o Options) render(at, template string) ([]byte, error) {
	text, err := o.selectBlocks(at, template)
	if err != nil {
		return nil, err
	}
	text = o.replaceTokens(text)
	switch at {
	case "config/crd/group.example.test_placeholders.yaml", "chart/files/crd.yaml":
		return o.deriveDefinition(text)
	case "config/rbac/role.yaml", "chart/files/role.yaml":
		return o.deriveRole(text)
	case "config/webhook/manifests.yaml", "chart/files/webhooks.yaml":
		return o.deriveWebhooks(text)
	}
	if path.Ext(at) != ".go" {
		return []byte(text), nil
	}
	formatted, err := format.Source([]byte(o.withHeader(text)))
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", at, err)
	}
	return formatted, nil
}

// withHeader returns the source of a file with the header, where controller-gen has it too.
func (o Options) withHeader(source string) string {
	header := o.header()
	if header == "" {
		return source
	}
	if constraint, rest, ok := strings.Cut(source, "\n\n"); ok && strings.HasPrefix(constraint, "//go:build") {
		return constraint + "\n\n" + header + "\n" + rest
	}
	return header + "\n" + source
}

// modules returns the modules of Espalier that the project needs, by their paths in the repository.
func (o Options) modules() (required, replaced []string) {
	if o.Plugin != "" {
		required = []string{"", "/plugins"}
		return required, required
	}
	required = []string{""}
	switch o.Component {
	case "chart":
		required = append(required, "/generator/helm")
	case "kustomization":
		required = append(required, "/generator/kustomize")
	}
	if len(required) > 1 {
		return required, append([]string{"/generator/gotemplate"}, required...)
	}
	return required, required
}

// Espalier is the path of the main module of Espalier. Those of others begin with it.
const Espalier = "github.com/espalier-dev/espalier"

// goMod returns a go.mod that "go mod tidy" completes: the modules of Espalier say which versions they are tested with.
func (o Options) goMod() string {
	var mod strings.Builder
	required, replaced := o.modules()
	fmt.Fprintf(&mod, "module %s\n\ngo %s\n\nrequire (\n", o.Module, o.GoVersion)
	version := o.EspalierVersion
	if o.Replace != "" {
		version = "v0.0.0"
	}
	for _, at := range required {
		fmt.Fprintf(&mod, "\t%s%s %s\n", Espalier, at, version)
	}
	mod.WriteString(")\n")
	if o.Replace != "" {
		mod.WriteString("\nreplace (\n")
		for _, at := range replaced {
			fmt.Fprintf(&mod, "\t%s%s => %q\n", Espalier, at, o.Replace+at)
		}
		mod.WriteString(")\n")
	}
	return mod.String()
}

package scaffold

import (
	"bytes"
	"cmp"
	"fmt"
	"go/format"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/reconcilers"
)

// maxProject is how many bytes a PROJECT file may have.
const maxProject = 1 << 20

// Existing is a project of Kubebuilder, as its file PROJECT tells.
type Existing struct {
	Domain     string `json:"domain"`
	Repo       string `json:"repo"`
	MultiGroup bool   `json:"multigroup"`
	Resources  []struct {
		Group   string `json:"group"`
		Domain  string `json:"domain"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
		// Path is that of the package with the type, which may be of another module.
		Path string `json:"path"`
	} `json:"resources"`

	dir string
}

// ReadExisting reads the file PROJECT in a folder.
func ReadExisting(dir string) (*Existing, error) {
	at := filepath.Join(dir, "PROJECT")
	content, err := os.ReadFile(at)
	if err != nil {
		return nil, fmt.Errorf("--add needs the file PROJECT of a project of Kubebuilder: %w", err)
	}
	e := &Existing{dir: dir}
	if len(content) > maxProject {
		return nil, fmt.Errorf("%s has %d bytes, and at most %d can be", at, len(content), maxProject)
	}
	if err := yaml.Unmarshal(content, e); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if e.Repo == "" {
		return nil, fmt.Errorf("%s does not say repo, the path of the Go module", at)
	}
	return e, nil
}

// groupNames finds the marker of a package that says which group it is of.
var groupNames = regexp.MustCompile(`(?m)^//\s*\+groupName=(\S+)`)

// Complete returns the options of a root in the project, or an error that names the flag of what cannot be. The group
// may be without the domain of the project.
func (e *Existing) Complete(o Options) (Options, error) {
	if o.Defaulting || o.Validating {
		return o, fmt.Errorf("--add makes no webhooks: they are independent of the root")
	}
	if o.Group != "" && !strings.Contains(o.Group, ".") && e.Domain != "" {
		o.Group += "." + e.Domain
	}
	o.Module = e.Repo
	o, err := o.Complete()
	if err != nil {
		return o, err
	}
	for _, resource := range e.Resources {
		group := strings.Trim(resource.Group+"."+cmp.Or(resource.Domain, e.Domain), ".")
		switch ours := resource.Path == "" || strings.HasPrefix(resource.Path, e.Repo+"/"); {
		case resource.Kind == o.Kind && group == o.Group && resource.Version == o.Version:
			return o, fmt.Errorf("--kind is %q, which PROJECT has already in %s/%s", o.Kind, o.Group, o.Version)
		case ours && !e.MultiGroup && group != o.Group:
			return o, fmt.Errorf("--group is %q, and PROJECT has %s in %s: run \"kubebuilder edit --multigroup=true\" "+
				"first, and move what is there as its documentation says", o.Group, resource.Kind, group)
		}
	}
	if name := o.packageName(); token.IsKeyword(name) || slices.Contains(notPackages, name) {
		return o, fmt.Errorf("--plural is %q, which cannot be the name of a Go package", o.Plural)
	}
	return o, nil
}

// notPackages are names of folders and packages that mean something else to the go command.
var notPackages = []string{"init", "internal", "main", "testdata", "vendor"}

// packageName is the name of the package of the controller.
func (o Options) packageName() string { return strings.ReplaceAll(o.Plural, "-", "") }

// apiAlias is what main.go calls the package of the API.
func (o Options) apiAlias() string {
	group, _, _ := strings.Cut(o.Group, ".")
	alias := strings.ReplaceAll(group, "-", "") + o.Version
	if !token.IsIdentifier(alias) {
		return "group" + alias
	}
	return alias
}

// Addition is what a root adds to a project.
type Addition struct {
	Files Files
	// Imports, Scheme and SetUp are the lines for main.go: its imports, what makes the types known to the scheme, and
	// what sets up the controller.
	Imports []string
	Scheme  string
	SetUp   string
	// Get is the command that gets the modules.
	Get string
}

// Add returns what a root adds to the project. The options are complete.
func (e *Existing) Add(o Options) (*Addition, error) {
	group, _, _ := strings.Cut(o.Group, ".")
	api := path.Join("api", o.Version)
	if e.MultiGroup {
		api = path.Join("api", group, o.Version)
	}
	controller := path.Join("internal", "controller", o.packageName())
	known, err := o.isForeign(filepath.Join(e.dir, filepath.FromSlash(api)))
	if err != nil {
		return nil, err
	}
	root := "tree"
	folders := map[string]string{"project/tree/api/v9alpha9": api, "project/tree/controller": controller}
	if o.Component != "" {
		root = "component"
		folders = map[string]string{
			"project/component/api/v9alpha9": api, "project/component/controller": controller,
			"project/" + o.Component + "/software": path.Join(controller, "software"),
		}
	}
	a := &Addition{Files: Files{}}
	for folder, to := range folders {
		if err := o.addFolder(a.Files, folder, to, known); err != nil {
			return nil, err
		}
	}
	for name, content := range a.Files {
		a.Files[name] = o.move(content, e.Repo, api, controller, o.addToScheme(known))
	}
	if a.Files[path.Join(controller, "rbac.go")], err = o.markers(root); err != nil {
		return nil, err
	}
	a.Imports = []string{
		`"context"`,
		fmt.Sprintf("%s %q", o.apiAlias(), e.Repo+"/"+api), fmt.Sprintf("%q", Espalier),
		fmt.Sprintf("%scontroller %q", o.packageName(), e.Repo+"/"+controller),
	}
	a.Scheme = fmt.Sprintf("utilruntime.Must(%s.%s(scheme))", o.apiAlias(), o.addToScheme(known))
	a.SetUp = fmt.Sprintf("if err := %scontroller.SetUp(context.Background(), mgr, espalier.NewConfig(mgr)); "+
		"err != nil {\n\tsetupLog.Error(err, \"unable to set up the controller\", \"kind\", %q)\n\tos.Exit(1)\n}",
		o.packageName(), o.Kind)
	a.Get = o.get()
	return a, nil
}

// get returns the command that has go.mod require the modules of Espalier, or the checkout.
func (o Options) get() string {
	required, replaced := o.modules()
	command, what := "go get", required
	if o.Replace != "" {
		command, what = "go mod edit", replaced
	}
	for _, at := range what {
		if o.Replace == "" {
			command += " " + Espalier + at + "@" + cmp.Or(o.EspalierVersion, "latest")
		} else {
			command += fmt.Sprintf(" %q", "-replace="+Espalier+at+"="+o.Replace+filepath.FromSlash(at))
		}
	}
	return command
}

// addToScheme is the name of the function that makes the types known. In a package with other types, it has the kind.
func (o Options) addToScheme(known bool) string {
	if known {
		return "Add" + o.Kind + "ToScheme"
	}
	return "AddToScheme"
}

// addFolder adds the files of a folder of templates to another folder. A package of an API that exists gets the types
// alone.
func (o Options) addFolder(files Files, folder, to string, known bool) error {
	return fs.WalkDir(embedded, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		template, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		at := strings.TrimPrefix(name, folder+"/")
		inAPI := strings.Contains(folder, "/api/")
		switch {
		case inAPI && at == "types.go":
			at = strings.ToLower(o.Kind) + "_types.go"
			if known {
				template = append(template, addToSchemeOf...)
				const imports = "import (\n"
				template = bytes.Replace(template, []byte(imports),
					[]byte(imports+"\t\"k8s.io/apimachinery/pkg/runtime\"\n"), 1)
			}
		case inAPI && known:
			return nil
		}
		files[path.Join(to, at)], err = o.render(at, string(template))
		return err
	})
}

const addToSchemeOf = `
// AddPlaceholderToScheme makes the types of the kind known to a scheme.
func AddPlaceholderToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Placeholder{}, &PlaceholderList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
`

// move returns a file with the import paths and package names of where it is in the project.
func (o Options) move(content []byte, repo, api, controller, addToScheme string) []byte {
	text := strings.NewReplacer(
		o.Version+".AddToScheme(scheme)", o.Version+"."+addToScheme+"(scheme)",
		`"`+repo+"/api/"+o.Version+`"`, `"`+repo+"/"+api+`"`,
		// The name of the package may be that of another one.
		`"`+repo+`/controller"`, `controller "`+repo+"/"+controller+`"`,
		`"`+repo+`/software"`, `"`+repo+"/"+controller+`/software"`,
		"package controller", "package "+o.packageName(),
		"// Package controller ", "// Package "+o.packageName()+" ",
		"go test ./controller ", "go test ./"+controller+" ",
		// Two kinds of one package may each have a condition of this name.
		"// DeploymentReady ", "// "+o.Kind+"DeploymentReady ",
		"const DeploymentReady ", "const "+o.Kind+"DeploymentReady ",
		o.Version+".DeploymentReady", o.Version+"."+o.Kind+"DeploymentReady",
	).Replace(string(content))
	if formatted, err := format.Source([]byte(text)); err == nil {
		return formatted
	}
	return []byte(text) // it is no Go
}

// markers returns a file with what controller-gen makes the role of the operator of.
func (o Options) markers(root string) ([]byte, error) {
	template, err := embedded.ReadFile("project/" + root + "/config/rbac/role.yaml")
	if err != nil {
		return nil, err
	}
	manifest, err := o.render("config/rbac/role.yaml", string(template))
	if err != nil {
		return nil, err
	}
	role := rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(manifest, &role); err != nil {
		return nil, err
	}
	text := "package " + o.packageName() +
		"\n\n// What the tree needs. \"make manifests\" makes the role of it.\n//\n" +
		strings.Join(reconcilers.RBACMarkers(role.Rules), "\n") + "\n"
	return format.Source([]byte(o.withHeader(text)))
}

// isForeign reports whether a folder has a package of an API that an addition, which was perhaps interrupted, has not
// written. A package of another group is an error.
func (o Options) isForeign(dir string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		return false, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		if group := groupNames.FindSubmatch(content); group != nil && string(group[1]) != o.Group {
			return false, fmt.Errorf("--group is %q, and the package in %s is that of %s: give another --version",
				o.Group, dir, group[1])
		}
	}
	template, err := embedded.ReadFile("project/tree/api/v9alpha9/doc.go")
	if err != nil {
		return false, err
	}
	ours, err := o.render("doc.go", string(template))
	if err != nil {
		return false, err
	}
	theirs, err := os.ReadFile(filepath.Join(dir, "doc.go"))
	return err != nil || !bytes.Equal(ours, theirs), nil
}

package scaffold

import (
	"fmt"
	"go/version"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// Versions that a project begins with. A test compares them with the modules of this repository.
const (
	// GoVersion is the least version of Go.
	GoVersion = "1.26.0"
	// ControllerGenVersion is the version of controller-gen.
	ControllerGenVersion = "v0.23.0"
)

// Generators are what the objects of a component can be made by.
var Generators = []string{"code", "chart", "kustomization", "dummy"}

// Options say what a project is like. Each field has the flag of the command that an error names.
type Options struct {
	Group, Version, Kind string // --group, --version, --kind
	// Plural is the name of the resource, as in URLs. Empty is the usual plural of the kind.
	Plural string // --plural
	// Namespaced says that the resources are in namespaces.
	Namespaced bool // --namespaced
	// Component is one of Generators, for a root whose resources are components. Empty is a root with a tree.
	Component string // --component
	// Defaulting and Validating say which webhooks there are.
	Defaulting, Validating bool // --defaulting-webhook, --validating-webhook

	// Plugin is the category and the type of a capability, as in "database/postgres", for the project of a plugin.
	// Then the fields above do not count. Empty is the project of an operator.
	Plugin string // --plugin

	Module    string // --module
	GoVersion string // --go-version
	// Operator is the name of the program, of what is deployed, and of the Lease of its leader. Empty is that of the
	// kind in lower case and "-operator". That of a plugin is its type and "-plugin".
	Operator string // --operator-name
	// Image is what is built and deployed. Empty is the name of the operator with the tag "dev".
	Image string // --image

	// Owner and License are in the header of Go files. License is an SPDX expression. LicenseHeader is the text of the
	// header instead. All empty is no header.
	Owner         string // --owner
	License       string // --license
	LicenseHeader string // --license-header

	// EspalierVersion is the version of the modules of Espalier that the project requires. It is not needed with
	// Replace, a folder with a checkout of the repository that go.mod then replaces them with.
	EspalierVersion string // --espalier-version
	Replace         string // --replace
}

var (
	kinds    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	versions = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	images   = regexp.MustCompile(
		`^[a-z0-9]([a-z0-9._:/-]*[a-z0-9])?(:[A-Za-z0-9_][A-Za-z0-9._-]*)?(@sha256:[0-9a-f]{64})?$`)
	// goVersions are those that go.mod may name.
	goVersions = regexp.MustCompile(`^[0-9]+\.[0-9]+(\.[0-9]+|rc[0-9]+)?$`)
	// capabilities are a category and a type.
	capabilities = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?/[a-z]([a-z0-9-]*[a-z0-9])?$`)
	licenses     = regexp.MustCompile(`^[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*$`)
	// reserved are what the package of the API declares besides the kind.
	reserved = []string{"GroupVersion", "AddToScheme", "DeploymentReady"}
)

const (
	// maxKind leaves room for "list" in a name of 63 characters.
	maxKind = 59
	// maxCapability leaves room for "-plugin" in the name of an operator.
	maxCapability = 40
	// maxOperator leaves room for "-leader-election" in one.
	maxOperator = 47
	// MaxHeader is how many bytes a header may have.
	MaxHeader = 64 << 10
)

// Complete returns the options with defaults in place of what is empty, or an error that names the flag of what cannot
// be.
func (o Options) Complete() (Options, error) {
	checkContent := Options.checkAPI
	if o.Plugin != "" {
		checkContent = Options.checkPlugin
		o.Operator = o.capability().typ + "-plugin"
	}
	lower := strings.ToLower(o.Kind)
	if o.Plural == "" && o.Kind != "" {
		o.Plural = plural(lower)
	}
	if o.Operator == "" {
		o.Operator = lower + "-operator"
	}
	if o.Image == "" {
		o.Image = o.Operator + ":dev"
	}
	if o.GoVersion == "" {
		o.GoVersion = GoVersion
	}
	for _, check := range []func(Options) error{checkContent, Options.checkProgram, Options.checkHeader} {
		if err := check(o); err != nil {
			return o, err
		}
	}
	return o, nil
}

// plural returns the regular plural of a noun.
func plural(noun string) string {
	for _, hissing := range []string{"s", "x", "z", "ch", "sh"} {
		if strings.HasSuffix(noun, hissing) {
			return noun + "es"
		}
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && stem != "" && !strings.Contains("aeiou", stem[len(stem)-1:]) {
		return stem + "ies"
	}
	return noun + "s"
}

func (o Options) checkAPI() error {
	problems := validation.IsDNS1123Subdomain(o.Group)
	switch {
	case o.Group == "":
		return fmt.Errorf("--group is missing: give the API group, such as shop.example.com")
	case len(problems) > 0:
		return fmt.Errorf("--group is %q: %s", o.Group, problems[0])
	case !strings.Contains(o.Group, ".") || !isText(o.Group):
		return fmt.Errorf("--group is %q, and must be below a domain, such as shop.example.com", o.Group)
	case isProtected(o.Group):
		return fmt.Errorf("--group is %q, and groups below k8s.io and kubernetes.io are those of Kubernetes", o.Group)
	case !versions.MatchString(o.Version):
		return fmt.Errorf("--version is %q, and must be like v1, v1beta1 or v1alpha1", o.Version)
	case o.Kind == "":
		return fmt.Errorf("--kind is missing: give the kind, such as Shop")
	case !kinds.MatchString(o.Kind) || len(o.Kind) > maxKind || !isText(strings.ToLower(o.Kind)):
		return fmt.Errorf("--kind is %q, and must be a name such as Shop, with at most %d letters and digits",
			o.Kind, maxKind)
	case slices.Contains(reserved, o.Kind):
		return fmt.Errorf("--kind is %q, which is what something else in the package of the API is called", o.Kind)
	case len(validation.IsDNS1035Label(o.Plural)) > 0 || !isText(o.Plural):
		return fmt.Errorf("--plural is %q, and must be a name in lower case, such as shops", o.Plural)
	case len(validation.IsDNS1123Subdomain(o.Plural+"."+o.Group)) > 0:
		return fmt.Errorf("--plural and --group are too long: %s.%s is the name of the definition, "+
			"of at most %d characters", o.Plural, o.Group, validation.DNS1123SubdomainMaxLength)
	case (o.Defaulting || o.Validating) && len(validation.IsDNS1123Subdomain("validate."+o.Group)) > 0:
		return fmt.Errorf("--group is too long for webhooks: validate.%s is the name of one, of at most %d characters",
			o.Group, validation.DNS1123SubdomainMaxLength)
	case o.Component != "" && !slices.Contains(Generators, o.Component):
		return fmt.Errorf("--component is %q, and must be one of %s", o.Component, strings.Join(Generators, ", "))
	}
	return nil
}

// capability is what a plugin provides.
type capability struct{ category, typ string }

func (o Options) capability() capability {
	category, typ, _ := strings.Cut(o.Plugin, "/")
	return capability{category, typ}
}

func (o Options) checkPlugin() error {
	c := o.capability()
	switch {
	case !capabilities.MatchString(o.Plugin) || !isText(c.category) || !isText(c.typ):
		return fmt.Errorf("--plugin is %q, and must be a category and a type, such as database/postgres", o.Plugin)
	case len(c.category) > maxCapability || len(c.typ) > maxCapability:
		return fmt.Errorf("--plugin is %q, and its category and its type must each have at most %d characters",
			o.Plugin, maxCapability)
	case strings.Contains(o.Image, "@"):
		return fmt.Errorf("--image is %q, and must have no digest with --plugin: two images are built", o.Image)
	}
	return nil
}

func isProtected(group string) bool {
	for _, domain := range []string{"k8s.io", "kubernetes.io"} {
		if group == domain || strings.HasSuffix(group, "."+domain) {
			return true
		}
	}
	return false
}

// isText reports whether YAML takes the text for a text, and not for a number or a boolean.
func isText(text string) bool {
	var value any
	return yaml.Unmarshal([]byte(text), &value) == nil && value == any(text)
}

func (o Options) checkProgram() error {
	if err := module.CheckPath(o.Module); err != nil {
		return fmt.Errorf("--module is %q, and must be a path such as example.com/shop: %w", o.Module, err)
	}
	switch goVersion := "go" + o.GoVersion; {
	case !goVersions.MatchString(o.GoVersion) || !version.IsValid(goVersion):
		return fmt.Errorf("--go-version is %q, and must be like %s", o.GoVersion, GoVersion)
	case version.Compare(goVersion, "go"+GoVersion) < 0:
		return fmt.Errorf("--go-version is %q, and must be %s or later", o.GoVersion, GoVersion)
	case len(validation.IsDNS1035Label(o.Operator)) > 0 || len(o.Operator) > maxOperator || !isText(o.Operator):
		return fmt.Errorf("--operator-name is %q, and must be a name such as shop-operator, with at most %d characters",
			o.Operator, maxOperator)
	case !images.MatchString(o.Image) || len(o.Image) > 255 || !isText(o.Image):
		return fmt.Errorf("--image is %q, and must be like registry.example.com/shop-operator:1.0", o.Image)
	case o.Replace != "" && !filepath.IsAbs(o.Replace):
		return fmt.Errorf("--replace is %q, and must be an absolute path", o.Replace)
	case o.Replace != "" && strings.ContainsAny(o.Replace, "\"`\n\r"):
		return fmt.Errorf("--replace is %q, and must be a path without quotes and lines", o.Replace)
	case o.Replace == "" && !semver.IsValid(o.EspalierVersion):
		return fmt.Errorf("--espalier-version is %q: give a version such as v1.2.3, "+
			"or the folder of a checkout of the repository by --replace", o.EspalierVersion)
	}
	return nil
}

func (o Options) checkHeader() error {
	switch {
	case strings.ContainsFunc(o.Owner, func(r rune) bool { return r < ' ' }) || len(o.Owner) > 200:
		return fmt.Errorf("--owner is %q, and must be one line", o.Owner)
	case o.License != "" && !licenses.MatchString(o.License):
		return fmt.Errorf("--license is %q, and must be an SPDX expression such as Apache-2.0", o.License)
	case o.License != "" && o.LicenseHeader != "":
		return fmt.Errorf("--license and --license-header cannot both be given")
	case !utf8.ValidString(o.LicenseHeader):
		return fmt.Errorf("--license-header is not UTF-8")
	case len(o.LicenseHeader) > MaxHeader:
		return fmt.Errorf("--license-header has %d bytes, and at most %d can be", len(o.LicenseHeader), MaxHeader)
	}
	return nil
}

// is reports whether a condition of a template holds.
func (o Options) is(condition string) (holds, known bool) {
	switch condition {
	case "namespaced":
		return o.Namespaced, true
	case "cluster":
		return !o.Namespaced, true
	case "component":
		return o.Component != "", true
	case "objects":
		return o.Component != "dummy", true
	case "defaulting":
		return o.Defaulting, true
	case "validating":
		return o.Validating, true
	case "webhooks":
		return o.Defaulting || o.Validating, true
	case "header":
		return o.header() != "", true
	case "noheader":
		return o.header() == "", true
	}
	return false, false
}

// header returns what each Go file begins with, as comments; empty if there is nothing to say.
func (o Options) header() string {
	var lines []string
	if o.Owner != "" {
		lines = append(lines, "SPDX-FileCopyrightText: "+o.Owner)
	}
	if o.License != "" {
		lines = append(lines, "SPDX-License-Identifier: "+o.License)
	}
	if o.LicenseHeader != "" {
		if o.Owner != "" {
			lines = []string{"Copyright " + o.Owner, ""}
		}
		lines = append(lines, strings.Split(strings.TrimSpace(o.LicenseHeader), "\n")...)
	}
	header := ""
	for _, line := range lines {
		header += strings.TrimRight("// "+strings.TrimRight(line, "\r"), " ") + "\n"
	}
	return header
}

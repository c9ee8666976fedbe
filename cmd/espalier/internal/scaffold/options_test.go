package scaffold_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold"
)

// valid are options without mistakes.
func valid() scaffold.Options {
	return scaffold.Options{
		Group: "shop.example.com", Version: "v1", Kind: "Shop", Namespaced: true,
		Module: "example.com/shop", EspalierVersion: "v0.1.0",
	}
}

// long returns a group of n characters.
func long(n int) string { return strings.Repeat("a.", n)[:n-1] + "a" }

// TestComplete: each mistake names its flag, in one line.
func TestComplete(t *testing.T) {
	for want, change := range map[string]func(*scaffold.Options){
		"--group is missing":                 func(o *scaffold.Options) { o.Group = "" },
		`--group is "shop"`:                  func(o *scaffold.Options) { o.Group = "shop" },
		`--group is "Shop.example.com"`:      func(o *scaffold.Options) { o.Group = "Shop.example.com" },
		`--group is "shop.k8s.io"`:           func(o *scaffold.Options) { o.Group = "shop.k8s.io" },
		`--group is "1.2"`:                   func(o *scaffold.Options) { o.Group = "1.2" },
		`--version is "1"`:                   func(o *scaffold.Options) { o.Version = "1" },
		"--kind is missing":                  func(o *scaffold.Options) { o.Kind = "" },
		`--kind is "shop"`:                   func(o *scaffold.Options) { o.Kind = "shop" },
		`--kind is "Web Shop"`:               func(o *scaffold.Options) { o.Kind = "Web Shop" },
		`--kind is "True"`:                   func(o *scaffold.Options) { o.Kind = "True" },
		`--kind is "GroupVersion"`:           func(o *scaffold.Options) { o.Kind = "GroupVersion" },
		`--kind is "SSSS`:                    func(o *scaffold.Options) { o.Kind = strings.Repeat("S", 60) },
		`--plural is "Shops"`:                func(o *scaffold.Options) { o.Plural = "Shops" },
		`--plural is "null"`:                 func(o *scaffold.Options) { o.Plural = "null" },
		`--component is "helm"`:              func(o *scaffold.Options) { o.Component = "helm" },
		`--module is "shop"`:                 func(o *scaffold.Options) { o.Module = "shop" },
		`--go-version is "1.25.0"`:           func(o *scaffold.Options) { o.GoVersion = "1.25.0" },
		`--go-version is "1.26.0-x"`:         func(o *scaffold.Options) { o.GoVersion = "1.26.0-x" },
		`--image is "1e3"`:                   func(o *scaffold.Options) { o.Image = "1e3" },
		`--image is "true"`:                  func(o *scaffold.Options) { o.Image = "true" },
		"--plural and --group are too long":  func(o *scaffold.Options) { o.Group = long(248) },
		"--group is too long for webhooks":   func(o *scaffold.Options) { o.Group, o.Plural, o.Validating = long(245), "s", true },
		`--go-version is "latest"`:           func(o *scaffold.Options) { o.GoVersion = "latest" },
		`--operator-name is "Shop Operator"`: func(o *scaffold.Options) { o.Operator = "Shop Operator" },
		`--operator-name is "ooo`:            func(o *scaffold.Options) { o.Operator = strings.Repeat("o", 48) },
		`--image is "shop operator"`:         func(o *scaffold.Options) { o.Image = "shop operator" },
		`--owner is "a\nb"`:                  func(o *scaffold.Options) { o.Owner = "a\nb" },
		`--license is "Apache 2.0"`:          func(o *scaffold.Options) { o.License = "Apache 2.0" },
		"--license and --license-header": func(o *scaffold.Options) {
			o.License, o.LicenseHeader = "MIT", "text"
		},
		"--license-header is not UTF-8": func(o *scaffold.Options) { o.LicenseHeader = "\xff" },
		"--license-header has": func(o *scaffold.Options) {
			o.LicenseHeader = strings.Repeat("a", 1<<17)
		},
		`--plugin is "postgres"`:               func(o *scaffold.Options) { o.Plugin = "postgres" },
		`--plugin is "Database/postgres"`:      func(o *scaffold.Options) { o.Plugin = "Database/postgres" },
		`--plugin is "database/null"`:          func(o *scaffold.Options) { o.Plugin = "database/null" },
		`--plugin is "database/../postgres"`:   func(o *scaffold.Options) { o.Plugin = "database/../postgres" },
		"must each have at most 40 characters": func(o *scaffold.Options) { o.Plugin = "a/" + strings.Repeat("b", 41) },
		"must have no digest with --plugin": func(o *scaffold.Options) {
			o.Plugin, o.Image = "database/postgres", "p@sha256:"+strings.Repeat("0", 64)
		},
		`--espalier-version is ""`:             func(o *scaffold.Options) { o.EspalierVersion = "" },
		`--replace is "../espalier"`:           func(o *scaffold.Options) { o.Replace = "../espalier" },
		`--plural is "a/../../../../etc/cron"`: func(o *scaffold.Options) { o.Plural = "a/../../../../etc/cron" },
	} {
		o := valid()
		change(&o)
		_, err := o.Complete()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want one line with %q, got %v", want, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	for kind, plural := range map[string]string{
		"Shop": "shops", "Branch": "branches", "Proxy": "proxies", "Key": "keys", "Address": "addresses",
	} {
		o := valid()
		o.Kind = kind
		complete, err := o.Complete()
		if err != nil || complete.Plural != plural {
			t.Errorf("the plural of %s is %q (%v), want %q", kind, complete.Plural, err, plural)
		}
		lower := strings.ToLower(kind)
		if complete.Operator != lower+"-operator" || complete.Image != lower+"-operator:dev" {
			t.Errorf("the operator is %q, with the image %q", complete.Operator, complete.Image)
		}
	}
}

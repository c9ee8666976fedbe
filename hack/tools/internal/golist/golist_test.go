package golist_test

import (
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/hack/tools/internal/golist"
)

func TestPackagesOfThisModule(t *testing.T) {
	module, packages, err := golist.Packages(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/espalier-dev/espalier/hack/tools"; module != want {
		t.Errorf("the module is %s, want %s", module, want)
	}
	found := slices.ContainsFunc(packages, func(p golist.Package) bool {
		return p.ImportPath == module+"/internal/golist" && slices.Contains(p.Imports, "encoding/json")
	})
	if !found {
		t.Errorf("this package is not among %v", packages)
	}
	if _, _, err := golist.Packages(t.Context(), t.TempDir()); err == nil {
		t.Error("a folder without a module was loaded")
	}
}

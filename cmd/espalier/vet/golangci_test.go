package vet_test

import (
	"slices"
	"testing"

	"github.com/golangci/plugin-module-register/register"

	"github.com/espalier-dev/espalier/cmd/espalier/vet"
)

func TestGolangciFindsTheAnalyzers(t *testing.T) {
	newPlugin, err := register.GetPlugin("espalier")
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := newPlugin(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := plugin.BuildAnalyzers()
	if err != nil || !slices.Equal(got, vet.Analyzers) {
		t.Errorf("want the analyzers of the package, got %v, %v", got, err)
	}
	if mode := plugin.GetLoadMode(); mode != register.LoadModeTypesInfo {
		t.Errorf("want the analyzers to get types, got the mode %s", mode)
	}
}

package vet

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"
)

// The package is a module plugin of golangci-lint, with the linter espalier.
func init() {
	register.Plugin("espalier", func(any) (register.LinterPlugin, error) { return plugin{}, nil })
}

type plugin struct{}

func (plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) { return Analyzers, nil }

func (plugin) GetLoadMode() string { return register.LoadModeTypesInfo }

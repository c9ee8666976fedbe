// Package golangci is a module plugin of golangci-lint: its linter espalier runs the analyzers of package vet.
package golangci

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/espalier-dev/espalier/cmd/espalier/vet"
)

func init() {
	register.Plugin("espalier", func(any) (register.LinterPlugin, error) { return plugin{}, nil })
}

type plugin struct{}

func (plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) { return vet.Analyzers, nil }

func (plugin) GetLoadMode() string { return register.LoadModeTypesInfo }

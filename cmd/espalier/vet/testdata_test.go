//go:build testdata

package vet_test

// Go does not look into testdata for what go.mod has to have. It looks at all build tags.
import (
	_ "github.com/espalier-dev/espalier/cmd/espalier/vet/testdata/clients"
	_ "github.com/espalier-dev/espalier/cmd/espalier/vet/testdata/clientsshapes"
	_ "github.com/espalier-dev/espalier/cmd/espalier/vet/testdata/desired"
	_ "github.com/espalier-dev/espalier/cmd/espalier/vet/testdata/desiredshapes"
	_ "github.com/espalier-dev/espalier/cmd/espalier/vet/testdata/effects"
	_ "github.com/espalier-dev/espalier/cmd/espalier/vet/testdata/effectsshapes"
	_ "github.com/espalier-dev/espalier/cmd/espalier/vet/testdata/finalizer"
	_ "github.com/espalier-dev/espalier/cmd/espalier/vet/testdata/finalizershapes"
	_ "github.com/espalier-dev/espalier/cmd/espalier/vet/testdata/kept"
	_ "github.com/espalier-dev/espalier/cmd/espalier/vet/testdata/keptshapes"
	_ "github.com/espalier-dev/espalier/cmd/espalier/vet/testdata/stash"
	_ "github.com/espalier-dev/espalier/cmd/espalier/vet/testdata/stashshapes"
	_ "github.com/espalier-dev/espalier/cmd/espalier/vet/testdata/status"
	_ "github.com/espalier-dev/espalier/cmd/espalier/vet/testdata/statusshapes"
	_ "github.com/espalier-dev/espalier/testing"
)

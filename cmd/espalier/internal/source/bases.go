package source

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/manifest"
	"github.com/espalier-dev/espalier/internal/document"
)

// kustomizations are the names that the file of a kustomization may have.
var kustomizations = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// maxBases is how many folders outside of itself a kustomization may use.
const maxBases = 100

// basesOf returns the folders outside of a kustomization that it is made from, relative to it: those that it names, and
// those that they name.
func basesOf(folder string) ([]string, error) {
	var bases []string
	for at := -1; at < len(bases); at++ {
		from := ""
		if at >= 0 {
			from = bases[at]
		}
		named, err := foldersIn(filepath.Join(folder, from))
		if err != nil {
			return nil, err
		}
		for _, name := range named {
			base := filepath.ToSlash(filepath.Join(from, filepath.FromSlash(name)))
			if (base == ".." || strings.HasPrefix(base, "../")) && !slices.Contains(bases, base) {
				bases = append(bases, base)
			}
		}
		if len(bases) > maxBases {
			return nil, fmt.Errorf("%s: the kustomization uses more than %d other folders", folder, maxBases)
		}
	}
	return bases, nil
}

// foldersIn returns the folders that a kustomization names, if the folder has one.
func foldersIn(folder string) ([]string, error) {
	at := slices.IndexFunc(kustomizations, func(file string) bool { return hasFile(folder, file) })
	if at < 0 {
		return nil, nil
	}
	file := filepath.Join(folder, kustomizations[at])
	content, err := manifest.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := document.Check(content); err != nil {
		return nil, manifest.SyntaxError(file, content, err)
	}
	var named struct{ Resources, Components, Bases []string }
	if err := yaml.Unmarshal(content, &named); err != nil {
		return nil, manifest.SyntaxError(file, content, err)
	}
	folders := slices.Concat(named.Resources, named.Components, named.Bases)
	return slices.DeleteFunc(folders, func(name string) bool {
		info, err := os.Stat(filepath.Join(folder, filepath.FromSlash(name)))
		return err != nil || !info.IsDir()
	}), nil
}

package scaffold

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// CheckCheckout returns an error if a folder for Replace has no checkout of Espalier.
func CheckCheckout(dir string) error {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !strings.HasPrefix(string(mod), "module "+Espalier+"\n") {
		return fmt.Errorf("--replace is %s, and there is no checkout of %s", dir, Espalier)
	}
	return nil
}

// Tidy runs "go mod tidy" in the folder of the project. With Replace it begins with the sums of the checkout, so that
// nothing is asked for that the module cache has.
func (o Options) Tidy(ctx context.Context, dir string) error {
	if o.Replace != "" {
		if err := o.copySums(dir); err != nil {
			return err
		}
	}
	tidy := exec.CommandContext(ctx, "go", "mod", "tidy")
	tidy.Dir = dir
	tidy.Env = append(os.Environ(), "GOWORK=off")
	output, err := tidy.CombinedOutput()
	if err != nil {
		return fmt.Errorf("the files are in %s, but it does not build before \"go mod tidy\" succeeds there, "+
			"which needs the module proxy or a full module cache: %w: %s", dir, err, lastLine(output))
	}
	return nil
}

// copySums writes the sums of the modules in the checkout to go.sum.
func (o Options) copySums(dir string) error {
	_, replaced := o.modules()
	sums := map[module.Version]string{}
	for _, at := range replaced {
		content, err := os.ReadFile(filepath.Join(o.Replace, filepath.FromSlash(at), "go.sum"))
		if err != nil {
			return fmt.Errorf("--replace: %w", err)
		}
		for line := range strings.Lines(string(content)) {
			if fields := strings.Fields(line); len(fields) == 3 {
				sums[module.Version{Path: fields[0], Version: fields[1]}] = line
			}
		}
	}
	// Go leaves the order as it is if nothing is missing.
	sorted := slices.Collect(maps.Keys(sums))
	module.Sort(sorted)
	var content strings.Builder
	for _, version := range sorted {
		content.WriteString(sums[version])
	}
	return os.WriteFile(filepath.Join(dir, "go.sum"), []byte(content.String()), 0o644)
}

// lastLine returns the last line of what a command has printed, which is its error.
func lastLine(output []byte) string {
	lines := bytes.Split(bytes.TrimSpace(output), []byte("\n"))
	return string(bytes.TrimSpace(lines[len(lines)-1]))
}

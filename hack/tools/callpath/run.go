package main

import (
	"bytes"
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/espalier-dev/espalier/hack/tools/internal/golist"
)

// scenarios is the program whose calls are counted.
//
//go:embed scenarios.go.tmpl
var scenarios string

// notes is the package that instrumented functions call.
//
//go:embed notes.go.tmpl
var notes string

// Folders of the module in which the two are while it is built. There they may import what is internal.
const (
	notesFolder   = "internal/callpathnotes"
	programFolder = "testing/internal/callpathprogram"
)

// run builds and runs program within an instrumented module. Functions in the folders of without are not counted.
func run(ctx context.Context, dir, program string, without []string) ([]scenario, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	module, packages, err := golist.Packages(ctx, dir)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "callpath")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	overlay := overlay{temp: temp, Replace: map[string]string{}}
	for _, p := range packages {
		if !excluded(p.Dir, dir, without) {
			if err := overlay.instrument(dir, module, p); err != nil {
				return nil, err
			}
		}
	}
	data := map[string]any{"Module": module, "Notes": module + "/" + notesFolder, "Has": func(folder string) bool {
		_, err := os.Stat(filepath.Join(dir, folder))
		return err == nil
	}}
	for folder, text := range map[string]string{notesFolder: notes, programFolder: program} {
		source, err := execute(text, data)
		if err != nil {
			return nil, err
		}
		if err := overlay.add(filepath.Join(dir, folder, "main.go"), source); err != nil {
			return nil, err
		}
	}
	file, err := overlay.write()
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(temp, "program")
	if _, err := golist.Run(ctx, dir, "go", "build", "-overlay", file, "-o", binary, "./"+programFolder); err != nil {
		return nil, err
	}
	out, err := golist.Run(ctx, dir, binary)
	if err != nil {
		return nil, err
	}
	return readTrace(bytes.NewReader(out))
}

func execute(text string, data any) ([]byte, error) {
	parsed, err := template.New("").Parse(text)
	if err != nil {
		return nil, err
	}
	var source bytes.Buffer
	err = parsed.Execute(&source, data)
	return source.Bytes(), err
}

func excluded(dir, module string, without []string) bool {
	return slices.ContainsFunc(without, func(folder string) bool {
		return strings.HasPrefix(dir+"/", filepath.Join(module, folder)+"/")
	})
}

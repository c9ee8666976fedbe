// Package source reads the objects of a component from where a user has them: manifests, charts and kustomizations.
package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/manifest"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/helm"
	"github.com/espalier-dev/espalier/generator/kustomize"
	"github.com/espalier-dev/espalier/internal/document"
)

// Set has the sources of a component.
type Set struct {
	// Names are the sources as they were given.
	Names []string
	// Digest identifies the content of the sources and the values.
	Digest string

	sources []generator.Generator
	values  map[string]any
}

// Load reads sources. Each is
//
//   - a folder with a Chart.yaml, or a packed chart (.tgz): a Helm chart;
//   - a folder with a kustomization;
//   - another folder: its files .yaml, .yml and .json, and those in folders below, with manifests;
//   - a file with manifests, or - for the standard input.
//
// The files of values are merged in order. Charts and the templates of kustomizations get them.
func Load(names, valueFiles []string, stdin io.Reader) (*Set, error) {
	s := &Set{Names: names, values: map[string]any{}}
	all := sha256.New()
	for _, file := range valueFiles {
		values, err := readValues(file)
		if err != nil {
			return nil, err
		}
		// A null stays, to remove a default of a chart.
		s.values = generator.WithValues(s.values, generator.UnstructurableMap(values)).ToUnstructured()
	}
	takesValues := false
	for _, name := range names {
		made, err := open(name, stdin)
		if err != nil {
			return nil, err
		}
		_, isStatic := made.(*manifests)
		takesValues = takesValues || !isStatic
		digest := ""
		if digester, ok := made.(generator.ContentDigester); ok {
			if digest, err = digester.ContentDigest(context.Background()); err != nil {
				return nil, err
			}
		}
		fmt.Fprintf(all, "%s\n", digest)
		s.sources = append(s.sources, made)
	}
	if len(valueFiles) > 0 && !takesValues {
		return nil, errors.New("there are values, and no source that takes them: charts and kustomizations do")
	}
	values, err := generator.ComponentDigest(s.values, nil, "", nil)
	if err != nil {
		return nil, fmt.Errorf("the values have no digest: %w", err)
	}
	fmt.Fprintf(all, "%s\n", values)
	s.Digest = hex.EncodeToString(all.Sum(nil)[:16])
	return s, nil
}

func readValues(file string) (map[string]any, error) {
	content, err := manifest.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if _, err := document.ToJSON(content); err != nil {
		return nil, manifest.SyntaxError(file, content, err)
	}
	text, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, manifest.SyntaxError(file, content, err)
	}
	values := map[string]any{}
	if err := utiljson.Unmarshal(text, &values); err != nil {
		return nil, &manifest.FileError{File: file, Line: 1, Err: errors.New("it is not a map of values")}
	}
	return values, nil
}

func open(name string, stdin io.Reader) (generator.Generator, error) {
	if name == "-" {
		objects, err := manifest.Read("standard input", stdin)
		return newManifests("the standard input", objects, err)
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir() && strings.HasSuffix(name, ".tgz"):
		return helm.NewGenerator(nil, name, helm.Options{})
	case !info.IsDir():
		objects, err := readFile(name)
		return newManifests("the file "+name, objects, err)
	case hasFile(name, "Chart.yaml"):
		return helm.NewGenerator(nil, name, helm.Options{})
	case slices.ContainsFunc(kustomizations, func(file string) bool { return hasFile(name, file) }):
		bases, err := basesOf(name)
		if err != nil {
			return nil, err
		}
		return kustomize.NewGenerator(nil, name, kustomize.Options{Bases: bases})
	}
	return openFolder(name)
}

func hasFile(folder, name string) bool {
	info, err := os.Stat(filepath.Join(folder, name))
	return err == nil && info.Mode().IsRegular()
}

func openFolder(folder string) (generator.Generator, error) {
	// A walk does not follow a link.
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	files := 0
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(entry.Name(), ".") && path != folder
		switch {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return filepath.SkipDir
		case hidden, entry.IsDir(), !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			return nil
		}
		files++
		found, err := readFile(path)
		if objects = append(objects, found...); len(objects) > manifest.MaxObjects {
			err = cmp.Or[error](err, &manifest.FileError{File: path, Err: manifest.ErrTooMany})
		}
		return err
	})
	if err == nil && files == 0 {
		err = fmt.Errorf("the folder %s has no manifests: no file ends with .yaml, .yml or .json", folder)
	}
	return newManifests("the folder "+folder, objects, err)
}

func readFile(name string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return manifest.Read(name, file)
}

// manifests are objects that are the same for all parameters.
type manifests struct {
	objects []*unstructured.Unstructured
	digest  string
}

// newManifests returns what was read. The source of a command that failed, or a file that was cut off, has no objects:
// that is an error.
func newManifests(source string, objects []*unstructured.Unstructured, err error) (generator.Generator, error) {
	if err == nil && len(objects) == 0 {
		err = fmt.Errorf("%s has no objects", source)
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	for _, object := range objects {
		encoded, _ := object.MarshalJSON() // it was JSON before
		sum.Write(encoded)
	}
	return &manifests{objects, hex.EncodeToString(sum.Sum(nil))}, nil
}

// ContentDigest identifies the objects.
func (m *manifests) ContentDigest(context.Context) (string, error) { return m.digest, nil }

// Generate returns the objects.
func (m *manifests) Generate(
	context.Context, string, string, generator.Unstructurable,
) ([]client.Object, error) {
	objects := make([]client.Object, len(m.objects))
	for i := range m.objects {
		objects[i] = m.objects[i]
	}
	return objects, nil
}

// Objects returns the objects of the sources for a component of a name and a namespace. The context is that of a
// generator, see [generator.Context].
func (s *Set) Objects(ctx context.Context, namespace, name string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for i, from := range s.sources {
		made, err := from.Generate(ctx, namespace, name, generator.UnstructurableMap(s.values))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Names[i], err)
		}
		for _, object := range made {
			content, ok := object.(*unstructured.Unstructured)
			if !ok {
				return nil, fmt.Errorf("%s: %T is not an object that was read", s.Names[i], object)
			}
			objects = append(objects, content.DeepCopy())
		}
	}
	if len(objects) > manifest.MaxObjects {
		return nil, manifest.ErrTooMany
	}
	return objects, nil
}

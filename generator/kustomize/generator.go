package kustomize

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
)

func newGenerator(from source, name string, options Options) (*Generator, error) {
	dirs, err := locateAll(from, name, options.Bases)
	if err != nil {
		return nil, err
	}
	all, contents := files{}, make([]files, len(dirs))
	for i, dir := range dirs {
		if contents[i], err = from.read(dir, options.Decrypt); err != nil {
			return nil, err
		}
		maps.Copy(all, contents[i])
	}
	included, err := includedKustomizations(dirs, contents)
	if err != nil {
		return nil, err
	}
	g := &Generator{limits: options.Limits}
	if g.digest, err = generator.ComponentDigest(from.raw, nil, "", nil); err != nil {
		return nil, err
	}
	for i, dir := range dirs {
		own := options
		if included[dir] {
			own = Options{Limits: options.Limits}
		}
		f, settings, err := newFolder(dir, contents[i], own)
		if err != nil {
			return nil, err
		}
		if err := f.include("includedFiles", settings.IncludedFiles, all); err != nil {
			return nil, fmt.Errorf("%s/%s: %w", dir, configFile, err)
		}
		g.folders = append(g.folders, f)
		g.dynamic = g.dynamic || f.set != nil
		g.inputs.note(f)
	}
	if g.dynamic {
		return g, nil
	}
	return g, g.tree().check()
}

// locateAll returns the paths of the folder of the kustomization and of its bases.
func locateAll(from source, name string, bases []string) ([]string, error) {
	dir, err := from.locate(name)
	if err != nil {
		return nil, err
	}
	dirs := []string{dir}
	for i, base := range bases {
		if isRemote(base) {
			return nil, fmt.Errorf("Options.Bases[%d]: %q: %w", i, base, errRemote)
		}
		target, err := resolve("Options.Bases", i, base, dir)
		if err != nil {
			return nil, err
		}
		for _, other := range dirs {
			if isWithin(other, target) || isWithin(target, other) {
				return nil, fmt.Errorf("Options.Bases[%d]: %q overlaps with the folder %s", i, base, orDot(other))
			}
		}
		dirs = append(dirs, target)
	}
	return dirs, nil
}

// includedKustomizations returns the bases that the configs include. The options of the generator are not for them.
func includedKustomizations(dirs []string, contents []files) (map[string]bool, error) {
	included := map[string]bool{}
	for i, dir := range dirs {
		name := strings.TrimPrefix(dir+"/"+configFile, "/")
		settings, err := parseConfig(contents[i][name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for j, reference := range settings.IncludedKustomizations {
			target, err := resolve("includedKustomizations", j, reference, dir)
			if err == nil && !slices.Contains(dirs[1:], target) {
				err = fmt.Errorf("includedKustomizations[%d]: %q: %w", j, reference, errOutside)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			included[target] = true
		}
	}
	return included, nil
}

// tree returns the files of a build, as far as they are no templates.
func (g *Generator) tree() tree {
	t := tree{files: files{}}
	for _, f := range g.folders {
		t.roots = append(t.roots, f.dir)
		maps.Copy(t.files, f.plain)
	}
	return t
}

// staticObjects are what a build without templates returns.
type staticObjects struct {
	mu    sync.RWMutex
	built bool
	kept  []*unstructured.Unstructured
}

// get builds once, unless that fails.
func (s *staticObjects) get(build func() ([]*unstructured.Unstructured, error)) ([]client.Object, error) {
	s.mu.RLock()
	built, kept := s.built, s.kept
	s.mu.RUnlock()
	if !built {
		var err error
		if kept, err = build(); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.built, s.kept = true, kept
		s.mu.Unlock()
	}
	copies := make([]*unstructured.Unstructured, len(kept))
	for i, object := range kept {
		copies[i] = object.DeepCopy()
	}
	return toObjects(copies), nil
}

func toObjects(built []*unstructured.Unstructured) []client.Object {
	objects := make([]client.Object, len(built))
	for i, object := range built {
		objects[i] = object
	}
	return objects
}

// functionsFor returns the functions of templates that are about the component.
func functionsFor(ctx context.Context, namespace, name string) template.FuncMap {
	return template.FuncMap{
		"namespace":         func() string { return namespace },
		"name":              func() string { return name },
		"component":         func() (any, error) { return copyOfComponent(ctx) },
		"componentDigest":   func() (string, error) { return generator.ComponentDigestFromContext(ctx) },
		"componentRevision": func() (int64, error) { return generator.ComponentRevisionFromContext(ctx) },
		"kubernetesVersion": func() (any, error) { return kubernetesVersion(ctx) },
		"apiResources":      func() (any, error) { return apiResources(ctx) },
	}
}

// copyOfComponent copies, because a template may call a method that changes the object.
func copyOfComponent(ctx context.Context) (any, error) {
	object, err := generator.ComponentFromContext(ctx)
	if err != nil {
		return nil, err
	}
	return object.DeepCopyObject(), nil
}

func deepCopy(values map[string]any) map[string]any {
	return generator.UnstructurableMap(values).ToUnstructured()
}

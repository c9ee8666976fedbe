package kustomize

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/generator/gotemplate"
)

// building is held while kustomize runs. It keeps schemas in global variables, which are not safe for concurrent use,
// and which one build must not leave to the next.
var building = make(chan struct{}, 1)

// maxWait is how long a build waits for others.
var maxWait = time.Minute

var errBusy = errors.New("others have used kustomize for a long time; this is tried again")

// exclusively calls f while nothing else uses kustomize. A panic of f is an error. It waits neither longer than ctx nor
// longer than maxWait.
func exclusively(ctx context.Context, f func() error) error {
	timeout := time.NewTimer(maxWait)
	defer timeout.Stop()
	select {
	case building <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C:
		return errBusy
	}
	defer func() { <-building }()
	return recovered(func() error {
		done := false
		before := openapi.GetSchemaVersion()
		defer func() {
			// A schema that was not read to its end counts as read.
			if !done || openapi.GetSchemaVersion() != before {
				openapi.ResetOpenAPI()
			}
		}()
		err := f()
		done = true
		return err
	})
}

// recovered calls f. A panic is an error.
func recovered(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("kustomize panicked: %v", r)
		}
	}()
	return f()
}

// build runs kustomize on a folder of a tree. The tree may be changed. ctx is looked at whenever kustomize reads a
// file; between two files, a build cannot be stopped. So it does not begin if it would take too long.
func build(ctx context.Context, t tree, dir string, limits gotemplate.Limits) ([]*unstructured.Unstructured, error) {
	if !t.isKustomization(dir) && !t.list(dir) {
		return nil, nil
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	t.fill()
	if err := t.work(dir, map[string]work{}).check(limits); err != nil {
		return nil, fmt.Errorf("folder %s: %w", orDot(dir), err)
	}
	memory, err := t.fileSystem(ctx)
	if err != nil {
		return nil, err
	}
	objects, err := run(ctx, memory, "/"+dir, t.options(dir))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if errors.Is(err, errBusy) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", orDot(dir), withhold(err, func() []string { return t.secrets() }))
	}
	return objects, nil
}

func run(
	ctx context.Context, memory filesys.FileSystem, dir string, options *krusty.Options,
) ([]*unstructured.Unstructured, error) {
	var built resmap.ResMap
	err := exclusively(ctx, func() (err error) {
		built, err = krusty.MakeKustomizer(options).Run(memory, dir)
		return err
	})
	if err != nil {
		return nil, err
	}
	return decode(built)
}

// krustyOptions allow files outside of the folder, because the file system has no others than those that are allowed.
func krustyOptions() *krusty.Options {
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone
	options.PluginConfig = types.DisabledPluginConfig()
	return options
}

// options returns those for the kustomization in a folder. One that sorts by itself must not have an order in the
// options, because kustomize would print a warning.
func (t tree) options(dir string) *krusty.Options {
	options := krustyOptions()
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		var k types.Kustomization
		if k.Unmarshal(t.files[path.Join(dir, name)]) == nil && k.SortOptions != nil {
			options.Reorder = krusty.ReorderOptionUnspecified
		}
	}
	return options
}

func decode(built resmap.ResMap) (objects []*unstructured.Unstructured, err error) {
	return objects, recovered(func() error {
		for _, resource := range built.Resources() {
			text, err := resource.MarshalJSON()
			if err != nil {
				return fmt.Errorf("%s: %w", resource.CurId(), err)
			}
			object := &unstructured.Unstructured{}
			if err := utiljson.Unmarshal(text, &object.Object); err != nil {
				return fmt.Errorf("%s: %w", resource.CurId(), err)
			}
			if object.GetAPIVersion() == "" {
				return fmt.Errorf("%s: it has no apiVersion", resource.CurId())
			}
			objects = append(objects, object)
		}
		return nil
	})
}

// list adds a kustomization of all files in a folder, and reports whether there are any. A folder below that has a
// kustomization is used as such.
func (t tree) list(dir string) bool {
	found := map[string]bool{}
	for name := range t.files {
		if !isWithin(name, dir) {
			continue
		}
		inner := relative(name, dir)
		if isHidden(inner) {
			continue
		}
		if below := t.topKustomization(dir, inner); below != "" {
			found[below] = true
		} else if extension := path.Ext(inner); extension == ".yaml" || extension == ".yml" {
			found[inner] = true
		}
	}
	if len(found) == 0 {
		return false
	}
	t.files[path.Join(dir, konfig.DefaultKustomizationFileName())], _ = yaml.Marshal(map[string]any{ // strings only
		"resources": slices.Sorted(maps.Keys(found)),
	})
	return true
}

// topKustomization returns the uppermost folder on the way to a file that has a kustomization, or nothing.
func (t tree) topKustomization(dir, inner string) string {
	for i, char := range inner {
		if char == '/' && t.isKustomization(path.Join(dir, inner[:i])) {
			return inner[:i]
		}
	}
	return ""
}

// fill makes kustomizations valid that have no fields, as when templates leave out all resources. kustomize refuses
// them. A file without any text stays an error.
func (t tree) fill() {
	for _, name := range t.kustomizations() {
		var k types.Kustomization
		if strings.TrimSpace(string(t.files[name])) == "" || k.Unmarshal(t.files[name]) != nil {
			continue
		}
		k.FixKustomization()
		if k.CheckEmpty() != nil {
			t.files[name], _ = yaml.Marshal(map[string]any{ // strings only
				"apiVersion": k.APIVersion, "kind": k.Kind, "resources": []string{},
			})
		}
	}
}

// fileSystem returns the files as kustomize reads them. It ends with ctx.
func (t tree) fileSystem(ctx context.Context) (filesys.FileSystem, error) {
	memory := filesys.MakeFsInMemory()
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		if err := memory.WriteFile("/"+name, t.files[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return &boundFileSystem{memory, ctx}, nil
}

// boundFileSystem reads nothing once its context is done.
type boundFileSystem struct {
	filesys.FileSystem
	ctx context.Context
}

// ReadFile implements [filesys.FileSystem].
func (s *boundFileSystem) ReadFile(name string) ([]byte, error) {
	if s.ctx.Err() != nil {
		return nil, s.ctx.Err()
	}
	return s.FileSystem.ReadFile(name)
}

var errNotMade = errors.New("the generator was not made by NewGenerator")

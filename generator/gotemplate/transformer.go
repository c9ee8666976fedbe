package gotemplate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/espalier-dev/espalier/generator"
)

// ParameterTransformer makes parameters of a component by a template, see [NewParameterTransformer].
type ParameterTransformer struct {
	set          *Set
	path, digest string
}

var (
	_ generator.ParameterTransformer = (*ParameterTransformer)(nil)
	_ generator.Deterministic        = (*ParameterTransformer)(nil)
	_ generator.ContentDigester      = (*ParameterTransformer)(nil)
)

// NewParameterTransformer returns a transformer that executes the template at path in folder with the parameters, to
// which Namespace and Name are added, and parses the output as YAML: these are the new parameters. The parameters that
// it gets stay as they are. No output means no parameters.
//
// A nil folder is the file system of the operator. The file is read once, here. A symbolic link must not lead out of
// folder, or out of the folder of the file if folder is nil. The template has no clients, so it cannot look up
// anything.
func NewParameterTransformer(folder fs.FS, path string, options Options) (generator.ParameterTransformer, error) {
	text, err := readFile(folder, path)
	if err != nil {
		return nil, fmt.Errorf("unable to read the template of the parameters: %w", err)
	}
	set, err := Parse(map[string]string{path: string(text)}, options)
	if err != nil {
		return nil, err
	}
	digest, err := generator.ComponentDigest(text, nil, "", nil)
	return &ParameterTransformer{set: set, path: path, digest: digest}, err
}

// Deterministic is true. A template that calls for the time or for random values gets others only when something else
// changes.
func (t *ParameterTransformer) Deterministic() bool { return true }

// ContentDigest identifies the template.
func (t *ParameterTransformer) ContentDigest(context.Context) (string, error) {
	if t == nil {
		return "", nil
	}
	return t.digest, nil
}

// TransformParameters implements [generator.ParameterTransformer]. The error names the file.
func (t *ParameterTransformer) TransformParameters(
	namespace, name string, parameters generator.Unstructurable,
) (_ generator.Unstructurable, err error) {
	if t == nil || t.set == nil {
		return nil, errors.New("the transformer was not made by NewParameterTransformer")
	}
	defer func() {
		if recover() != nil {
			err = errors.New("parameters cannot be read: ToUnstructured panicked")
		}
	}()
	data := map[string]any{}
	if parameters != nil {
		maps.Copy(data, generator.UnstructurableMap(parameters.ToUnstructured()).ToUnstructured())
	}
	data["Namespace"], data["Name"] = namespace, name
	output, err := t.set.Execute(context.Background(), t.path, data, nil)
	if err != nil {
		return nil, err
	}
	made, err := fromYAML[any](output)
	if err != nil {
		return nil, fmt.Errorf("the output of %s: %w", t.path, err)
	}
	switch made := made.(type) {
	case nil:
		return generator.UnstructurableMap{}, nil
	case map[string]any:
		return generator.UnstructurableMap(made), nil
	default:
		return nil, fmt.Errorf("the output of %s is not a map", t.path)
	}
}

// readFile reads a file of a folder.
func readFile(folder fs.FS, name string) ([]byte, error) {
	if folder == nil {
		root, err := os.OpenRoot(filepath.Dir(name))
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }()
		return root.ReadFile(filepath.Base(name))
	}
	resolved, err := resolve(folder, path.Clean(strings.TrimPrefix(name, "/")))
	if err != nil {
		return nil, err
	}
	return fs.ReadFile(folder, resolved)
}

// maxLinks is how many symbolic links are followed.
const maxLinks = 40

// resolve follows the symbolic links of a path in a folder, if that has any. They must not lead out of it.
func resolve(folder fs.FS, name string) (string, error) {
	for range maxLinks {
		if !fs.ValidPath(name) {
			return "", fmt.Errorf("%s: %w", name, errLeavesFolder)
		}
		link, rest := firstLink(folder, name)
		if link == "" {
			return name, nil
		}
		target, err := fs.ReadLink(folder, link)
		if err != nil {
			return "", err
		}
		if path.IsAbs(target) {
			return "", fmt.Errorf("%s: %w", link, errLeavesFolder)
		}
		name = path.Join(path.Dir(link), target, rest)
	}
	return "", fmt.Errorf("%s: too many symbolic links", name)
}

var errLeavesFolder = errors.New("the path leads out of the folder")

// firstLink returns the shortest part of a path that is a symbolic link, and the rest.
func firstLink(folder fs.FS, name string) (link, rest string) {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		if info, err := fs.Lstat(folder, name[:i]); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return name[:i], strings.TrimPrefix(name[i:], "/")
		}
	}
	return "", ""
}

// Package crdfile reads custom resource definitions from files.
package crdfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/document"
)

// Definition is a custom resource definition in a file.
type Definition struct {
	*apiextensionsv1.CustomResourceDefinition
	// Source names the file, and the document in it, such as "config/crd/shops.yaml, document 1".
	Source string
}

// extensions are those of files that may have definitions.
var extensions = []string{".json", ".yaml", ".yml"}

// Read returns the definitions in files, and in the files of folders, in their order. Folders below them are not read,
// and neither are objects of other kinds. A path that does not exist is skipped if missing is allowed. An error names
// the file, the document in it, and the field.
func Read(paths []string, allowMissing bool) ([]Definition, error) {
	var all []Definition
	for _, path := range paths {
		files, err := list(path)
		if allowMissing && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			found, err := readFile(file)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// list returns the files of a path.
func list(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains(extensions, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, err
}

func readFile(path string) ([]Definition, error) {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	if err := document.Check(text); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var all []Definition
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		source := fmt.Sprintf("%s, document %d", path, n)
		one, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		definition, err := decode(one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		if definition != nil {
			all = append(all, Definition{definition, source})
		}
	}
}

// decode returns the definition in a document, nil if it has another object or none.
func decode(text []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	kind := metav1.TypeMeta{}
	if err := yaml.Unmarshal(text, &kind); err != nil {
		return nil, err
	}
	if kind.Kind != "CustomResourceDefinition" {
		return nil, nil
	}
	if want := apiextensionsv1.SchemeGroupVersion.String(); kind.APIVersion != want {
		return nil, fmt.Errorf("apiVersion of the CustomResourceDefinition is %q, want %q", kind.APIVersion, want)
	}
	converted, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	unknown, err := json.UnmarshalStrict(converted, definition)
	if err := errors.Join(append(unknown, err)...); err != nil {
		return nil, err
	}
	if definition.Name == "" {
		return nil, errors.New("metadata.name of the CustomResourceDefinition is empty")
	}
	return definition, nil
}

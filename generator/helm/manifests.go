package helm

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/espalier-dev/espalier/generator/gotemplate"
	"github.com/espalier-dev/espalier/internal/document"
)

// parseFiles returns the objects in the output of templates, in the order in which Helm installs them. Partial
// templates and notes have no objects.
func parseFiles(files map[string]string, limits gotemplate.Limits) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(path.Base(name), "_") || strings.HasSuffix(name, "NOTES.txt") {
			continue
		}
		documents += document.Count(files[name])
		if err := limits.CheckObjects(documents - len(files)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		inFile, err := parseDocuments(name, files[name])
		if err != nil {
			return nil, err
		}
		for _, object := range inFile {
			items, _ := itemsOf(object)
			documents += len(items)
		}
		if err := limits.CheckObjects(documents - len(files)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		objects = append(objects, inFile...)
	}
	slices.SortStableFunc(objects, inInstallOrder)
	return objects, nil
}

var installOrder = func() map[string]int {
	order := map[string]int{}
	for i, kind := range releaseutil.InstallOrder {
		order[kind] = i - len(releaseutil.InstallOrder)
	}
	return order
}()

// inInstallOrder compares kinds. Those that Helm does not know follow the others, by name.
func inInstallOrder(a, b *unstructured.Unstructured) int {
	first, second := installOrder[a.GetKind()], installOrder[b.GetKind()]
	if first == 0 && second == 0 {
		return cmp.Compare(a.GetKind(), b.GetKind())
	}
	return cmp.Compare(first, second)
}

// parseDocuments returns the objects in the YAML documents of a file. Empty documents have none. The error has nothing
// of the content, because that may be secret.
func parseDocuments(name, content string) ([]*unstructured.Unstructured, error) {
	documents := releaseutil.SplitManifests(content)
	objects := make([]*unstructured.Unstructured, 0, len(documents))
	for i := range len(documents) {
		// The SDK numbers the documents like this.
		object, err := parseDocument(documents[fmt.Sprintf("manifest-%d", i)])
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", name, i+1, err)
		}
		if object != nil {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// parseDocument returns nil if there is no object.
func parseDocument(content string) (*unstructured.Unstructured, error) {
	text, err := document.ToJSON([]byte(content))
	if err != nil {
		return nil, invalidYAML(err)
	}
	var value any
	// Numbers are integers if they can be.
	if err := utiljson.Unmarshal(text, &value); err != nil {
		return nil, errYAML
	}
	if value == nil {
		return nil, nil
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, errNotMap
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if text, ok := fields[field].(string); !ok || text == "" {
			return nil, fmt.Errorf("it has no %s", field)
		}
	}
	return &unstructured.Unstructured{Object: fields}, nil
}

var (
	errYAML   = errors.New("it is not valid YAML")
	errNotMap = errors.New("it is not a map")
)

var yamlLine = regexp.MustCompile(`\bline (\d+)`)

func invalidYAML(err error) error {
	if errors.Is(err, document.ErrTooLarge) {
		return fmt.Errorf("it %w", err)
	}
	if match := yamlLine.FindStringSubmatch(err.Error()); match != nil {
		return fmt.Errorf("line %s: %w", match[1], errYAML)
	}
	return errYAML
}

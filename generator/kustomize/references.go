package kustomize

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/espalier-dev/espalier/internal/document"
)

var (
	errRemote   = errors.New("remote files and bases are not supported; copy it into the folder")
	errOutside  = errors.New("it is outside the folder of the kustomization; add its folder to Options.Bases")
	errAbsolute = errors.New("the path is absolute; use one that is relative to the file")
	errHelm     = errors.New("charts are not supported in kustomizations; use the generator of Helm charts")
	errComputed = errors.New("a folder of generators, transformers or validators may only have resources")
)

// tree are the files of a build.
type tree struct {
	files
	// roots are the folders that the files are in.
	roots []string
}

// kustomizations returns the paths of all files that kustomize takes for a kustomization.
func (t tree) kustomizations() []string {
	var names []string
	for name := range t.files {
		if slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (t tree) isKustomization(dir string) bool {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if _, ok := t.files[path.Join(dir, name)]; ok {
			return true
		}
	}
	return false
}

// check returns an error for what a build must not read: anything that is not in the tree. It looks at all files, also
// at those that the build may not reach.
//
// kustomize fetches a reference that it takes for remote, whatever file system it works on. Nothing but this check
// prevents that. Therefore each reference must be known before the build: a folder of transformers, in which a patch
// could change the configuration of another transformer, is an error.
func (t tree) check() error {
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		if err := checkDocuments(t.files[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, name := range t.kustomizations() {
		// Another parser than that of the check reads them, which may accept more.
		if err := document.Check(t.files[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := t.checkKustomization(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (t tree) checkKustomization(name string) error {
	var k types.Kustomization
	if err := k.Unmarshal(t.files[name]); err != nil {
		// kustomize does not get further than here either. A file that it does not reach may be anything.
		return nil
	}
	k.FixKustomization()
	if len(k.HelmCharts) > 0 || k.HelmGlobals != nil {
		return fmt.Errorf("helmCharts: %w", errHelm)
	}
	dir := folderOf(name)
	for _, entry := range references(&k) {
		if entry.inline {
			if err := checkInline(entry.value); err != nil {
				return fmt.Errorf("%s: %w", entry.field, err)
			}
			if isInline(entry.value) {
				continue
			}
		}
		if err := t.checkReference(dir, entry.value); err != nil {
			return fmt.Errorf("%s: %q: %w", entry.field, entry.value, err)
		}
		if entry.plugin {
			if err := t.checkPlugins(dir, entry.value, 0); err != nil {
				return fmt.Errorf("%s: %q: %w", entry.field, entry.value, err)
			}
		}
	}
	return nil
}

// reference is a field of a kustomization that names a file or a folder.
type reference struct {
	field, value string
	// inline says that the field may have a document instead.
	inline bool
	// plugin says that what the field names configures a generator or a transformer.
	plugin bool
}

// references returns all fields that make kustomize read something.
func references(k *types.Kustomization) []reference {
	var found []reference
	add := func(field string, values []string, inline, plugin bool) {
		for i, value := range values {
			found = append(found, reference{fmt.Sprintf("%s[%d]", field, i), value, inline, plugin})
		}
	}
	add("resources", k.Resources, false, false)
	add("components", k.Components, false, false)
	add("crds", k.Crds, false, false)
	add("configurations", k.Configurations, false, false)
	add("generators", k.Generators, true, true)
	add("transformers", k.Transformers, true, true)
	add("validators", k.Validators, true, true)
	//lint:ignore SA1019 kustomize still reads it
	for i, patch := range k.PatchesStrategicMerge {
		found = append(found, reference{fmt.Sprintf("patchesStrategicMerge[%d]", i), string(patch), true, false})
	}
	one := func(list string, i int, field, value string) {
		if value != "" {
			found = append(found, reference{field: fmt.Sprintf("%s[%d].%s", list, i, field), value: value})
		}
	}
	for i, patch := range k.Patches {
		one("patches", i, "path", patch.Path)
	}
	//lint:ignore SA1019 kustomize still reads it
	for i, patch := range k.PatchesJson6902 {
		one("patchesJson6902", i, "path", patch.Path)
	}
	for i, replacement := range k.Replacements {
		one("replacements", i, "path", replacement.Path)
	}
	sources := func(list string, i int, s types.KvPairSources) {
		for j, file := range s.FileSources {
			one(list, i, fmt.Sprintf("files[%d]", j), fileOf(file))
		}
		for j, file := range append(s.EnvSources, s.EnvSource) {
			one(list, i, fmt.Sprintf("envs[%d]", j), file)
		}
	}
	for i, args := range k.ConfigMapGenerator {
		sources("configMapGenerator", i, args.KvPairSources)
	}
	for i, args := range k.SecretGenerator {
		sources("secretGenerator", i, args.KvPairSources)
	}
	if file, ok := k.OpenAPI["path"]; ok {
		found = append(found, reference{field: "openapi.path", value: file})
	}
	return found
}

// fileOf returns the path in a source of files, which may have a key.
func fileOf(source string) string {
	if _, file, ok := strings.Cut(source, "="); ok && !isRemote(source) {
		return file
	}
	return source
}

func (t tree) checkReference(dir, value string) error {
	if isRemote(value) {
		return errRemote
	}
	if path.IsAbs(value) {
		return errAbsolute
	}
	target, ok := join(dir, value)
	if !ok || !slices.ContainsFunc(t.roots, func(root string) bool { return isWithin(target, root) }) {
		return errOutside
	}
	return nil
}

// checkPlugins returns an error for a folder of plugins that changes them.
func (t tree) checkPlugins(dir, value string, depth int) error {
	target, _ := join(dir, value)
	if target == "." {
		target = ""
	}
	if !t.isKustomization(target) || depth > len(t.files) {
		return nil
	}
	for _, file := range konfig.RecognizedKustomizationFileNames() {
		content, ok := t.files[path.Join(target, file)]
		if !ok {
			continue
		}
		var k types.Kustomization
		if err := k.Unmarshal(content); err != nil {
			return err
		}
		k.FixKustomization()
		nested := k.Resources
		k.Resources = nil
		if k.CheckEmpty() == nil {
			return errComputed
		}
		for _, below := range nested {
			if err := t.checkPlugins(target, below, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// remotePrefix matches what kustomize gives to git or to an HTTP client, and anything else with a scheme.
var remotePrefix = regexp.MustCompile(
	`(?i)^\s*(git::|[a-z][a-z0-9+.-]*://|(https?|ssh|file|git):|github\.com[/:]|[a-z][a-z0-9-]*@)`)

func isRemote(value string) bool {
	if remotePrefix.MatchString(value) || strings.Contains(value, "?ref=") || strings.Contains(value, "?version=") {
		return true
	}
	parsed, err := url.Parse(value)
	return err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https")
}

// isInline reports whether kustomize takes an entry for a document.
func isInline(value string) bool {
	var document map[string]any
	return yaml.Unmarshal([]byte(value), &document) == nil && document != nil || strings.Contains(value, "\n")
}

func checkInline(value string) error {
	if remotePrefix.MatchString(value) {
		return fmt.Errorf("%q: %w", value, errRemote)
	}
	return checkDocuments([]byte(value))
}

func folderOf(name string) string {
	if dir := path.Dir(name); dir != "." {
		return dir
	}
	return ""
}

package kustomize

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
)

const (
	withheld = "<withheld>"
	// maxMessage is how long an error of kustomize may be, which may quote whole objects.
	maxMessage = 2000
)

var addresses = regexp.MustCompile(`0x[0-9a-f]{8,}`)

// withhold returns an error with the text of err, without secrets and without what differs from build to build.
// kustomize quotes configurations and objects.
func withhold(err error, secrets func() []string) error {
	text := addresses.ReplaceAllString(err.Error(), "0x…")
	for _, secret := range variants(secrets()) {
		if len(secret) >= 4 {
			text = strings.ReplaceAll(text, secret, withheld)
			continue
		}
		// A short one is part of many words.
		word := regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(secret) + `(\W|$)`)
		text = word.ReplaceAllString(text, "${1}"+withheld+"${2}")
	}
	if text = strings.TrimSpace(text); len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return errors.New(text)
}

// variants returns secrets in all forms in which they may be quoted, longest first.
func variants(secrets []string) []string {
	all := map[string]bool{}
	for _, secret := range secrets {
		for _, part := range append(strings.Split(secret, "\n"), secret) {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			quoted := strconv.Quote(part)
			all[part], all[quoted[1:len(quoted)-1]] = true, true
			all[strings.ReplaceAll(part, "'", "''")] = true
		}
		all[base64.StdEncoding.EncodeToString([]byte(secret))] = true
		if decoded, err := base64.StdEncoding.DecodeString(secret); err == nil && len(decoded) > 2 {
			all[strings.TrimSpace(string(decoded))] = true
		}
	}
	delete(all, "")
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
}

// secrets returns what the files have for Secrets: their data, what Secrets are generated from, and patches of them.
func (t tree) secrets() []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		found = append(found, secretsOf(t.files[name], 0)...)
	}
	for _, name := range t.kustomizations() {
		var k types.Kustomization
		if k.Unmarshal(t.files[name]) != nil {
			continue
		}
		k.FixKustomization()
		for _, args := range k.SecretGenerator {
			for _, literal := range args.LiteralSources {
				_, value, _ := strings.Cut(literal, "=")
				found = append(found, literal, strings.Trim(value, `"'`), value)
			}
			found = append(found, t.sourcesOf(folderOf(name), args.KvPairSources)...)
		}
	}
	return found
}

// sourcesOf returns the contents of the files that a Secret is generated from.
func (t tree) sourcesOf(dir string, sources types.KvPairSources) []string {
	var found []string
	for _, file := range sources.FileSources {
		found = append(found, string(t.files[path.Join(dir, fileOf(file))]))
	}
	for _, file := range sources.EnvSources {
		for _, line := range strings.Split(string(t.files[path.Join(dir, file)]), "\n") {
			_, value, _ := strings.Cut(line, "=")
			found = append(found, line, value)
		}
	}
	return found
}

// secretsOf returns the values in documents about Secrets, also of documents in texts. If a text about Secrets cannot
// be parsed, all of its lines count.
func secretsOf(content []byte, depth int) []string {
	if depth > maxNested || !bytes.Contains(content, []byte("Secret")) {
		return nil
	}
	var found []string
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			if text := err.Error(); text != "EOF" {
				found = append(found, strings.Split(string(content), "\n")...)
			}
			return found
		}
		found = append(found, secretsIn(&document, depth)...)
	}
}

// aboutSecret is a comment that makes [secretsOf] look into a text.
const aboutSecret = "\n# Secret"

// secretFields are those with values of a Secret, or of what generates or patches one.
var secretFields = []string{"data", "stringData", "literals", "value"}

// secretsIn looks for the fields in documents that mention Secrets.
func secretsIn(node *yaml.Node, depth int) []string {
	var found []string
	for i, child := range node.Content {
		isValue := node.Kind == yaml.MappingNode && i%2 == 1
		switch {
		case isValue && slices.Contains(secretFields, node.Content[i-1].Value):
			found = append(found, leaves(child, depth)...)
		case isValue && slices.Contains([]string{"patch", "jsonOp"}, node.Content[i-1].Value):
			// A patch with a target need not say that it is about a Secret.
			found = append(found, secretsOf([]byte(child.Value+aboutSecret), depth+1)...)
		case child.Kind == yaml.ScalarNode:
			found = append(found, secretsOf([]byte(child.Value), depth+1)...)
		default:
			found = append(found, secretsIn(child, depth)...)
		}
	}
	return found
}

// leaves returns all values of a node. A value that is a document itself counts as a whole, and with its values.
func leaves(node *yaml.Node, depth int) []string {
	if node.Kind != yaml.ScalarNode {
		var found []string
		for i, child := range node.Content {
			if node.Kind == yaml.MappingNode && i%2 == 0 {
				continue
			}
			found = append(found, leaves(child, depth)...)
		}
		return found
	}
	found := []string{node.Value}
	if _, value, ok := strings.Cut(node.Value, "="); ok {
		found = append(found, value)
	}
	return append(found, secretsOf([]byte(node.Value), depth+1)...)
}

package scaffold

import (
	"fmt"
	"regexp"
	"strings"
)

// templates is the import path of the folders with templates. It and the name of a folder stand for the module.
const templates = `github\.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/[a-z]+`

// tokens are what stands in templates for what options say. Of two at one place, the first counts.
var tokens = regexp.MustCompile(strings.Join([]string{
	templates, `registry\.example\.test/placeholder-operator:tag`,
	"placeholder-operator", "placeholder-category", "placeholders", "placeholder", "Placeholder",
	`group\.example\.test`, "v9alpha9", "scope=Namespaced", `v0\.0\.0-controller-gen`, `golang:0\.0-go`,
}, "|"))

// replaceTokens returns the text with what the options say in the place of tokens.
func (o Options) replaceTokens(text string) string {
	return tokens.ReplaceAllStringFunc(text, func(token string) string {
		switch token {
		case "registry.example.test/placeholder-operator:tag":
			return o.Image
		case "placeholder-operator":
			return o.Operator
		case "placeholder-category":
			return o.capability().category
		case "placeholders":
			return o.Plural
		case "placeholder":
			if o.Plugin != "" {
				return o.capability().typ
			}
			return strings.ToLower(o.Kind)
		case "Placeholder":
			return o.Kind
		case "group.example.test":
			return o.Group
		case "v9alpha9":
			return o.Version
		case "scope=Namespaced":
			return "scope=" + o.scope()
		case "v0.0.0-controller-gen":
			return ControllerGenVersion
		case "golang:0.0-go":
			return "golang:" + strings.Join(strings.SplitN(o.GoVersion, ".", 3)[:2], ".")
		default:
			return o.Module
		}
	})
}

func (o Options) scope() string {
	if o.Namespaced {
		return "Namespaced"
	}
	return "Cluster"
}

var (
	// marker is a line that begins or ends a block, as a comment of any sort.
	marker = regexp.MustCompile(`^\s*(?://|#|<!--)scaffold:(?:if ([a-z]+)|(end))(?:-->)?$`)
	// dormant begins a line of Go that is not compiled in the template.
	dormant = regexp.MustCompile(`^(\s*)//\+`)
)

// selectBlocks returns the template without markers, and without the blocks whose conditions do not hold. Lines of Go
// that are not compiled in the template are code afterwards.
func (o Options) selectBlocks(name, template string) (string, error) {
	var out strings.Builder
	inBlock, keep, number := false, true, 0
	for line := range strings.Lines(template) {
		number++
		switch match := marker.FindStringSubmatch(strings.TrimSuffix(line, "\n")); {
		case match == nil && keep:
			out.WriteString(dormant.ReplaceAllString(line, "$1"))
		case match == nil:
		case match[2] == "end" && inBlock:
			inBlock, keep = false, true
		case match[2] == "end" || inBlock:
			return "", fmt.Errorf("template %s:%d: a block begins in another one, or ends without a beginning",
				name, number)
		default:
			holds, known := o.is(match[1])
			if !known {
				return "", fmt.Errorf("template %s:%d: there is no condition %q", name, number, match[1])
			}
			inBlock, keep = true, holds
		}
	}
	if inBlock {
		return "", fmt.Errorf("template %s: its last block does not end", name)
	}
	return out.String(), nil
}

package kustomize

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreRules are the lines of [ignoreFile], which has the syntax of .gitignore. The small libraries for that syntax
// take a ? literally, or do not anchor a pattern with a slash. So only the matching of one pattern is left to a
// library.
type ignoreRules []ignoreRule

type ignoreRule struct {
	pattern string
	negated bool
	folder  bool
}

func parseIgnore(content []byte) (ignoreRules, error) {
	var rules ignoreRules
	for i, line := range strings.Split(string(content), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if trimmed := strings.TrimRight(line, " "); !strings.HasSuffix(trimmed, `\`) {
			line = trimmed
		}
		if line == "" || line[0] == '#' {
			continue
		}
		var rule ignoreRule
		line, rule.negated = strings.CutPrefix(line, "!")
		line, rule.folder = strings.CutSuffix(line, "/")
		if line == "" {
			continue
		}
		anchored := strings.Contains(line, "/")
		// A library that knows alternatives must not see any.
		rule.pattern = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(strings.TrimPrefix(line, "/"))
		if !anchored {
			rule.pattern = "**/" + rule.pattern
		}
		if !doublestar.ValidatePattern(rule.pattern) {
			return nil, fmt.Errorf("line %d: %q is no pattern", i+1, line)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// match reports whether the rules ignore a file. A file in an ignored folder is ignored whatever other rules say.
func (r ignoreRules) match(name string) bool {
	for i, char := range name {
		if char == '/' && r.last(name[:i], true) {
			return true
		}
	}
	return r.last(name, false)
}

func (r ignoreRules) last(name string, folder bool) bool {
	for i := len(r) - 1; i >= 0; i-- {
		if r[i].folder && !folder {
			continue
		}
		if doublestar.MatchUnvalidated(r[i].pattern, name) {
			return !r[i].negated
		}
	}
	return false
}

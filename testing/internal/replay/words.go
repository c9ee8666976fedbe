package replay

import (
	"regexp"
	"strings"
)

// words are the signs and words of a finding that do not explain themselves, in the order in which they are explained.
var words = []struct {
	// inStory matches stories that have the word, inDifference lines about the end. One of them is nil.
	inStory, inDifference *regexp.Regexp
	// text is the word with what it means.
	text string
}{
	{regexp.MustCompile(`†`), nil, "† = the process dies, and a new one starts"},
	{regexp.MustCompile(`\(stale\)`), nil, "stale = the cache does not show the last change yet"},
	{regexp.MustCompile(`\(after the user deleted`), nil, "the user deleted the resource just before the call; " +
		"what counts is what is left behind"},
	{regexp.MustCompile(`· again( ·|$)`), nil, "again = the request changed something, so another one follows"},
	{regexp.MustCompile(`· rest( ·|$)`), nil, "rest = nothing is left to do"},
	{nil, regexp.MustCompile(`^left over: `), "left over = it is not there without the fault"},
	{nil, regexp.MustCompile(`^external( \d+)?: `), "external = what the End of an External " +
		"returns; [0] is its first element"},
	{nil, regexp.MustCompile(` is .*, not `), "is, not = with the fault, without it; " +
		"if the first is right, the code stops too early without a fault"},
	{nil, regexp.MustCompile(`[^\s"]\*\d`), "*2 = the second of the objects whose names are generated from " +
		"that prefix"},
}

// indented begins a line under another one of a finding.
const indented = "\n              "

// String returns the story of the finding and how it ends, with what their signs and words mean, in a line each.
func (f Finding) String() string {
	text := "  story:      " + f.Story + "\n  at the end: " + strings.Join(f.Differences, indented)
	var lines []string
	for _, word := range words {
		occurs := word.inStory != nil && word.inStory.MatchString(f.Story)
		for _, difference := range f.Differences {
			occurs = occurs || word.inDifference != nil && word.inDifference.MatchString(difference)
		}
		if occurs {
			lines = append(lines, word.text)
		}
	}
	if len(lines) == 0 {
		return text
	}
	return text + "\n  where:      " + strings.Join(lines, indented)
}

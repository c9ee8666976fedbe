package gotemplate

import (
	"reflect"
	"regexp"
	"regexp/syntax"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// regexOnce are functions that look for one match, regexAll those that look for all. The arguments begin with the
// expression and the text.
var (
	regexOnce = sets.New("regexMatch", "mustRegexMatch", "regexFind", "mustRegexFind")
	regexAll  = sets.New("regexFindAll", "mustRegexFindAll", "regexSplit", "mustRegexSplit")
)

const (
	// regexSteps is how many steps the search for one match may take. This takes about a second.
	regexSteps = 1 << 27
	// regexStepsUnseen is how many steps the search for all matches may take without a look at the clock.
	regexStepsUnseen = 1 << 29
	// regexSmall is how long a text may be for which nothing is computed.
	regexSmall = 4096
)

func (g *Guard) regexBefore(all bool) func(args []reflect.Value) error {
	return func(args []reflect.Value) error { return g.reserveRegex(args[0].String(), args[1].String(), all) }
}

// reserveRegex returns an error if the search for an expression in a text would take too long. The steps of a search
// are the length of the text times the size of the expression. Each further match may take as many.
func (g *Guard) reserveRegex(expression, s string, all bool) error {
	if len(s) <= regexSmall && len(expression) <= 256 && !strings.Contains(expression, "{") {
		return nil
	}
	if err := g.clock(); err != nil {
		return err
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		// The function says it better.
		return nil
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil
	}
	steps := float64(len(program.Inst)) * float64(len(s)+1)
	if steps > regexSteps {
		return g.tooLarge()
	}
	if all && steps*float64(len(s)) > regexStepsUnseen {
		_, _, err := g.matches(expression, s)
		return err
	}
	return nil
}

// stopped ends the search for matches, which package regexp does not let end otherwise. It does not leave matches.
type stopped struct{ err error }

// matches counts the matches and their bytes. It looks at the clock at each match.
func (g *Guard) matches(expression, s string) (count, bytes int, err error) {
	compiled, err := regexp.Compile(expression)
	if err != nil {
		return 0, 0, nil
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case stopped:
			err = r.err
		default:
			panic(r) // a defect of package regexp, which no input is known to reach
		}
	}()
	compiled.ReplaceAllStringFunc(s, func(match string) string {
		if err := g.clock(); err != nil {
			panic(stopped{err})
		}
		count++
		bytes += len(match)
		return ""
	})
	return count, bytes, nil
}

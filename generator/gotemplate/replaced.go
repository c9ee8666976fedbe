package gotemplate

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"text/template"
)

// replaced returns the functions whose result may be larger than their arguments by a factor that a template chooses.
// They look at the arguments first, and then call the function of Sprig.
func (g *Guard) replaced() template.FuncMap {
	functions := functionsOfSprig()
	replaced := template.FuncMap{
		"print": func(v ...any) (string, error) {
			return checked(g, g.measureAll(v), func() string { return fmt.Sprint(v...) })
		},
		"println": func(v ...any) (string, error) {
			return checked(g, g.measureAll(v), func() string { return fmt.Sprintln(v...) })
		},
		"printf": g.printf,

		"repeat":   g.textOf(functions, "repeat", func(n int, s string) error { return g.reserve(n, len(s)) }),
		"indent":   g.textOf(functions, "indent", g.reserveIndent),
		"nindent":  g.textOf(functions, "nindent", g.reserveIndent),
		"wrap":     g.textOf(functions, "wrap", func(_ int, s string) error { return g.reserve(2*len(s), 1) }),
		"wrapWith": g.wrapWith(call[func(int, string, string) string](functions, "wrapWith")),
		"replace":  g.replace(call[func(string, string, string) string](functions, "replace")),
		"join":     g.join(call[func(string, any) string](functions, "join")),

		"until":     g.until(call[func(int) []int](functions, "until")),
		"untilStep": g.untilStep(call[func(int, int, int) []int](functions, "untilStep")),
		"seq":       g.seq(call[func(...int) string](functions, "seq")),

		"dict": g.dict(call[func(...any) map[string]any](functions, "dict")),
		"set":  g.set,

		"uniq":     func(list any) ([]any, error) { return g.uniq(list) },
		"mustUniq": func(list any) ([]any, error) { return g.uniq(list) },
	}
	for _, name := range []string{"randAlpha", "randAlphaNum", "randAscii", "randNumeric"} {
		replaced[name] = g.random(call[func(int) string](functions, name))
	}
	randBytes := call[func(int) (string, error)](functions, "randBytes")
	replaced["randBytes"] = func(n int) (string, error) {
		if err := g.reserve(n, 2); err != nil {
			return "", err
		}
		s, err := randBytes(n)
		if err != nil {
			return "", err
		}
		return g.string(s)
	}
	for _, name := range []string{"deepCopy", "mustDeepCopy"} {
		replaced[name] = g.copied(functions[name])
	}
	for _, name := range []string{"trimAll", "trimall"} {
		replaced[name] = g.trim(call[func(string, string) string](functions, name))
	}
	g.replaceRegex(replaced)
	g.replaceMerge(functions, replaced)
	return replaced
}

// call returns a function of Sprig. Its version is fixed, so a test would see another type.
func call[F any](functions template.FuncMap, name string) F { return functions[name].(F) }

// textOf bounds a function from a number and a text to a text.
func (g *Guard) textOf(functions template.FuncMap, name string, reserve func(n int, s string) error) any {
	f := call[func(int, string) string](functions, name)
	return func(n int, s string) (string, error) {
		return checked(g, reserve(n, s), func() string { return f(n, s) })
	}
}

func (g *Guard) reserveIndent(n int, s string) error {
	return g.reserve(n, strings.Count(s, "\n")+1)
}

func (g *Guard) random(f func(int) string) any {
	return func(n int) (string, error) {
		// Random characters take long.
		return checked(g, g.reserve(n, 256), func() string { return f(n) })
	}
}

// maxWidth is the largest width and precision that package fmt accepts.
const maxWidth = 1_000_000

var widths = regexp.MustCompile(`[0-9]{3,}|\*`)

func (g *Guard) printf(format string, v ...any) (string, error) {
	err := g.measureAll(v)
	if err == nil && strings.Contains(format, "[") {
		// Each verb may name the same argument.
		var bytes int
		if bytes, err = g.measure(reflect.ValueOf(v)); err == nil {
			err = g.reserve(strings.Count(format, "%"), bytes)
		}
	}
	if strings.ContainsAny(format, "*0123456789") {
		total := 0
		for _, width := range widths.FindAllString(format, -1) {
			if n := 0; width != "*" && len(width) < 7 {
				_, _ = fmt.Sscan(width, &n)
				total += n
			} else {
				total += maxWidth
			}
		}
		if err == nil {
			err = g.reserve(total, 1)
		}
	}
	return checked(g, err, func() string { return fmt.Sprintf(format, v...) })
}

// copied counts all of a value that is copied.
func (g *Guard) copied(function any) any {
	return g.reflected(function, func(args []reflect.Value) error {
		bytes, err := g.measure(args[0])
		if err != nil {
			return err
		}
		return g.charge(bytes)
	})
}

// trim bounds a function that looks for each character of a text in another one.
func (g *Guard) trim(f func(characters, s string) string) any {
	return func(characters, s string) (string, error) {
		const steps = 1 << 30
		if len(characters) > 0 && len(s) > steps/len(characters) {
			return "", g.tooLarge()
		}
		return f(characters, s), g.charge(0)
	}
}

func (g *Guard) wrapWith(f func(int, string, string) string) any {
	return func(length int, separator, s string) (string, error) {
		// Two lines that follow each other are longer than the length together.
		pieces := 2*len(s)/max(length, 1) + 2
		return checked(g, g.reserve(pieces, len(separator)), func() string { return f(length, separator, s) })
	}
}

func (g *Guard) replace(f func(string, string, string) string) any {
	return func(old, with, s string) (string, error) {
		return checked(g, g.reserve(strings.Count(s, old), len(with)), func() string { return f(old, with, s) })
	}
}

func (g *Guard) join(f func(string, any) string) any {
	return func(separator string, v any) (string, error) {
		err := g.measureOne(v)
		if list := reflect.ValueOf(v); err == nil && (list.Kind() == reflect.Slice || list.Kind() == reflect.Array) {
			err = g.reserve(list.Len(), len(separator))
		}
		return checked(g, err, func() string { return f(separator, v) })
	}
}

// reserveSteps reserves the numbers from start until stop. It also refuses a last step over the largest number, with
// which the function of Sprig does not end.
func (g *Guard) reserveSteps(start, stop, step int) error {
	distance := math.Abs(float64(stop) - float64(start))
	width := math.Abs(float64(step))
	if width == 0 || (stop < start) != (step < 0) {
		return nil
	}
	if math.Abs(float64(stop))+width > math.MaxInt64/2 {
		return g.tooLarge()
	}
	return g.reserve(int(distance/width), sizeOfElement)
}

func (g *Guard) until(f func(int) []int) any {
	return func(n int) ([]int, error) {
		if err := g.reserveSteps(0, n, cmpSign(n)); err != nil {
			return nil, err
		}
		list := f(n)
		return list, g.charge(len(list) * sizeOfNumber)
	}
}

func cmpSign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

func (g *Guard) untilStep(f func(int, int, int) []int) any {
	return func(start, stop, step int) ([]int, error) {
		if err := g.reserveSteps(start, stop, step); err != nil {
			return nil, err
		}
		list := f(start, stop, step)
		return list, g.charge(len(list) * sizeOfNumber)
	}
}

func (g *Guard) seq(f func(...int) string) any {
	return func(v ...int) (string, error) {
		start, step, end := 1, 0, 0
		switch len(v) {
		case 1:
			end = v[0]
		case 2:
			start, end = v[0], v[1]
		case 3:
			start, step, end = v[0], v[1], v[2]
		}
		if step == 0 {
			step = cmpSign(end - start)
		}
		return checked(g, g.reserveSteps(start, end, step), func() string { return f(v...) })
	}
}

func (g *Guard) dict(f func(...any) map[string]any) any {
	return func(v ...any) (map[string]any, error) {
		for i := 0; i < len(v); i += 2 {
			if err := g.measureOne(v[i]); err != nil {
				return nil, err
			}
		}
		made := f(v...)
		return made, g.charge(len(made) * sizeOfEntry)
	}
}

// uniq looks at the clock, because it compares each with each.
func (g *Guard) uniq(list any) ([]any, error) {
	v := reflect.ValueOf(list)
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return nil, fmt.Errorf("cannot find uniq on type %s", v.Kind())
	}
	found := []any{}
	for i := range v.Len() {
		item, known := v.Index(i).Interface(), false
		for j := 0; j < len(found) && !known; j++ {
			if j%clockEvery == 0 {
				if err := g.clock(); err != nil {
					return nil, err
				}
			}
			known = reflect.DeepEqual(item, found[j])
		}
		if !known {
			found = append(found, item)
		}
	}
	return found, g.charge(len(found) * sizeOfElement)
}

// replaceRegex bounds the functions that replace matches. How many there are is found out first, unless there cannot be
// too many.
func (g *Guard) replaceRegex(functions template.FuncMap) {
	sprigs := functionsOfSprig()
	for _, name := range []string{"regexReplaceAll", "regexReplaceAllLiteral"} {
		f := call[func(string, string, string) string](sprigs, name)
		functions[name] = func(expression, s, with string) (string, error) {
			return checked(g, g.reserveMatches(expression, s, with), func() string { return f(expression, s, with) })
		}
	}
	for _, name := range []string{"mustRegexReplaceAll", "mustRegexReplaceAllLiteral"} {
		f := call[func(string, string, string) (string, error)](sprigs, name)
		functions[name] = func(expression, s, with string) (string, error) {
			if err := g.reserveMatches(expression, s, with); err != nil {
				return "", err
			}
			replaced, err := f(expression, s, with)
			if err != nil {
				return "", err
			}
			return g.string(replaced)
		}
	}
}

// reserveMatches reserves the text with which all matches are replaced. Each $ in it may stand for the match.
func (g *Guard) reserveMatches(expression, s, with string) error {
	if err := g.reserveRegex(expression, s, true); err != nil {
		return err
	}
	references := strings.Count(with, "$")
	if most := float64(len(s)+1) * float64(len(with)+references); most < float64(g.left()) {
		return nil
	}
	count, bytes, err := g.matches(expression, s)
	if err != nil {
		return err
	}
	if err := g.reserve(count, len(with)); err != nil {
		return err
	}
	return g.reserve(bytes, references)
}

package gotemplate

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"k8s.io/apimachinery/pkg/util/sets"
)

var (
	// writesText are functions that write any value as text, and that others may replace by their own. Their arguments
	// are checked by the template that calls them.
	writesText = sets.New(
		"toYaml", "toYamlPretty", "mustToYaml", "toJson", "mustToJson", "toPrettyJson", "mustToPrettyJson", "toRawJson",
		"mustToRawJson", "toToml", "mustToToml")

	// reads are functions that parse their last argument, with what that is. Their arguments are checked by the
	// template that calls them, because others may replace them by their own.
	reads = map[string]string{
		"fromYaml": "YAML", "mustFromYaml": "YAML", "fromYamlArray": "YAML", "mustFromYamlArray": "YAML",
		"fromJson": "JSON", "mustFromJson": "JSON", "fromJsonArray": "JSON", "mustFromJsonArray": "JSON",
		"fromToml": "TOML",
	}

	// small are functions whose result is always small.
	small = sets.New(
		"hello", "now", "uuidv4", "randInt", "all", "any", "empty", "has", "mustHas", "hasKey", "contains", "hasPrefix",
		"hasSuffix", "deepEqual", "kindOf", "kindIs", "typeOf", "typeIs", "typeIsLike", "atoi", "isAbs", "osIsAbs",
		"semverCompare", "toDate", "mustToDate", "ago", "duration", "durationRound",
		"unixEpoch", "adler32sum", "sha1sum", "sha256sum", "sha512sum", "fail",
		"not", "len", "eq", "ne", "lt", "le", "gt", "ge")

	// partial are functions whose result is part of an argument.
	partial = sets.New(
		"default", "coalesce", "ternary", "dig", "get", "set", "unset", "first", "mustFirst", "last", "mustLast",
		"trunc", "substr", "trim", "trimPrefix", "trimSuffix", "base", "dir", "ext",
		"required", "index", "and", "or")

	// slow are functions that compute for long.
	slow = sets.New(
		"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert",
		"genSignedCertWithKey", "buildCustomCert", "derivePassword", "bcrypt", "htpasswd")

	// wide are functions that make a list of many small parts of a string.
	wide = sets.New("split", "splitn", "splitList")

	// foreign are functions of Sprig that read the environment or the network, and those that have other
	// implementations.
	foreign = sets.New(
		"env", "expandenv", "getHostByName", "fail", "fromJson", "mustFromJson", "toJson", "mustToJson", "toPrettyJson",
		"mustToPrettyJson", "toRawJson", "mustToRawJson")
)

// functionsOfSprig are those of Sprig and the builtin ones that write text. They must not be changed.
var functionsOfSprig = sync.OnceValue(func() template.FuncMap {
	functions := sprig.TxtFuncMap()
	for name := range foreign {
		delete(functions, name)
	}
	functions["keys"], functions["values"] = keys, values
	functions["html"] = template.HTMLEscaper
	functions["js"] = template.JSEscaper
	functions["urlquery"] = template.URLQueryEscaper
	return functions
})

// keys returns the keys of maps, those of each map in the order of the alphabet. Sprig returns them in another order
// each time, so the objects would change with each execution.
func keys(all ...map[string]any) []string {
	found := []string{}
	for _, m := range all {
		found = append(found, slices.Sorted(maps.Keys(m))...)
	}
	return found
}

// values returns the values of a map, in the order of the keys.
func values(m map[string]any) []any {
	found := make([]any, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		found = append(found, m[key])
	}
	return found
}

// boundedNames are the names of the functions that Guard.Functions replaces.
var boundedNames = sync.OnceValue(func() sets.Set[string] {
	return sets.KeySet(new(Guard).bounded())
})

func isBounded(name string) bool { return boundedNames().Has(name) }

// bounded returns the functions whose result may be larger than their arguments, or that write any value as text. Each
// counts its result.
func (g *Guard) bounded() template.FuncMap {
	functions := template.FuncMap{}
	for name, function := range functionsOfSprig() {
		switch {
		case slow.Has(name):
			functions[name] = g.reflected(function, g.clockBefore)
		case regexOnce.Has(name):
			functions[name] = g.reflected(function, g.regexBefore(false))
		case regexAll.Has(name):
			functions[name] = g.reflected(function, g.regexAllBefore)
		case wide.Has(name):
			functions[name] = g.reflected(function, g.wideBefore)
		case !small.Has(name) && !partial.Has(name):
			functions[name] = g.boundedAs(function)
		}
	}
	for name, function := range g.replaced() {
		functions[name] = function
	}
	return functions
}

// boundedAs returns the function with the same parameters, and an error. The types that templates often call are
// listed, because reflection is slow.
func (g *Guard) boundedAs(function any) any {
	switch f := function.(type) {
	case func(string) string:
		return func(s string) (string, error) { return g.string(f(s)) }
	case func(int, string) string:
		return func(n int, s string) (string, error) { return g.string(f(n, s)) }
	case func(any) string:
		return func(v any) (string, error) {
			return checked(g, g.measureOne(v), func() string { return f(v) })
		}
	case func(...any) string:
		return func(v ...any) (string, error) {
			return checked(g, g.measureAll(v), func() string { return f(v...) })
		}
	case func(any) int:
		return number1(g, f)
	case func(any) int64:
		return number1(g, f)
	case func(any) float64:
		return number1(g, f)
	case func(...any) int64:
		return numberN(g, f)
	case func(...any) float64:
		return numberN(g, f)
	case func(any, any) int64:
		return func(a, b any) (int64, error) {
			if err := g.measureAll([]any{a, b}); err != nil {
				return 0, err
			}
			return f(a, b), nil
		}
	case func(...any) []any:
		return func(v ...any) ([]any, error) {
			list := f(v...)
			return list, g.charge(len(list) * sizeOfElement)
		}
	case func(any, any) []any:
		return func(list, v any) ([]any, error) {
			longer := f(list, v)
			return longer, g.charge(len(longer) * sizeOfElement)
		}
	default:
		return g.reflected(function, g.argumentsBefore(reflect.TypeOf(function)))
	}
}

func (g *Guard) string(s string) (string, error) { return s, g.charge(len(s)) }

// checked calls f unless there is an error.
func checked(g *Guard, err error, f func() string) (string, error) {
	if err != nil {
		return "", err
	}
	return g.string(f())
}

func number1[T any](g *Guard, f func(any) T) any {
	return func(v any) (T, error) {
		if err := g.measureOne(v); err != nil {
			var none T
			return none, err
		}
		return f(v), nil
	}
}

func numberN[T any](g *Guard, f func(...any) T) any {
	return func(v ...any) (T, error) {
		if err := g.measureAll(v); err != nil {
			var none T
			return none, err
		}
		return f(v...), nil
	}
}

var errorType = reflect.TypeFor[error]()

// reflected bounds a function of any type: before sees the arguments, and the result is counted.
func (g *Guard) reflected(function any, before func(args []reflect.Value) error) any {
	f := reflect.ValueOf(function)
	t := f.Type()
	in := make([]reflect.Type, t.NumIn())
	for i := range in {
		in[i] = t.In(i)
	}
	withError := reflect.FuncOf(in, []reflect.Type{t.Out(0), errorType}, t.IsVariadic())
	call := f.Call
	if t.IsVariadic() {
		call = f.CallSlice
	}
	failed := func(err error) []reflect.Value {
		return []reflect.Value{reflect.Zero(t.Out(0)), reflect.ValueOf(&err).Elem()}
	}
	return reflect.MakeFunc(withError, func(args []reflect.Value) []reflect.Value {
		if err := before(args); err != nil {
			return failed(err)
		}
		results := call(args)
		if err := g.charge(sizeOfResult(results[0])); err != nil {
			return failed(err)
		}
		if len(results) == 1 {
			results = append(results, reflect.Zero(errorType))
		}
		return results
	}).Interface()
}

// sizeOfResult counts what a function adds to values that are counted already.
func sizeOfResult(v reflect.Value) int {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Slice:
		bytes := v.Len() * sizeOfElement
		for i := 0; v.Type().Elem().Kind() == reflect.String && i < v.Len(); i++ {
			bytes += v.Index(i).Len()
		}
		return bytes
	case reflect.Map:
		return v.Len() * sizeOfEntry
	default:
		return sizeOfNumber
	}
}

func (g *Guard) clockBefore([]reflect.Value) error { return g.clock() }

func (g *Guard) wideBefore(args []reflect.Value) error {
	for _, arg := range args {
		if arg.Kind() == reflect.String {
			if err := g.reserve(arg.Len(), sizeOfElement); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *Guard) regexAllBefore(args []reflect.Value) error {
	if err := g.wideBefore(args); err != nil {
		return err
	}
	return g.regexBefore(true)(args)
}

// argumentsBefore checks the arguments of any type of a function that may write them as text: it does not if it returns
// a list or a map of them.
func (g *Guard) argumentsBefore(t reflect.Type) func(args []reflect.Value) error {
	result := t.Out(0)
	keeps := result.Kind() == reflect.Map || result.Kind() == reflect.Slice && result.Elem().Kind() != reflect.String
	return func(args []reflect.Value) error {
		for _, arg := range args {
			anything := arg.Kind() == reflect.Interface ||
				arg.Kind() == reflect.Slice && arg.Type().Elem().Kind() == reflect.Interface
			if keeps || !anything {
				continue
			}
			if _, err := g.measure(arg); err != nil {
				return err
			}
		}
		return nil
	}
}

package gotemplate

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"text/template"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/document"
)

// Functions returns what templates may call, besides the builtin functions of text/template: the functions of Sprig,
// except for those that read the environment or the network, and the following:
//
//   - toYaml, toJson, toPrettyJson, toRawJson (which leaves <, > and & as they are) write a value as text; fromYaml,
//     fromJson read any value, fromYamlArray and fromJsonArray a list. The same with the prefix must. All fail if they
//     cannot. Whole numbers are read as such.
//   - keys and values return what maps have in the order of the keys.
//   - required MESSAGE VALUE fails if the value is nil or an empty string.
//   - bitwiseShiftLeft BY X, bitwiseShiftRight BY X, bitwiseAnd X..., bitwiseOr X..., bitwiseXor X... compute with 64
//     bits without sign; parseIPv4Address TEXT and formatIPv4Address NUMBER translate addresses.
//   - lookup APIVERSION KIND NAMESPACE NAME reads an object of the cluster that the component is deployed to. It is an
//     empty map if there is none. An empty name lists all objects, under items. lookupList APIVERSION KIND NAMESPACE
//     SELECTOR lists those with labels. mustLookup fails with a [generator.RetriableError] if there is none.
//   - localLookup, localLookupList and mustLocalLookup do the same in the cluster of the component's resource.
//
// Clients come from the context, see [generator.ClientFromContext] and [generator.LocalClientFromContext]. What is
// looked up is recorded in the [Lookups] of the context. There are no lookups with a kubeconfig: calling
// lookupWithKubeConfig is an error that says so.
//
// The functions are not bounded, and lookups hold back others that are large: see [Guard.Functions]. include and tpl
// are not among them, because they need the set of templates; [Set] adds them.
func Functions(ctx context.Context) template.FuncMap {
	functions := maps.Clone(functionsOfSprig())
	functions["fail"] = func(message string) (string, error) { return "", errors.New(message) }
	for name, function := range conversions {
		functions[name] = function
		functions["must"+strings.ToUpper(name[:1])+name[1:]] = function
	}
	maps.Copy(functions, lookups(func() (context.Context, context.CancelFunc) { return ctx, func() {} }))
	maps.Copy(functions, template.FuncMap{
		"required":          required,
		"bitwiseShiftLeft":  shift(func(n, x uint64) uint64 { return x << n }),
		"bitwiseShiftRight": shift(func(n, x uint64) uint64 { return x >> n }),
		"bitwiseAnd":        bitwise(math.MaxUint64, func(a, b uint64) uint64 { return a & b }),
		"bitwiseOr":         bitwise(0, func(a, b uint64) uint64 { return a | b }),
		"bitwiseXor":        bitwise(0, func(a, b uint64) uint64 { return a ^ b }),
		"parseIPv4Address":  parseIPv4Address,
		"formatIPv4Address": formatIPv4Address,
	})
	for _, name := range []string{"lookupWithKubeConfig", "mustLookupWithKubeConfig", "lookupListWithKubeConfig"} {
		functions[name] = func(...any) (any, error) { return nil, errNoKubeConfig }
	}
	return functions
}

var errNoKubeConfig = errors.New("templates cannot look up anything with a kubeconfig: deploy the component with it")

var conversions = template.FuncMap{
	"toYaml":        toYaml,
	"toJson":        toJSON,
	"toPrettyJson":  toPrettyJSON,
	"toRawJson":     toRawJSON,
	"fromYaml":      fromYAML[any],
	"fromYamlArray": fromYAML[[]any],
	"fromJson":      fromJSON[any],
	"fromJsonArray": fromJSON[[]any],
}

func toYaml(v any) (string, error) {
	text, err := yaml.Marshal(v)
	return strings.TrimSuffix(string(text), "\n"), err
}

func toJSON(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

func toPrettyJSON(v any) (string, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return string(text), err
}

func toRawJSON(v any) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return strings.TrimSuffix(text.String(), "\n"), err
}

func fromYAML[T any](text string) (T, error) {
	var none T
	inJSON, err := document.ToJSON([]byte(text))
	if err != nil {
		return none, invalidYAML(err)
	}
	return fromJSON[T](string(inJSON))
}

func fromJSON[T any](text string) (T, error) {
	var v T
	if err := document.CheckJSON([]byte(text)); err != nil {
		return v, err
	}
	if err := utiljson.Unmarshal([]byte(text), &v); err != nil {
		var none T
		return none, invalidJSON(err)
	}
	return v, nil
}

func required(message string, v any) (any, error) {
	if v == nil || v == "" {
		return nil, errors.New(message)
	}
	return v, nil
}

// lookups are the functions that make requests, each with a context of its own.
func lookups(begin func() (context.Context, context.CancelFunc)) template.FuncMap {
	return template.FuncMap{
		"lookup":          lookup(begin, false, false),
		"mustLookup":      lookup(begin, false, true),
		"lookupList":      lookupList(begin, false),
		"localLookup":     lookup(begin, true, false),
		"mustLocalLookup": lookup(begin, true, true),
		"localLookupList": lookupList(begin, true),
	}
}

// lookup returns the function that reads one object.
func lookup(begin func() (context.Context, context.CancelFunc), local, must bool) any {
	return func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		ctx, end := begin()
		defer end()
		l := Lookup{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name, Local: local}
		found, err := l.recorded(ctx)
		switch {
		case err != nil:
			return nil, err
		case found == nil && must:
			return nil, generator.NewRetriableError(fmt.Errorf("unable to look up %s: there is none", l), nil)
		case found == nil:
			return map[string]any{}, nil
		}
		return found, nil
	}
}

func lookupList(begin func() (context.Context, context.CancelFunc), local bool) any {
	return func(apiVersion, kind, namespace, selector string) (map[string]any, error) {
		ctx, end := begin()
		defer end()
		l := Lookup{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Selector: selector, Local: local}
		return l.recorded(ctx)
	}
}

// whole returns a number of any type as one without sign.
func whole(v any) (uint64, error) {
	switch r := reflect.ValueOf(v); {
	case r.CanUint():
		return r.Uint(), nil
	case r.CanInt() && r.Int() >= 0:
		return uint64(r.Int()), nil
	case r.CanFloat() && r.Float() >= 0 && r.Float() < 1<<63 && r.Float() == math.Trunc(r.Float()):
		return uint64(r.Float()), nil
	default:
		return 0, errors.New("want a whole number that is not negative")
	}
}

func shift(f func(n, x uint64) uint64) any {
	return func(by, x any) (uint64, error) {
		n, err := whole(by)
		if err != nil {
			return 0, err
		}
		number, err := whole(x)
		if err != nil {
			return 0, err
		}
		return f(n, number), nil
	}
}

func bitwise(result uint64, f func(a, b uint64) uint64) any {
	return func(numbers ...any) (uint64, error) {
		result := result
		for _, v := range numbers {
			number, err := whole(v)
			if err != nil {
				return 0, err
			}
			result = f(result, number)
		}
		return result, nil
	}
}

func parseIPv4Address(text string) (uint32, error) {
	address, err := netip.ParseAddr(text)
	if err != nil || !address.Is4() {
		return 0, errors.New("want an IPv4 address")
	}
	four := address.As4()
	return binary.BigEndian.Uint32(four[:]), nil
}

func formatIPv4Address(v any) (string, error) {
	number, err := whole(v)
	if err != nil || number > math.MaxUint32 {
		return "", errors.New("want a number of 32 bits")
	}
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(number)))).String(), nil
}

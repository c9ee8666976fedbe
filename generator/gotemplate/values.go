package gotemplate

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/espalier-dev/espalier/internal/document"
)

var (
	// unparsed is the error of a text that tpl does not accept. It quotes the text.
	unparsed = regexp.MustCompile(`(?s)error calling ` + functionText + `: .*`)
	// inner is where the text that tpl executes fails. It shows parts of the text.
	inner     = regexp.MustCompile(`(?s)error calling tpl: .*>: `)
	undefined = regexp.MustCompile(`in its text: "[^"]*" is not a defined function`)
	calling   = regexp.MustCompile(`error calling (\w+):\s`)
)

// secretive are the functions whose errors may quote their arguments.
var secretive = sync.OnceValue(func() sets.Set[string] { return sets.KeySet(functionsOfSprig()) })

// maxError is how long the text of an error may be. Templates that include each other make it long.
const maxError = 2048

// WithoutValues returns an error of the execution of a template, without the values that some errors of the template
// engine and of functions show. They could be data of Secrets. The text is the [Original] one. The middle of a
// long text is left out. What the error wraps stays the same.
func WithoutValues(err error) error {
	if err == nil {
		return nil
	}
	text := unparsed.ReplaceAllString(err.Error(), "error calling tpl: the text is not a template")
	text = inner.ReplaceAllString(Original(text), "error calling tpl: in its text: ")
	text = undefined.ReplaceAllString(text, "in its text: a function is not defined")
	for _, match := range calling.FindAllStringSubmatchIndex(text, -1) {
		if secretive().Has(text[match[2]:match[3]]) {
			text = text[:match[3]] + ": it does not accept its arguments"
			break
		}
	}
	const before = "range can't iterate over "
	if at := strings.Index(text, before); at >= 0 {
		text = text[:at+len(before)] + "a value"
	}
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError/2]+" ... "+text[len(text)-maxError/2:], "")
	}
	if text == err.Error() {
		return err
	}
	return &withoutValues{text: text, err: err}
}

type withoutValues struct {
	text string
	err  error
}

func (e *withoutValues) Error() string { return e.text }

func (e *withoutValues) Unwrap() error { return e.err }

var (
	errYAML = errors.New("it is not valid YAML")
	errJSON = errors.New("it is not valid JSON")

	yamlLine = regexp.MustCompile(`\bline (\d+)`)
)

// invalidYAML returns an error of a parser without parts of the text.
func invalidYAML(err error) error {
	if errors.Is(err, document.ErrTooLarge) {
		return err
	}
	if match := yamlLine.FindStringSubmatch(err.Error()); match != nil {
		return fmt.Errorf("line %s: %w", match[1], errYAML)
	}
	return errYAML
}

func invalidJSON(err error) error {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && !strings.HasPrefix(mismatch.Value, "number ") {
		return fmt.Errorf("it has a value of another type: %s", mismatch.Value)
	}
	return errJSON
}

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/espalier-dev/espalier/internal/message"
)

// printable leaves out of what is written what could act on a terminal, as [message.Printable] does. Some texts are of
// others: errors of API servers and services, names in Leases, content of objects.
type printable struct {
	io.Writer
	// rest is the beginning of a character that the next call goes on with.
	rest []byte
}

func (p *printable) Write(text []byte) (int, error) {
	all := append(p.rest, text...)
	end := len(all)
	for start := max(0, end-utf8.UTFMax+1); start < len(all); start++ {
		if utf8.RuneStart(all[start]) && !utf8.FullRune(all[start:]) {
			end = start
		}
	}
	p.rest = slices.Clone(all[end:])
	_, err := io.WriteString(p.Writer, message.Printable(string(all[:end])))
	return len(text), err
}

// raw returns the writer for what is data for programs, or made for a terminal.
func raw(out io.Writer) io.Writer {
	if p, ok := out.(*printable); ok {
		return p.Writer
	}
	return out
}

// output is the flag -o.
type output string

const (
	outputTable output = "table"
	outputWide  output = "wide"
	outputJSON  output = "json"
	outputYAML  output = "yaml"
	outputName  output = "name"
)

var outputs = []string{
	string(outputTable), string(outputWide), string(outputJSON), string(outputYAML), string(outputName),
}

func (o *output) addFlag(c *cobra.Command) {
	c.Flags().StringVarP((*string)(o), "output", "o", "", "one of "+strings.Join(outputs, ", ")+" (default table)")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp))
}

func (o output) check() error {
	if o != "" && !slices.Contains(outputs, string(o)) {
		return fmt.Errorf("-o is %q, and must be one of %s", o, strings.Join(outputs, ", "))
	}
	return nil
}

// isTable reports whether a table is printed.
func (o output) isTable() bool { return o == "" || o == outputTable || o == outputWide }

// print prints an object in another form than a table.
func (o output) print(out io.Writer, object runtime.Object) error {
	shown, err := shownAs(object)
	if err != nil {
		return err
	}
	out = raw(out)
	switch o {
	case outputJSON:
		return (&printers.JSONPrinter{}).PrintObj(shown, out)
	case outputName:
		return (&printers.NamePrinter{}).PrintObj(shown, out)
	}
	return (&printers.YAMLPrinter{}).PrintObj(shown, out)
}

// printAll prints objects in another form than a table, as a list.
func (o output) printAll(out io.Writer, objects []runtime.Object) error {
	if o == outputName {
		for _, object := range objects {
			if err := o.print(out, object); err != nil {
				return err
			}
		}
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind("List")
	for _, object := range objects {
		shown, err := shownAs(object)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, *shown)
	}
	if o == outputJSON {
		return (&printers.JSONPrinter{}).PrintObj(list, raw(out))
	}
	return (&printers.YAMLPrinter{}).PrintObj(list, raw(out))
}

// shownAs returns an object as it is printed: without its managed fields.
func shownAs(object runtime.Object) (*unstructured.Unstructured, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	shown := &unstructured.Unstructured{}
	if err := shown.UnmarshalJSON(encoded); err != nil {
		return nil, err
	}
	shown.SetManagedFields(nil)
	return shown, nil
}

// printTable prints a table. Columns with a priority are for wide.
func (o output) printTable(out io.Writer, columns []metav1.TableColumnDefinition, rows [][]any) error {
	table := &metav1.Table{ColumnDefinitions: columns}
	for _, cells := range rows {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	return printers.NewTablePrinter(printers.PrintOptions{Wide: o == outputWide}).PrintObj(table, out)
}

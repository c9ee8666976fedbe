package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
)

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
		return (&printers.JSONPrinter{}).PrintObj(list, out)
	}
	return (&printers.YAMLPrinter{}).PrintObj(list, out)
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

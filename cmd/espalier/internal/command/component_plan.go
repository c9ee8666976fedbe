package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/release"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/message"
)

type planOptions struct {
	*componentOptions
	sourceOptions
}

func newComponentPlan(shared *componentOptions) *cobra.Command {
	o := &planOptions{componentOptions: shared}
	c := &cobra.Command{
		Use:   "plan NAME SOURCE...",
		Short: "Say what apply would do, wave by wave",
		Long: `Say what apply would do, wave by wave, as if each wave became ready. Nothing is
changed. Sources are those of apply.`,
		Example: "  espalier component plan shop ./manifests -n shops",
		Args:    atLeast(2, "NAME and SOURCE are"),
		RunE: func(c *cobra.Command, args []string) error {
			made, _, err := o.plan(c, args, false)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(c.OutOrStdout(), made)
			return err
		},
	}
	o.addFlags(c)
	return c
}

func newComponentDiff(shared *componentOptions) *cobra.Command {
	o := &planOptions{componentOptions: shared}
	c := &cobra.Command{
		Use:   "diff NAME SOURCE...",
		Short: "Show what apply would change in each object",
		Long: `Show what apply would change in each object: the API server tries each write without an
effect. Sources are those of apply. Values of Secrets are not shown.

The exit code is 0 if nothing would be changed, 1 if something would be, and 2 after
an error.`,
		Example: "  espalier component diff shop ./manifests -n shops",
		Args: func(c *cobra.Command, args []string) error {
			if err := atLeast(2, "NAME and SOURCE are")(c, args); err != nil {
				return &exitError{exitDiffFailed, err}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			made, planned, err := o.plan(c, args, true)
			if err != nil {
				return &exitError{exitDiffFailed, err}
			}
			for _, obstacle := range made.Obstacles {
				fmt.Fprintln(c.ErrOrStderr(), "espalier:", obstacle)
			}
			return printDiffs(c.OutOrStdout(), planned, newDisplay(c.OutOrStdout(), os.Getenv).colour)
		},
	}
	o.addFlags(c)
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{exitDiffFailed, err} })
	return c
}

// plan makes the plan of an apply.
func (o *planOptions) plan(c *cobra.Command, args []string, trials bool) (*component.Plan, []release.Planned, error) {
	prepared, err := o.prepare(c, o.componentOptions, args)
	if err != nil {
		return nil, nil, err
	}
	return prepared.run.Plan(c.Context(), prepared.stored, trials)
}

// printDiffs prints the differences of objects. The error has the exit code.
func printDiffs(out io.Writer, planned []release.Planned, colour bool) error {
	differs := false
	var failed []string
	for i := range planned {
		p := &planned[i]
		if p.Err != nil {
			failed = append(failed, p.Object+": "+strings.Join(strings.Fields(p.Err.Error()), " "))
			continue
		}
		text := diffOf(p)
		if text == "" {
			continue
		}
		differs = true
		if text = message.Printable(text); colour {
			text = colouredDiff(text)
		}
		if _, err := io.WriteString(raw(out), text); err != nil {
			return &exitError{exitDiffFailed, err}
		}
	}
	switch {
	case len(failed) > 0:
		return &exitError{exitDiffFailed, fmt.Errorf("the API server refuses %s", strings.Join(failed, "; "))}
	case differs:
		return &exitError{code: exitDiffers}
	}
	return nil
}

// diffOf returns the difference that a change makes, empty for none.
func diffOf(p *release.Planned) string {
	stays := p.After == nil && !slices.Contains([]string{"delete", "purge"}, p.Action)
	if stays && p.Action != "create" {
		// The API server cannot try it.
		return fmt.Sprintf("%s %s: %s\n", p.Action, p.Object, p.Reason)
	}
	before, after := shownObjects(p.Before, p.After)
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: linesOf(before), B: linesOf(after), Context: 3,
		FromFile: "live " + p.Object, ToFile: p.Action + " " + p.Object,
	})
	if err != nil || text == "" && p.Action == "create" {
		return fmt.Sprintf("%s %s: %s\n", p.Action, p.Object, p.Reason)
	}
	return text
}

func linesOf(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	return lines[:len(lines)-1]
}

// shownObjects returns two objects in YAML, without what each write changes, and without values of Secrets.
func shownObjects(before, after *unstructured.Unstructured) (string, string) {
	before, after = before.DeepCopy(), after.DeepCopy()
	if isSecret(before) || isSecret(after) {
		for _, field := range []string{"data", "stringData"} {
			mask(before, after, field)
		}
		for _, object := range []*unstructured.Unstructured{before, after} {
			hideApplied(object)
		}
	}
	return yamlOf(before), yamlOf(after)
}

// hideApplied replaces what kubectl has kept of a Secret in an annotation: all of it.
func hideApplied(object *unstructured.Unstructured) {
	if object == nil {
		return
	}
	annotations := object.GetAnnotations()
	if _, found := annotations[corev1.LastAppliedConfigAnnotation]; found {
		annotations[corev1.LastAppliedConfigAnnotation] = "***"
		object.SetAnnotations(annotations)
	}
}

func isSecret(object *unstructured.Unstructured) bool {
	return object != nil && object.GetKind() == "Secret" && object.GroupVersionKind().Group == ""
}

// mask replaces the values of a field by texts that say whether they are the same.
func mask(before, after *unstructured.Unstructured, field string) {
	valuesOf := func(of *unstructured.Unstructured) map[string]any {
		if of == nil {
			return nil
		}
		values, _ := of.Object[field].(map[string]any)
		return values
	}
	was, is := valuesOf(before), valuesOf(after)
	for key, value := range was {
		other, stays := is[key]
		if was[key] = "***"; stays && other != value {
			was[key], is[key] = "*** (before)", "*** (after)"
		} else if stays {
			is[key] = "***"
		}
	}
	for key, value := range is {
		if text, _ := value.(string); !strings.HasPrefix(text, "***") || was[key] == nil {
			is[key] = "***"
		}
	}
}

// yamlOf returns an object in YAML; empty for none.
func yamlOf(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	object.SetManagedFields(nil)
	for _, field := range []string{"resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	object.SetAnnotations(withoutMarks(object.GetAnnotations()))
	object.SetLabels(withoutMarks(object.GetLabels()))
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func withoutMarks(of map[string]string) map[string]string {
	for key := range of {
		if strings.HasPrefix(key, release.Prefix+"/") {
			delete(of, key)
		}
	}
	if len(of) == 0 {
		return nil
	}
	return of
}

func colouredDiff(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "+"):
			lines[i] = "\x1b[32m" + line + "\x1b[0m"
		case strings.HasPrefix(line, "-"):
			lines[i] = "\x1b[31m" + line + "\x1b[0m"
		}
	}
	return strings.Join(lines, "")
}

// dryRun is the flag --dry-run.
type dryRun string

const (
	dryRunNone   dryRun = "none"
	dryRunClient dryRun = "client"
	dryRunServer dryRun = "server"
)

var dryRuns = []string{string(dryRunNone), string(dryRunClient), string(dryRunServer)}

func (d *dryRun) addFlag(c *cobra.Command) {
	const usage = "none, client: say what would be done, or server: have the API server try it as well"
	c.Flags().StringVar((*string)(d), "dry-run", string(dryRunNone), usage)
	c.Flags().Lookup("dry-run").NoOptDefVal = string(dryRunClient)
	_ = c.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(dryRuns, cobra.ShellCompDirectiveNoFileComp))
}

func (d dryRun) check() error {
	if !slices.Contains(dryRuns, string(d)) {
		return fmt.Errorf("--dry-run is %q, and must be one of %s", d, strings.Join(dryRuns, ", "))
	}
	return nil
}

// print says what would be done. With another output than a table, it prints the objects.
func (d dryRun) print(
	ctx context.Context, c *cobra.Command, form output, run *release.Run, stored *release.Release,
	rendered []*unstructured.Unstructured,
) error {
	made, planned, err := run.Plan(ctx, stored, d == dryRunServer)
	if err != nil {
		return err
	}
	for _, obstacle := range made.Obstacles {
		fmt.Fprintln(c.ErrOrStderr(), "espalier:", obstacle)
	}
	var objects []runtime.Object
	var failed []string
	for i := range planned {
		p := &planned[i]
		if p.Err != nil {
			failed = append(failed, p.Object+": "+strings.Join(strings.Fields(p.Err.Error()), " "))
		}
		if form.isTable() {
			fmt.Fprintf(c.OutOrStdout(), "%s %s (%s dry run)\n", p.Action, p.Object, d)
		} else if p.After != nil {
			objects = append(objects, p.After)
		}
	}
	if d == dryRunClient {
		for _, object := range rendered {
			objects = append(objects, object)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("the API server refuses %s", strings.Join(failed, "; "))
	}
	if form.isTable() {
		return nil
	}
	return form.printAll(c.OutOrStdout(), objects)
}

// matcherOf returns whether objects have the labels that a selector asks for.
func matcherOf(selector string) (func(metav1.Object) bool, error) {
	matches, err := labels.Parse(selector)
	if err != nil {
		return nil, fmt.Errorf("-l is %q: %w", selector, err)
	}
	return func(object metav1.Object) bool { return matches.Matches(labels.Set(object.GetLabels())) }, nil
}

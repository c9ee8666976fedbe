package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/release"
	"github.com/espalier-dev/espalier/component"
)

func newComponentList(o *componentOptions) *cobra.Command {
	var form output
	everywhere := false
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List components, and how far each is",
		Long: `List the components of a namespace, or of all: those that apply has deployed, and the
resources of operators. A kind counts if the status in its definition has the
inventory of a component.

What apply has deployed is looked at in the cluster, with one request for each kind
and namespace of a component. Operators themselves say how their components are.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := form.check(); err != nil {
				return err
			}
			cluster, namespace, err := o.connect(c.Context())
			if err != nil {
				return err
			}
			if everywhere {
				namespace = ""
			}
			found, unseen, err := cluster.Find(c.Context(), namespace)
			if err != nil {
				return err
			}
			now := time.Now()
			for i := range found {
				err := cluster.Look(c.Context(), &found[i], now)
				if c.Context().Err() != nil {
					return context.Cause(c.Context())
				}
				if err != nil {
					unseen = append(unseen, asStored(&found[i], err, now))
				}
			}
			for _, err := range unseen {
				fmt.Fprintln(c.ErrOrStderr(), "espalier:", err)
			}
			return printComponents(c.OutOrStdout(), form, found, now)
		},
	}
	c.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "list those of all namespaces")
	form.addFlag(c)
	return c
}

var componentColumns = []metav1.TableColumnDefinition{
	{Name: "Namespace", Type: "string"}, {Name: "Kind", Type: "string"}, {Name: "Name", Type: "string"},
	{Name: "State", Type: "string"}, {Name: "Ready", Type: "string"}, {Name: "Wave", Type: "string"},
	{Name: "Age", Type: "string"},
	{Name: "Revision", Type: "string", Priority: 1}, {Name: "Operator", Type: "string", Priority: 1},
	{Name: "Reason", Type: "string", Priority: 1}, {Name: "Message", Type: "string", Priority: 1},
}

func printComponents(out io.Writer, form output, found []release.Component, now time.Time) error {
	if !form.isTable() {
		objects := make([]runtime.Object, len(found))
		for i := range found {
			objects[i] = found[i].Object
		}
		return form.printAll(out, objects)
	}
	rows := make([][]any, len(found))
	for i := range found {
		of := &found[i]
		done, waves := 0, wavesOf(of.Status.Inventory)
		for i := range of.Status.Inventory {
			if of.Status.Inventory[i].IsDone() {
				done++
			}
		}
		wave := "-"
		progress := component.Progress{State: of.Status.State, Inventory: of.Status.Inventory}
		if order, isUnderWay := progress.Wave(); isUnderWay && of.Status.State != apis.ComponentDeleting {
			wave = fmt.Sprintf("%d/%d", slices.Index(waves, order)+1, len(waves))
		}
		reason, message := of.Condition()
		operator := of.Operator
		if of.Kind == release.Kind {
			operator = "-"
		}
		rows[i] = []any{
			of.Object.GetNamespace(), of.Kind.Kind, of.Object.GetName(), stateOf(of),
			fmt.Sprintf("%d/%d", done, len(of.Status.Inventory)), wave, ageOf(of.Object, now),
			of.Status.Revision, operator, reason, message,
		}
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(out, "No components found.")
		return err
	}
	return form.printTable(out, componentColumns, rows)
}

func stateOf(of *release.Component) string {
	switch {
	case of.Err != nil:
		return "Unknown"
	case of.Status.State == "":
		return string(apis.ComponentPending)
	}
	return string(of.Status.State)
}

func ageOf(object client.Object, now time.Time) string {
	created := object.GetCreationTimestamp()
	if created.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(created.Time))
}

// wavesOf returns the orders in which objects are applied.
func wavesOf(records []apis.InventoryRecord) []int16 {
	var waves []int16
	for i := range records {
		waves = append(waves, records[i].ApplyOrder)
	}
	slices.Sort(waves)
	return slices.Compact(waves)
}

func newComponentStatus(o *componentOptions) *cobra.Command {
	var form output
	c := &cobra.Command{
		Use:   "status NAME|KIND/NAME",
		Short: "Show how a component is, and what it waits for",
		Long: `Show how a component is, what it waits for, and its objects, wave by wave.

The objects of a component without an operator are looked at in the cluster, as plan
does. If they cannot be, the error says from when it is what is shown. An operator
itself says how its component is.

The exit code is 0 if it is ready, 1 if it has failed, 2 if it is not ready, and 3
if it is blocked.`,
		Example: `  espalier component status shop -n shops
  espalier component status platform/demo -o yaml`,
		Args: exactly(1, "one NAME or KIND/NAME is"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := form.check(); err != nil {
				return err
			}
			cluster, namespace, err := o.connect(c.Context())
			if err != nil {
				return err
			}
			found, err := find(c, cluster, namespace, args[0])
			if err != nil {
				return err
			}
			now := time.Now()
			unseen := cluster.Look(c.Context(), found, now)
			if unseen != nil {
				unseen = asStored(found, unseen, now)
			}
			if !form.isTable() {
				err = form.print(c.OutOrStdout(), found.Object)
			} else {
				err = printStatus(c.OutOrStdout(), found, now)
			}
			if code := exitOf(found); errors.Join(err, unseen) == nil && code != 0 {
				err = &exitError{code: code}
			}
			return errors.Join(err, unseen)
		},
	}
	form.addFlag(c)
	return c
}

// asStored returns the error for a component that is shown as it was stored, since it cannot be looked at.
func asStored(of *release.Component, err error, now time.Time) error {
	const why = "the component %s is shown as it was%s, and not as it is: %w"
	return fmt.Errorf(why, client.ObjectKeyFromObject(of.Object), since(of, now), err)
}

// since says from when it is what is stored about a component; nothing if that is not known.
func since(of *release.Component, now time.Time) string {
	if of.Status.LastObservedAt == nil {
		return ""
	}
	return " " + duration.HumanDuration(now.Sub(of.Status.LastObservedAt.Time)) + " ago"
}

// find returns the component of a target.
func find(c *cobra.Command, cluster *release.Cluster, namespace, target string) (*release.Component, error) {
	kind, name, found := strings.Cut(target, "/")
	if !found {
		return cluster.Release(c.Context(), namespace, target)
	}
	gvk, err := kindOf(cluster, kind)
	if err != nil {
		return nil, err
	}
	return cluster.Resource(c.Context(), gvk, client.ObjectKey{Namespace: namespace, Name: name})
}

func exitOf(of *release.Component) int {
	reason, _ := of.Condition()
	switch {
	case of.Err != nil:
		return exitFailed
	case of.Status.State == apis.ComponentReady:
		return 0
	case reason == component.ReasonDeletionBlocked, reason == component.ReasonContested:
		return exitBlocked
	case of.Status.State == apis.ComponentError:
		return exitFailed
	}
	return exitNotReady
}

// printStatus prints how a component is, and its objects.
func printStatus(out io.Writer, of *release.Component, now time.Time) error {
	var b strings.Builder
	reason, message := of.Condition()
	key := client.ObjectKeyFromObject(of.Object).String()
	fmt.Fprintf(&b, "%s %s is %s\n", of.Kind.Kind, strings.TrimPrefix(key, "/"), stateOf(of))
	if reason != "" {
		fmt.Fprintf(&b, "%s: %s\n", reason, message)
	}
	if r, ok := of.Object.(*release.Release); ok {
		if of.Status.State != apis.ComponentReady && of.Status.LastObservedAt != nil {
			fmt.Fprintf(&b, "that is how the last command left it%s\n", since(of, now))
		}
		fmt.Fprintf(&b, "revision %d of %s\n", r.Spec.Revision, strings.Join(r.Spec.Sources, ", "))
	} else if of.Operator != "" {
		fmt.Fprintf(&b, "kept by the operator %q, which found it so%s\n", of.Operator, since(of, now))
	}
	if of.Status.InventoryKind != "" {
		fmt.Fprintf(&b, "the inventory is in objects of the kind %s\n", of.Status.InventoryKind)
	}
	for _, wave := range wavesOf(of.Status.Inventory) {
		fmt.Fprintf(&b, "wave %d\n", wave)
		var lines []string
		for i := range of.Status.Inventory {
			if r := &of.Status.Inventory[i]; r.ApplyOrder == wave {
				lines = append(lines, recordLine(r))
			}
		}
		slices.Sort(lines)
		for i, line := range lines {
			branch := "├─ "
			if i == len(lines)-1 {
				branch = "└─ "
			}
			b.WriteString(branch + line + "\n")
		}
	}
	_, err := io.WriteString(out, b.String())
	return errors.Join(err, of.Err)
}

func recordLine(r *apis.InventoryRecord) string {
	name := strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
	line := fmt.Sprintf("%s %s  %s", r.Kind, name, r.Phase)
	if r.Status != "" && r.Status != apis.ObjectCurrent {
		line += " " + string(r.Status)
	}
	if r.Adopted {
		line += " (adopted)"
	}
	if r.Message != "" {
		line += ": " + r.Message
	}
	return line
}

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"
)

type treeOptions struct {
	reachOptions
	operator string
	output   output
}

func newTree() *cobra.Command {
	o := &treeOptions{reachOptions: newReachOptions()}
	c := &cobra.Command{
		Use:   "tree KIND/NAME --operator TARGET",
		Short: "Show what each node of an operator did last for a resource",
		Long: `Show what each node of an operator did last for a resource, why it waits, and how its
components are: what the live page of the operator shows.

TARGET is the operator, as for the command page: deployment/NAME, statefulset/NAME,
pod/NAME, or the URL of its page. -n is the namespace of the resource.`,
		Example: `  espalier tree shop/corner -n shops \
    --operator deployment/shop-operator --operator-namespace shop-system`,
		Args: exactly(1, "one KIND/NAME is"),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0], c.OutOrStdout()) },
	}
	o.addFlags(c)
	c.Flags().StringVar(&o.operator, "operator", "",
		"the operator: deployment/NAME, statefulset/NAME, pod/NAME or a URL")
	c.Flags().StringVar(&o.namespace, "operator-namespace", "",
		"the namespace of the operator (default that of the resource)")
	o.output.addFlag(c)
	return c
}

func (o *treeOptions) run(ctx context.Context, target string, out io.Writer) error {
	kind, name, found := strings.Cut(target, "/")
	switch {
	case !found || kind == "" || name == "":
		return fmt.Errorf("%q is no resource: it is as KIND/NAME", target)
	case o.operator == "":
		return errors.New("--operator is needed: deployment/NAME, statefulset/NAME, pod/NAME or the URL of the page")
	}
	if err := o.output.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	namespace, _, err := o.cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	page, transport, _, err := o.connect(ctx, o.operator)
	if err != nil {
		return err
	}
	dumped, err := readDump(ctx, page, transport, url.Values{
		"kind": {kind}, "namespace": {namespace}, "name": {name},
	})
	if err != nil {
		return err
	}
	shown := 0
	for i := range dumped.Roots {
		for _, resource := range dumped.Roots[i].List {
			shown++
			if err := o.print(out, &dumped.Roots[i], resource, dumped.At); err != nil {
				return err
			}
		}
	}
	if shown == 0 {
		return fmt.Errorf("the operator at %s knows no %s %s/%s", o.operator, kind, namespace, name)
	}
	return nil
}

// maxDump is how much of a dump is read.
const maxDump = 16 << 20

// dump is the part of the dump of a page that is shown.
type dump struct {
	At    time.Time    `json:"at"`
	Roots []dumpedRoot `json:"roots"`
}

type dumpedRoot struct {
	ID    string       `json:"id"`
	Kind  string       `json:"kind"`
	Nodes []dumpedNode `json:"nodes"`
	List  []any        `json:"list"`
}

type dumpedNode struct {
	Path  string        `json:"path"`
	Kind  string        `json:"kind"`
	State string        `json:"state"`
	Took  time.Duration `json:"tookNanoseconds"`
	Since time.Time     `json:"since"`
	Error string        `json:"error"`
}

type dumpedResource struct {
	Name       string             `json:"name"`
	State      string             `json:"state"`
	Requests   uint64             `json:"requests"`
	Deleted    *time.Time         `json:"deleted"`
	Finalizers []string           `json:"finalizers"`
	Conditions []metav1.Condition `json:"conditions"`
	Nodes      []dumpedNode       `json:"nodes"`
	Components []struct {
		Path      string                                   `json:"path"`
		State     string                                   `json:"state"`
		Reason    string                                   `json:"reason"`
		Message   string                                   `json:"message"`
		Objects   int                                      `json:"objects"`
		Obstacles []struct{ Object, Kind, Message string } `json:"obstacles"`
	} `json:"components"`
}

// readDump reads the dump of a page about one resource.
func readDump(ctx context.Context, page *url.URL, transport http.RoundTripper, of url.Values) (*dump, error) {
	ctx, cancel := context.WithTimeout(ctx, maxAnswerTime)
	defer cancel()
	at := page.JoinPath("dump")
	at.RawQuery = of.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("the operator does not answer: %w", err)
	}
	defer response.Body.Close()
	if err := refusalOf(at, response); err != nil {
		return nil, err
	}
	read := &dump{}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxDump)).Decode(read); err != nil {
		return nil, fmt.Errorf("the answer of the operator cannot be read: %w", err)
	}
	return read, nil
}

// print prints what is known of a resource.
func (o *treeOptions) print(out io.Writer, root *dumpedRoot, content any, now time.Time) error {
	encoded, err := json.MarshalIndent(content, "", "    ")
	if err != nil {
		return err
	}
	switch o.output {
	case outputJSON:
		_, err := fmt.Fprintf(raw(out), "%s\n", encoded)
		return err
	case outputYAML:
		text, err := yaml.JSONToYAML(encoded)
		if err != nil {
			return err
		}
		_, err = raw(out).Write(text)
		return err
	}
	var resource dumpedResource
	if err := json.Unmarshal(encoded, &resource); err != nil {
		return fmt.Errorf("the answer of the operator cannot be read: %w", err)
	}
	if o.output == outputName {
		_, err := fmt.Fprintf(out, "%s/%s\n", strings.ToLower(root.Kind), resource.Name)
		return err
	}
	_, err = io.WriteString(out, treeText(root, &resource, now, o.output == outputWide))
	return err
}

// treeText shows a resource: its conditions that are not True, its nodes, and its components.
func treeText(root *dumpedRoot, r *dumpedResource, now time.Time, wide bool) string {
	var b strings.Builder
	if r.State == "" {
		return fmt.Sprintf("%s %s: you may not see it\n", root.Kind, r.Name)
	}
	fmt.Fprintf(&b, "%s %s: %s after %d requests\n", root.Kind, r.Name, r.State, r.Requests)
	if r.Deleted != nil {
		fmt.Fprintf(&b, "being deleted since %s\n", duration.HumanDuration(now.Sub(*r.Deleted)))
	}
	if len(r.Finalizers) > 0 {
		fmt.Fprintf(&b, "finalizers: %s\n", strings.Join(r.Finalizers, ", "))
	}
	for i := range r.Conditions {
		if c := &r.Conditions[i]; c.Status != metav1.ConditionTrue || wide {
			fmt.Fprintf(&b, "%s=%s %s %s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	ran := map[string]*dumpedNode{}
	for i := range r.Nodes {
		ran[r.Nodes[i].Path+" "+r.Nodes[i].Kind] = &r.Nodes[i]
	}
	writeNodes(&b, root.Nodes, "", func(n *dumpedNode) string {
		_, name, nested := cutLast(n.Path, "/")
		line := n.Kind
		if nested && name != n.Kind {
			line += fmt.Sprintf(" %q", name)
		}
		last := ran[n.Path+" "+n.Kind]
		if last == nil {
			return line + "  not run"
		}
		line += "  " + last.State
		if !last.Since.IsZero() {
			line += " since " + duration.HumanDuration(now.Sub(last.Since))
		}
		if wide {
			line += " took " + last.Took.Round(time.Microsecond).String()
		}
		if last.Error != "" {
			line += ": " + strings.Join(strings.Fields(last.Error), " ")
		}
		return line
	})
	for i := range r.Components {
		c := &r.Components[i]
		fmt.Fprintf(&b, "component %s: %s %s, %d objects. %s\n", c.Path, c.State, c.Reason, c.Objects, c.Message)
		for _, obstacle := range c.Obstacles {
			fmt.Fprintf(&b, "  %s %s: %s\n", obstacle.Kind, obstacle.Object, obstacle.Message)
		}
	}
	return b.String()
}

// cutLast cuts a text around the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return "", text, false
}

// writeNodes writes nodes that are in the order of a tree, whose paths say which are below which.
func writeNodes(b *strings.Builder, nodes []dumpedNode, indent string, line func(*dumpedNode) string) {
	for i := 0; i < len(nodes); {
		end := i + 1
		for end < len(nodes) && strings.HasPrefix(nodes[end].Path, nodes[i].Path+"/") {
			end++
		}
		branch, below := "├─ ", "│  "
		if end == len(nodes) {
			branch, below = "└─ ", "   "
		}
		b.WriteString(indent + branch + line(&nodes[i]) + "\n")
		writeNodes(b, nodes[i+1:end], indent+below, line)
		i = end
	}
}

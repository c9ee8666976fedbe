// Package plugintest tests plugins: it runs one table in the process and as a program.
//
//	var plugin = plugins.Plugin{Category: "database", Types: ...}
//
//	func TestMain(m *testing.M) { os.Exit(plugintest.Main(m, plugin)) }
//
//	func TestPlugin(t *testing.T) {
//		plugintest.Rows{
//			"a database": {
//				Owner: &v1.Shop{...},
//				Want:  []*plugins.Dependent{plugins.Owns("server", server)},
//			},
//		}.Run(t, plugin)
//	}
package plugintest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/plugins/internal/answer"
	"github.com/espalier-dev/espalier/plugins/internal/process"
	"github.com/espalier-dev/espalier/plugins/internal/program"
	"github.com/espalier-dev/espalier/plugins/internal/protocol"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// programEnvironment has a test binary serve its plugin.
const programEnvironment = "ESPALIER_PLUGINTEST"

// Main runs the tests of a package, and returns the exit code. If the test binary was started as a program by
// [Rows.Run], it serves the plugin, and does not return; m is a *testing.M.
func Main(m interface{ Run() int }, plugin plugins.Plugin) int {
	if os.Getenv(programEnvironment) != "" {
		plugins.Serve(plugin)
	}
	return m.Run()
}

// Rows are rows of a table by their names.
type Rows map[string]Row

// Row is what a plugin is asked, and what it has to answer.
type Row struct {
	// Owner is the object that asks. Its kind is in it, or in the scheme of the plugin, or in that of client-go.
	Owner client.Object
	// Type and Version are what is asked for. Default: the first type of the plugin, in any version.
	Type, Version string
	// Values are what the objects of earlier answers have yielded.
	Values map[string]string

	// Want are the dependents.
	Want []*plugins.Dependent
	// WantProblem is a part of the text that says why there are none: a reason, a colon and a message for the error of
	// [espalier.NotReady], messages with commas between them for [plugins.Invalid], or the text of another error.
	WantProblem string
}

// Run runs each row twice in the process, and twice as a program. It fails if the answer is not the one that is wanted,
// if an answer is another one than that before, or if a host would refuse it. [Main] has to run the tests.
func (r Rows) Run(t *testing.T, plugin plugins.Plugin) {
	t.Helper()
	local, err := localServer(plugin)
	if err != nil {
		t.Fatal(err)
	}
	remote := startProgram(t)
	asProgram := func(
		ctx context.Context, request *protocol.DependentsRequest,
	) (*protocol.DependentsResponse, error) {
		return remote.Dependents(ctx, request)
	}
	r.run(t, plugin, local.Dependents, []again{
		{"when it is asked again", local.Dependents},
		{"as a program", asProgram},
		{"as a program, asked again", asProgram},
	})
}

// ask asks a plugin.
type ask func(context.Context, *protocol.DependentsRequest) (*protocol.DependentsResponse, error)

// again asks a plugin that was asked before, and says where.
type again struct {
	where string
	ask
}

func (r Rows) run(t *testing.T, plugin plugins.Plugin, first ask, then []again) {
	t.Helper()
	for name, row := range r {
		t.Run(name, func(t *testing.T) { row.run(t, plugin, first, then) })
	}
}

// callTime is how long a call may take.
const callTime = 30 * time.Second

func (row Row) run(t *testing.T, plugin plugins.Plugin, first ask, then []again) {
	t.Helper()
	request, err := row.request(plugin)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), callTime)
	defer cancel()
	answered := answerOf(first(ctx, request))
	for _, again := range then {
		if diff := cmp.Diff(answered, answerOf(again.ask(ctx, request))); diff != "" {
			t.Errorf("the plugin gives another answer %s (- first, + then):\n%s", again.where, diff)
		}
	}
	row.check(t, plugin, answered, request.GetOwner().GetNamespace())
}

// check compares an answer with what is wanted.
func (row Row) check(t *testing.T, plugin plugins.Plugin, got given, namespace string) {
	t.Helper()
	if got.Problem != "" || row.WantProblem != "" {
		if row.WantProblem == "" || !strings.Contains(got.Problem, row.WantProblem) {
			t.Errorf("the plugin says %q, want %q", got.Problem, row.WantProblem)
		}
		return
	}
	wanted, err := localServer(plugins.Plugin{
		Category: plugin.Category, Scheme: plugin.Scheme, Types: []plugins.Type{{
			Name: plugin.Types[0].Name,
			Dependents: func(context.Context, plugins.Request) ([]*plugins.Dependent, error) {
				return row.Want, nil
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := answerOf(wanted.Dependents(t.Context(), &protocol.DependentsRequest{Type: plugin.Types[0].Name}))
	if diff := cmp.Diff(want.Dependents, got.Dependents); diff != "" {
		t.Errorf("the plugin gives other dependents (- want, + got):\n%s", diff)
	}
	if want.DropsAll != got.DropsAll {
		t.Errorf("that the plugin drops all dependents is %v, want %v", got.DropsAll, want.DropsAll)
	}
	if want.Problem != "" {
		t.Errorf("the wanted dependents are not valid: %s", want.Problem)
	}
	if _, err := answer.Check(got.messages, rulesFor(got.messages, namespace)); err != nil {
		t.Errorf("a host refuses the answer: %s", err)
	}
}

// maxDependents is the default of a host.
const maxDependents = 100

// rulesFor returns rules that allow the kinds of an answer: the operator decides which ones it allows.
func rulesFor(dependents []*protocol.Dependent, namespace string) answer.Rules {
	rules := answer.Rules{Namespace: namespace, MaxDependents: maxDependents}
	for _, d := range dependents {
		kind := schema.FromAPIVersionAndKind(d.GetApiVersion(), d.GetKind())
		rules.Creates, rules.Reads = append(rules.Creates, kind), append(rules.Reads, kind)
	}
	return rules
}

// request returns what the plugin is asked.
func (row Row) request(plugin plugins.Plugin) (*protocol.DependentsRequest, error) {
	request := &protocol.DependentsRequest{Type: row.Type, Version: row.Version, Values: row.Values}
	if request.Type == "" {
		request.Type = plugin.Types[0].Name
	}
	if row.Owner == nil {
		return nil, fmt.Errorf("a row must have an Owner")
	}
	kind := row.Owner.GetObjectKind().GroupVersionKind()
	for _, scheme := range []*runtime.Scheme{plugin.Scheme, clientgoscheme.Scheme} {
		if !kind.Empty() || scheme == nil {
			continue
		}
		if found, err := apiutil.GVKForObject(row.Owner, scheme); err == nil {
			kind = found
		}
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(row.Owner.DeepCopyObject())
	if err != nil {
		return nil, fmt.Errorf("the owner must be an object: %w", err)
	}
	request.Owner = &protocol.Owner{Namespace: row.Owner.GetNamespace(), Name: row.Owner.GetName()}
	request.Owner.ApiVersion, request.Owner.Kind = kind.ToAPIVersionAndKind()
	if spec, has := fields["spec"]; has {
		if request.Owner.Spec, err = json.Marshal(spec); err != nil {
			return nil, fmt.Errorf("the spec of the owner must be JSON: %w", err)
		}
	}
	return request, nil
}

// given is an answer as it is compared.
type given struct {
	Dependents []dependent
	DropsAll   bool
	Problem    string
	messages   []*protocol.Dependent
}

// Equal reports whether two answers are the same.
func (g given) Equal(other given) bool {
	return g.Problem == other.Problem && g.DropsAll == other.DropsAll && cmp.Equal(g.Dependents, other.Dependents)
}

// dependent is a dependent as it is compared: its object, and the text of all else.
type dependent struct {
	Words  string
	Object any
}

// answerOf returns an answer as it is compared.
func answerOf(response *protocol.DependentsResponse, err error) given {
	if err != nil {
		return given{Problem: status.Convert(err).Message()}
	}
	switch outcome := response.GetOutcome().(type) {
	case *protocol.DependentsResponse_NotReady:
		return given{Problem: outcome.NotReady.GetReason() + ": " + outcome.NotReady.GetMessage()}
	case *protocol.DependentsResponse_Invalid:
		return given{Problem: strings.Join(outcome.Invalid.GetMessages(), ", ")}
	}
	got := given{
		DropsAll: response.GetDependents().GetDropsAll(), messages: response.GetDependents().GetItems(),
	}
	for _, message := range got.messages {
		words := proto.CloneOf(message)
		words.Object = nil
		var object any
		if len(message.GetObject()) > 0 {
			if err := json.Unmarshal(message.GetObject(), &object); err != nil {
				return given{Problem: err.Error()}
			}
		}
		// The text of a message has blanks by chance.
		text := strings.Join(strings.Fields(prototext.Format(words)), " ")
		got.Dependents = append(got.Dependents, dependent{Words: text, Object: object})
	}
	return got
}

// registrar keeps what is registered.
type registrar struct{ server protocol.PluginServer }

// RegisterService implements [grpc.ServiceRegistrar].
func (r *registrar) RegisterService(_ *grpc.ServiceDesc, server any) {
	r.server, _ = server.(protocol.PluginServer)
}

// localServer returns what serves a plugin.
func localServer(plugin plugins.Plugin) (protocol.PluginServer, error) {
	r := &registrar{}
	err := plugins.Register(r, plugin)
	return r.server, err
}

// startProgram starts the test binary as a program, until the test ends.
func startProgram(t *testing.T) protocol.PluginClient {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := program.LoadUnlisted(self)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = loaded.Close() })
	started, err := process.Start(t.Context(), process.Config{
		Program: loaded, Environment: []string{programEnvironment + "=true"}, Log: testr.New(t),
		Limits: process.Limits{Start: callTime, Answer: maxAnswer},
	})
	if err != nil {
		t.Fatalf("the test binary does not run as a program, so TestMain may not call plugintest.Main: %s", err)
	}
	t.Cleanup(func() { _ = started.Stop() })
	return protocol.NewPluginClient(started)
}

// maxAnswer is the default of a host.
const maxAnswer = 4 << 20

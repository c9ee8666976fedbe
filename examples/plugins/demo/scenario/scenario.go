// Package scenario shows what an operator does whose capabilities come from plugins, step by step, on a real cluster,
// and checks it: plugins appear, are killed, replaced and wrong while it runs. The steps are data, so that a test can
// play the same scenario under worse conditions.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	v1 "github.com/espalier-dev/espalier/examples/plugins/api/v1"
	"github.com/espalier-dev/espalier/examples/plugins/config"
	"github.com/espalier-dev/espalier/examples/plugins/controller"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/reconcilers"
)

// OperatorUser is the name of the user that the operator is.
const OperatorUser = "market-operator"

// lookEvery is how often the operator looks at the folder of its plugins.
const lookEvery = 100 * time.Millisecond

// scenario has the cluster, the operator once it runs, and its plugins.
type scenario struct {
	demo.Scenario
	// built is the folder that has the programs.
	built string
	pod   *pod
	tree  string
	// said is what the condition said when a check last read it.
	said string
}

// New returns the demo of the operator with plugins. The script build of this example has built them into the folder.
// Empty: the folder plugins beside the program.
func New(built string) demo.Demo {
	return demo.Demo{
		Title: "An operator with plugins",
		Users: []string{OperatorUser},
		Open: func(ctx context.Context, options demo.Options) (*demo.Scenario, error) {
			return open(ctx, options, built)
		},
	}
}

// open installs the definitions of the Shop and of what shows capabilities, the roles of the operator, and namespaces.
// Nothing that is there already is changed: it is an error.
func open(ctx context.Context, options demo.Options, built string) (*demo.Scenario, error) {
	if built == "" {
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		built = filepath.Join(filepath.Dir(program), "plugins")
	}
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	s := &scenario{Scenario: demo.Scenario{Options: options}, built: built}
	if err := s.Open(ctx, scheme, s.install); err != nil {
		return nil, err
	}
	s.Steps = s.steps()
	return &s.Scenario, nil
}

func (s *scenario) install(ctx context.Context) error {
	definition, err := config.CRD()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(s.built, "capabilities.yaml"))
	if err != nil {
		return fmt.Errorf("examples/plugins/build has not built the plugins into %s: %w", s.built, err)
	}
	shown := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, shown); err != nil {
		return err
	}
	roles, err := config.Roles()
	if err != nil {
		return err
	}
	err = errors.Join(s.Create(ctx, definition, shown), s.Grant(ctx, roles[0], OperatorUser),
		s.Grant(ctx, roles[1], OperatorUser), s.Create(ctx, demo.Named[corev1.Namespace]("", namespace),
			demo.Named[corev1.Namespace]("", brokers)))
	if err != nil {
		return fmt.Errorf("unable to install the operator: %w", err)
	}
	return demo.Eventually(ctx, demo.Patience, demo.All(
		s.May(OperatorUser, "list", v1.GroupVersion.Group, "shops", demo.Everywhere),
		s.May(OperatorUser, "list", "plugins.espalier.dev", "capabilities", demo.Everywhere),
		func(ctx context.Context) error { return s.Client.List(ctx, &v1.ShopList{}) },
		func(ctx context.Context) error { return s.Client.List(ctx, newCapabilities()) },
	))
}

// startOperator sets up the operator, as main.go of the example does, and lets it run.
func (s *scenario) startOperator(ctx context.Context) (err error) {
	operator, _ := s.Operator.Connect(s.Users[OperatorUser])
	mgr, err := manager.New(operator, demo.ManagerOptions(s.Client.Scheme(), s.Logger))
	if err != nil {
		return fmt.Errorf("unable to make the manager: %w", err)
	}
	if s.pod, err = newPod(s.built); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.pod.end())
		}
	}()
	// Before a shop: a text of a condition that alone changes is held back, see reconcilers.Reporter.
	if err = s.pod.put("postgres", "postgres"); err != nil {
		return err
	}
	host := &plugins.Host{
		Folder: s.pod.folder(), List: s.pod.list(), Every: lookEvery,
		Sidecars:    map[string]string{s.pod.socket(): "queue/rabbit"},
		Environment: map[string][]string{"postgres": {"POSTGRES_PASSWORD_KEY=demo"}},
		Advertise:   &plugins.Advertisement{Client: mgr.GetClient(), Operator: "market"},
	}
	shops := controller.New(reconcilers.NewConfig(mgr, &v1.Shop{}, 10*time.Hour), host)
	shops.AfterReconcile = s.Operator.Count
	s.tree = shops.Describe().String()
	if err := errors.Join(mgr.Add(s.pod), mgr.Add(host), shops.SetupWithManager(ctx, mgr)); err != nil {
		return fmt.Errorf("unable to set up the operator: %w", err)
	}
	s.Operator.Start(ctx, mgr)
	return nil
}

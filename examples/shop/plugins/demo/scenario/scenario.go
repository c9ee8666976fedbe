// Package scenario shows what the operator for shops does while the plugins appear, are killed, replaced and wrong that
// its databases and queues come from. The steps are data, so that a test can play them under worse conditions.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/examples/shop/plugins/parts"
	"github.com/espalier-dev/espalier/examples/shop/registry"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/plugins"
)

// OperatorUser is the name of the user that the operator is.
const OperatorUser = "shop-operator"

// scenario has the cluster, the operator once it runs, and its plugins.
type scenario struct {
	demo.Scenario
	pod  *pod
	tree string
}

// New returns the demo of the operator with plugins. The script build of this example has built them into the folder.
// Empty: the folder plugins beside the program.
func New(built string) demo.Demo {
	if built == "" {
		program, _ := os.Executable() // where it is not known, the error of install says so
		built = filepath.Join(filepath.Dir(program), "plugins")
	}
	return demo.Demo{
		Title: "An operator with plugins",
		Users: []string{OperatorUser},
		Open: func(ctx context.Context, options demo.Options) (*demo.Scenario, error) {
			scheme, err := controller.NewScheme()
			if err != nil {
				return nil, err
			}
			s := &scenario{Scenario: demo.Scenario{Options: options}, pod: &pod{built: built}}
			if err := s.Open(ctx, scheme, s.install); err != nil {
				return nil, err
			}
			s.Steps = s.steps()
			return &s.Scenario, nil
		},
	}
}

func (s *scenario) install(ctx context.Context) error {
	if _, err := os.Stat(s.pod.built); err != nil {
		return fmt.Errorf("examples/shop/plugins/build has to build the plugins first: %w", err)
	}
	return s.Install(ctx, demo.Installation{
		User: OperatorUser, Config: os.DirFS(s.pod.built),
		Objects: []client.Object{
			demo.Named[corev1.Namespace]("", namespace), demo.Named[corev1.Namespace]("", brokers),
		},
	})
}

// startOperator sets up the operator, as main.go of the example does, and lets it run.
func (s *scenario) startOperator(ctx context.Context) error {
	mgr, err := s.NewManager(OperatorUser)
	if err != nil {
		return err
	}
	if err := s.pod.open(ctx); err != nil {
		return errors.Join(err, s.pod.close())
	}
	host := &plugins.Host{
		Folder: s.pod.folder(), List: s.pod.list(), Every: 100 * time.Millisecond,
		Sidecars:    map[string]string{s.pod.socket(): "queue/rabbit"},
		Environment: map[string][]string{"postgres": {"POSTGRES_PASSWORD_KEY=demo"}},
		Advertise:   &plugins.Advertisement{Client: mgr.GetClient(), Operator: "shop"},
	}
	shops := controller.New(espalier.NewConfig(mgr), &registry.Memory{}, time.Minute,
		parts.Database(host), parts.Queue(host))
	shops.AfterReconcile = s.Operator.Count
	s.tree = shops.Describe().String()
	if err := errors.Join(mgr.Add(s.pod.run(host, s.Logger)), shops.SetupWithManager(ctx, mgr)); err != nil {
		return errors.Join(fmt.Errorf("unable to set up the operator: %w", err), s.pod.close())
	}
	s.Operator.Start(ctx, mgr)
	return nil
}

package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// program is one that runs next to the API server, as a client of it.
type program struct {
	name string
	// cluster means that "make cluster" builds the program, and not "make controlplane".
	cluster bool
	// args are its arguments; "--kubeconfig" is added.
	args []string
}

// programs returns what has to run next to the API server. Files of the programs are in dir.
func (o Options) programs(dir string) []program {
	var all []program
	if controllers := o.controllers(); len(controllers) > 0 {
		all = append(all, program{name: controllerManagerBinary, args: []string{
			"--controllers=" + strings.Join(controllers, ","),
			"--leader-elect=false",
			"--secure-port=0",
			"--cert-dir=" + dir,
			"--kube-api-qps=1000",
			"--kube-api-burst=2000",
		}})
	}
	if o.Scheduler {
		all = append(all, program{name: schedulerBinary, cluster: true, args: []string{
			"--leader-elect=false",
			"--secure-port=0",
			"--cert-dir=" + dir,
			"--kube-api-qps=1000",
			"--kube-api-burst=2000",
		}})
	}
	if o.Nodes > 0 {
		all = append(all, program{name: kwokBinary, cluster: true, args: []string{
			"--config=" + stagesFile(dir),
			"--manage-all-nodes",
			// Nothing looks at the leases of nodes.
			"--node-lease-duration-seconds=0",
		}})
	}
	return all
}

// checkPrograms returns a *BinaryError for the first program that cannot be run.
func (o Options) checkPrograms(ctx context.Context, plane binaries) error {
	names := []string{etcdBinary, apiServerBinary}
	var clusterNames []string
	for _, p := range o.programs("") {
		if p.cluster {
			clusterNames = append(clusterNames, p.name)
		} else {
			names = append(names, p.name)
		}
	}
	if err := plane.check(ctx, names...); err != nil || len(clusterNames) == 0 {
		return err
	}
	cluster, err := findClusterBinaries()
	if err != nil {
		return err
	}
	return cluster.check(ctx, clusterNames...)
}

// startPrograms runs the programs that the options ask for.
func (e *Environment) startPrograms(ctx context.Context, plane binaries, options Options) error {
	for _, p := range options.programs(e.supervision.dir) {
		from := plane
		if p.cluster {
			var err error
			if from, err = findClusterBinaries(); err != nil {
				return err
			}
		}
		if err := e.startProgram(ctx, from, p, options); err != nil {
			return err
		}
	}
	return nil
}

// startProgram runs a program as an administrator, because no test is about its permissions.
func (e *Environment) startProgram(ctx context.Context, from binaries, p program, options Options) error {
	path, err := e.supervision.wrap(p.name, from.path(p.name))
	if err != nil {
		return err
	}
	user, err := e.envtest.AddUser(envtest.User{Name: p.name, Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return fmt.Errorf("could not add the user of %s: %w", p.name, err)
	}
	content, err := user.KubeConfig()
	if err != nil {
		return fmt.Errorf("no kubeconfig for %s: %w", p.name, err)
	}
	kubeconfig := filepath.Join(e.supervision.dir, p.name+".kubeconfig")
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		return err
	}
	if p.name == kwokBinary {
		if err := writeStages(e.supervision.dir); err != nil {
			return err
		}
	}
	running := &process{
		name: p.name, path: path, output: &output{next: options.Output}, minLifetime: minLifetime,
		// kwok reads a file in its folder, which is in the home folder by default.
		env: append(os.Environ(), "KWOK_WORKDIR="+filepath.Join(e.supervision.dir, "kwok")),
	}
	e.processes = append(e.processes, running)
	return running.start(ctx, append(p.args, "--kubeconfig="+kubeconfig)...)
}

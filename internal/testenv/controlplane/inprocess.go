package controlplane

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	inProcessBinary = "cluster"
	inProcessFolder = "inprocess"
	// inProcessVariable is set by "make test" to what tells one build of the program from another. A test reads it, so
	// that go test does not take the result of a test with another program for that of this one.
	inProcessVariable = "ESPALIER_INPROCESS"
)

// Real reports whether Start runs etcd and kube-apiserver, because the environment variable REAL is true.
func Real() bool {
	real, err := strconv.ParseBool(os.Getenv("REAL"))
	return err == nil && real
}

// inProcess is a process with an API server over a storage in memory, which obeys commands.
type inProcess struct {
	process
	// asking makes commands take turns.
	asking  sync.Mutex
	answers *bufio.Reader
}

// startInProcess starts the program of testing/simulation/cmd/cluster. If it fails, nothing is left running.
func (e *Environment) startInProcess(ctx context.Context, options Options) error {
	_ = os.Getenv(inProcessVariable)
	if lacking := options.lacking(); lacking != "" {
		return fmt.Errorf("the in-process server has no %s: set REAL=true to run kube-apiserver", lacking)
	}
	programs, err := builtBinaries(inProcessFolder)
	if err != nil {
		return err
	}
	definitions, err := os.MkdirTemp("", "espalier-definitions-")
	if err != nil {
		return fmt.Errorf("no folder for definitions: %w", err)
	}
	defer os.RemoveAll(definitions)
	if err := errors.Join(writeDefinitions(definitions, options.CRDs), ctx.Err()); err != nil {
		return err
	}
	path := programs.path(inProcessBinary)
	e.inProcess = &inProcess{process: process{name: inProcessBinary, path: path, output: e.apiServer}}
	e.config, err = e.inProcess.start(append(options.inProcessArguments(), "-crds="+definitions)...)
	switch {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission):
		return programs.broken(path, err)
	case err != nil:
		return err
	}
	e.processes = append(e.processes, &e.inProcess.process)
	return nil
}

// lacking returns what the options ask for and the in-process server has not, or nothing.
func (o Options) lacking() string {
	switch {
	case o.Scheduler:
		return "kube-scheduler"
	case o.Nodes > 0:
		return "nodes of kwok"
	case o.RoleAggregation:
		return "controller that aggregates ClusterRoles"
	}
	return ""
}

// inProcessArguments leave out the stand-ins for controllers that the options do not ask for.
func (o Options) inProcessArguments() []string {
	var arguments []string
	var without []string
	switch {
	case o.Jobs || o.Workloads:
		without = []string{"kube-scheduler", "kubelet", "cloud-controller-manager", "cert-manager-cainjector",
			"Service", "PersistentVolumeClaim", "PersistentVolume", "HorizontalPodAutoscaler"}
		if !o.Workloads {
			without = append(without, "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "CronJob")
		}
	case o.GarbageCollection || o.NamespaceDeletion:
		arguments = append(arguments, "-no-workloads")
	default:
		arguments = append(arguments, "-no-workloads")
		without = []string{"kube-controller-manager"}
	}
	for _, name := range without {
		arguments = append(arguments, "-without="+name)
	}
	return arguments
}

func writeDefinitions(dir string, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	for i, definition := range definitions {
		definition = definition.DeepCopy()
		definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		content, err := json.Marshal(definition)
		if err != nil {
			return err
		}
		// The installation keeps the order of names.
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.json", i)), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// start returns the configuration of an administrator when the API server serves.
func (p *inProcess) start(arguments ...string) (*rest.Config, error) {
	command := exec.Command(p.path, arguments...)
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.answers = in, bufio.NewReader(out)
	if err := p.launch(command); err != nil {
		return nil, err
	}
	timeout := time.AfterFunc(startTimeout, func() { _ = command.Process.Kill() })
	defer timeout.Stop()
	return configIn(p.answer())
}

// ask returns the answer to a command.
func (p *inProcess) ask(words ...string) (string, error) {
	p.asking.Lock()
	defer p.asking.Unlock()
	if _, err := io.WriteString(p.in, strings.Join(words, "\t")+"\n"); err != nil {
		return "", err
	}
	return p.answer()
}

func (p *inProcess) answer() (string, error) {
	line, err := p.answers.ReadString('\n')
	if err != nil {
		_ = p.cmd.Process.Kill() // It may have ended.
		<-p.ended
		return "", cmp.Or(p.err(), err)
	}
	line = strings.TrimSpace(line)
	if text, failed := strings.CutPrefix(line, "error: "); failed {
		return "", fmt.Errorf("the in-process server: %s", text)
	}
	return line, nil
}

// configIn reads the configuration that an answer names.
func configIn(answer string, err error) (*rest.Config, error) {
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", strings.TrimPrefix(answer, "KUBECONFIG="))
	if err != nil {
		return nil, err
	}
	return withoutRateLimit(config), nil
}

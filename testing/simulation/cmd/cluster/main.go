// Command cluster runs a cluster in the process for tests of this project. People run "espalier cluster start". When
// the cluster serves, the command prints where the kubeconfig of an administrator is:
//
//	KUBECONFIG=/tmp/espalier-cluster-1234/kubeconfig
//
// It ends when it is interrupted, or when its standard input ends, so that it does not outlive the program that started
// it. It obeys commands there. A command is a line, and so is the answer, which is "error: " and a text if the command
// fails. What belongs to a command is behind it, after tabs.
//
//	user	NAME	GROUP...   lets a user connect, and answers as above
//	stop                    has the API server not answer any more; the answer is "ok"
//	start                   has it answer again; the answer is "ok"
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		stop()
		os.Exit(1)
	}
}

// run runs a cluster until the context or its input ends.
func run(ctx context.Context, args []string, in io.Reader, out io.Writer) (err error) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	env := &cluster.Environment{ErrorIfCRDPathMissing: true}
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.BoolVar(&env.NoWorkloads, "no-workloads", false, "have no Pods be made and none run")
	flags.Func("crds", "a file or folder with definitions to install; may be repeated", func(path string) error {
		env.CRDDirectoryPaths = append(env.CRDDirectoryPaths, path)
		return nil
	})
	flags.Func("without", "a component that does not run, or a kind whose controller does not; may be repeated",
		func(name string) error {
			env.Without = append(env.Without, name)
			return nil
		})
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("there are flags alone, and no %q", flags.Arg(0))
	}
	if _, err := env.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	fmt.Fprintln(out, kubeConfigIs+env.KubeConfigPath)
	ended := make(chan error, 1)
	go func() { ended <- obey(env, in, out) }()
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

const kubeConfigIs = "KUBECONFIG="

// obey carries out commands until there are no more.
func obey(env *cluster.Environment, in io.Reader, out io.Writer) error {
	commands, users := bufio.NewScanner(in), 0
	for commands.Scan() {
		answer := "ok"
		var err error
		switch words := strings.Split(commands.Text(), "\t"); {
		case words[0] == "user" && len(words) > 1:
			users++
			answer, err = addUser(env, cluster.User{Name: words[1], Groups: words[2:]}, users)
		case words[0] == "stop":
			err = env.StopAPIServer()
		case words[0] == "start":
			err = env.StartAPIServer()
		default:
			err = fmt.Errorf("there is no command %q", commands.Text())
		}
		if err != nil {
			answer = "error: " + strings.Join(strings.Fields(err.Error()), " ")
		}
		if _, err := fmt.Fprintln(out, answer); err != nil {
			return err
		}
	}
	return commands.Err()
}

// addUser writes the kubeconfig of a user beside that of the administrator, and returns the answer that names it.
func addUser(env *cluster.Environment, user cluster.User, number int) (string, error) {
	added, err := env.AddUser(user, nil)
	if err != nil {
		return "", err
	}
	kubeConfig, err := added.KubeConfig()
	if err != nil {
		return "", err
	}
	path := fmt.Sprintf("%s-%d", env.KubeConfigPath, number)
	return kubeConfigIs + path, os.WriteFile(path, kubeConfig, 0o600)
}

package demo

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Trial is something to try with kubectl when the steps are done and the operator still runs.
type Trial struct {
	// Text says what is done and what comes of it, in one line.
	Text string
	// Commands are lines for a shell.
	Commands string
}

// keep waits until ctx ends, and says where the cluster is meanwhile, and what to try there.
func (d Demo) keep(ctx context.Context, out io.Writer, admin *rest.Config, operator *Operator) (err error) {
	kubeconfig, err := Kubeconfig(admin)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "espalier-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	path := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return err
	}
	p := &printer{out: out}
	p.print("\nThe operator runs until Ctrl-C. In another terminal (\"make kubectl\" builds bin/kubectl):\n")
	p.print("\nexport KUBECONFIG='%s'\n", path)
	for i, trial := range d.Trials {
		p.title(i+1, trial.Text)
		p.print("\n%s", trial.Commands)
	}
	if p.err != nil {
		return p.err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-operator.done:
		return operator.Failure()
	}
}

// Kubeconfig returns a kubeconfig with the certificate of a client.
func Kubeconfig(config *rest.Config) ([]byte, error) {
	const name = "demo"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			name: {Server: config.Host, CertificateAuthorityData: config.CAData},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			name: {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData},
		},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
}

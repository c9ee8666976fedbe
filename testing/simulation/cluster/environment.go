package cluster

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
)

// WebhookInstallOptions are those of envtest. Webhooks that they name are called at the address and with the
// certificate that Start sets in LocalServingHost, LocalServingPort and LocalServingCertDir; a manager serves them with
// these options.
type WebhookInstallOptions = envtest.WebhookInstallOptions

// The types of envtest in the fields of an [Environment].
type (
	CRDInstallOptions = envtest.CRDInstallOptions
	ControlPlane      = envtest.ControlPlane
)

// PodBehavior is what becomes of a Pod on a node. The zero value is a Pod that runs and is ready at once, and whose
// containers end with success at once if the Pod is not to be restarted always, as that of a Job.
type PodBehavior = controllers.Behavior

// Environment is a cluster. The zero value is ready to start. Start sets Config and KubeConfig, and reads the
// other fields.
type Environment struct {
	// Address is where the API server listens. Empty is a free port of 127.0.0.1. The address must be one of the
	// loopback interface, unless AllowOtherMachines is set.
	Address string
	// AllowOtherMachines says that Address may be one that other machines reach. They need credentials as well.
	AllowOtherMachines bool

	// CRDs and CRDDirectoryPaths are the custom resource definitions that Start installs: objects, and files or folders
	// with files. Folders below them are not read. Of two with one name, the last counts, and one of CRDs before one of
	// a file. A definition gets a conversion by webhooks, or loses it, by what Scheme knows, as in envtest.
	CRDs              []*apiextensionsv1.CustomResourceDefinition
	CRDDirectoryPaths []string
	// ErrorIfCRDPathMissing has Start fail if one of CRDDirectoryPaths does not exist. Otherwise it is skipped.
	ErrorIfCRDPathMissing bool
	// WebhookInstallOptions are the webhooks that Start installs. Others can be created later: they need a url, or a
	// Service of type ExternalName.
	WebhookInstallOptions WebhookInstallOptions
	// Scheme says which kinds are converted by webhooks. Nil is that of client-go.
	Scheme *runtime.Scheme

	// Workloads has the controllers of workloads, volumes, load balancers and autoscalers run, and Pods. Without it, no
	// Pods are made, and these objects stay as they are written, as in envtest, so that a test plays those controllers
	// by hand. Garbage is collected and namespaces end in both cases.
	Workloads bool
	// Without are the components that do not run, such as "kube-scheduler" and "kubelet" if Pods are to stay as they
	// are written, and "kube-controller-manager", and the kinds whose controllers do not run, such as "Deployment".
	Without []string
	// Pods says what becomes of a Pod. It is called by several goroutines, and must answer the same for the same Pod.
	// Nil has each run and be ready at once. It needs Workloads.
	Pods func(pod *corev1.Pod) PodBehavior

	// DataFile is a file that keeps all objects: a later cluster with the same file begins with them. Start creates it
	// if there is none, with its folder, and only the user of the process can read it. The file with the ending
	// .rewrite beside it is used, too. A file that another cluster uses, that is damaged, or that no cluster has
	// written is an error, and stays as it is. Empty keeps nothing.
	DataFile string
	// Sync has each write be on the disk before it is answered, so that a loss of power loses none. It makes writes
	// slower, and has no effect without DataFile.
	Sync bool

	// KubeConfigPath is where Start writes the kubeconfig of an administrator, which only the user of the process can
	// read. It is not merged into others: a file that exists is an error, unless it was written by an Environment. The
	// file stays when the cluster stops. Empty is a file in a folder of its own, which Stop removes; Start sets the
	// field to its path.
	KubeConfigPath string

	// CRDInstallOptions are those of envtest. Paths, CRDs and ErrorIfPathMissing add to the fields of the names above;
	// the others are ignored.
	CRDInstallOptions CRDInstallOptions
	// UseExistingCluster is an error if it is true: use envtest for a cluster that exists.
	UseExistingCluster *bool

	// The fields below are those of envtest about its binaries. They are ignored, for there are none, and the logger of
	// controller-runtime says so: a suite of envtest moves by its import alone.

	ControlPlane                 ControlPlane
	DownloadBinaryAssets         bool
	DownloadBinaryAssetsVersion  string
	DownloadBinaryAssetsIndexURL string
	BinaryAssetsDirectory        string
	ControlPlaneStartTimeout     time.Duration
	ControlPlaneStopTimeout      time.Duration
	AttachControlPlaneOutput     bool

	// Config is for clients of an administrator.
	Config *rest.Config
	// KubeConfig is what the file at KubeConfigPath has.
	KubeConfig []byte

	mu      sync.Mutex
	started bool
	// authority is nil before the start, and ends are what has been started, in order, as functions that end it.
	authority *authority
	ends      []func() error
	// handler serves requests at an address, with a certificate. disconnect ends that, and is nil when it has ended.
	handler     http.Handler
	address     net.Addr
	certificate tls.Certificate
	disconnect  func() error
	// kinds are those that the stand-ins watch.
	kinds controllers.Kinds
}

// Start starts the cluster, and returns Config when the cluster serves all that it was started with. If it fails,
// nothing is left running, and no file is left behind but DataFile. It can be called once.
func (e *Environment) Start() (*rest.Config, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started {
		return nil, errors.New("the cluster was started before: each start needs an Environment of its own")
	}
	e.started = true
	if err := e.start(); err != nil {
		e.Config, e.KubeConfig = nil, nil
		return nil, errors.Join(fmt.Errorf("start the cluster: %w", err), e.stop())
	}
	return e.Config, nil
}

// Stop ends the cluster, and waits until all requests have ended. It does nothing if the cluster does not run. If a
// definition was changed or deleted less than a second before, a goroutine of the libraries ends a second after that.
func (e *Environment) Stop() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stop()
}

// StopAPIServer has the API server not answer until StartAPIServer: requests fail that it has not answered, watches
// break off, and connections are refused. Controllers go on. It does nothing if the API server does not answer.
func (e *Environment) StopAPIServer() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopServing()
}

// StartAPIServer has the API server answer again that StopAPIServer has stopped, at the same address.
func (e *Environment) StartAPIServer() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.ends) == 0 {
		return errors.New("start the API server: the cluster does not run: call Start before")
	}
	if e.disconnect != nil {
		return nil
	}
	listener, err := net.Listen("tcp", e.address.String())
	if err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	e.serve(listener)
	return nil
}

// stop ends what has been started, the last first.
func (e *Environment) stop() error {
	var errs []error
	for ; len(e.ends) > 0; e.ends = e.ends[:len(e.ends)-1] {
		errs = append(errs, e.ends[len(e.ends)-1]())
	}
	return errors.Join(errs...)
}

func (e *Environment) start() error {
	if err := errors.Join(e.checkEnvtest(), e.checkKubeConfigPath()); err != nil {
		return err
	}
	definitions, err := e.definitions()
	if err != nil {
		return err
	}
	listener, err := e.listen()
	if err != nil {
		return err
	}
	e.ends = append(e.ends, func() error {
		// What serves closes it, too.
		if err := listener.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	e.address = listener.Addr()
	e.authority, err = newAuthority()
	if err != nil {
		return fmt.Errorf("make an authority for certificates: %w", err)
	}
	if e.certificate, err = e.authority.server(e.address); err != nil {
		return fmt.Errorf("make a certificate for the API server: %w", err)
	}
	if e.handler, err = e.startServer(); err != nil {
		return err
	}
	e.serve(listener)
	e.ends = append(e.ends, e.stopServing)
	if err := e.startStandIns(); err != nil {
		return fmt.Errorf("start the controllers of the cluster: %w", err)
	}
	admin := User{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}
	administrator, err := e.addUser(admin, nil, hostOf(e.address))
	if err != nil {
		return err
	}
	e.Config, e.KubeConfig = administrator.config, administrator.kubeConfig
	if err := e.install(definitions); err != nil {
		return err
	}
	return e.writeKubeConfig()
}

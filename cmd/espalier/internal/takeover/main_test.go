package takeover_test

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/command"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{
	CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.AssemblyCRD(), legacyCRD("Legacy"), legacyCRD("Moved")},
}}

// legacyCRD is a definition of the old engine, as to what matters: its inventory has no UIDs, and other policies.
func legacyCRD(kind string) *apiextensionsv1.CustomResourceDefinition {
	crd, plural := resources.AssemblyCRD(), strings.ToLower(kind)+"s"
	crd.Name = plural + "." + resources.GroupVersion.Group
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
		Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List",
	}
	text, number := apiextensionsv1.JSONSchemaProps{Type: "string"}, apiextensionsv1.JSONSchemaProps{Type: "integer"}
	updatePolicy := text
	for _, word := range []string{"Recreate", "Replace", "SsaMerge", "SsaOverride"} {
		updatePolicy.Enum = append(updatePolicy.Enum, apiextensionsv1.JSON{Raw: []byte(strconv.Quote(word))})
	}
	record := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"group": text, "version": text, "kind": text, "namespace": text, "name": text, "digest": text, "phase": text,
		"status": text, "adoptionPolicy": text, "reconcilePolicy": text, "deletePolicy": text,
		"updatePolicy": updatePolicy,
		"applyOrder":   number, "deleteOrder": number, "lastAppliedAt": text,
	}}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"] = apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"inventory": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &record}},
		},
	}
	return crd
}

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

func newClient(t *testing.T) client.Client {
	t.Helper()
	scheme := resources.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(plane.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// door is the only way of the command to the API server. It counts the writes, and kills the command at one of them: no
// request passes after that.
type door struct {
	kubeConfig string
	// kind is that of the components. Default: Assembly.
	kind string

	mu sync.Mutex
	// killAt is the number of the write at which the command dies, 0 for never: before it is done, or after.
	killAt int
	after  bool
	writes int
	dead   bool
	// before is called with the number of each write before it is done. Optional.
	before func(n int)
}

func newDoor(t *testing.T, user *rest.Config) *door {
	t.Helper()
	transport, err := rest.TransportFor(user)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(user.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(at)
	proxy.Transport = transport
	d := &door{kubeConfig: filepath.Join(t.TempDir(), "kubeconfig")}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		passes, answers := d.passes(r)
		if passes && answers {
			proxy.ServeHTTP(w, r)
			return
		}
		if passes {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
		}
		panic(http.ErrAbortHandler)
	}))
	server.Config.ErrorLog = nil
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		if pool, ok := transport.(interface{ CloseIdleConnections() }); ok {
			pool.CloseIdleConnections()
		}
	})
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: server.URL, InsecureSkipTLSVerify: true}},
		Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c"}}, CurrentContext: "c",
	}, d.kubeConfig)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// passes says whether a request reaches the API server, and whether its answer comes back.
func (d *door) passes(r *http.Request) (passes, answers bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return false, false
	}
	if r.Method == http.MethodGet || r.URL.Query().Get("dryRun") != "" {
		return true, true
	}
	d.writes++
	if d.before != nil {
		d.before(d.writes)
	}
	if d.writes == d.killAt {
		d.dead = true
		return d.after, false
	}
	return true, true
}

// run runs "espalier migrate components" for the components of a namespace, and returns what it prints.
func (d *door) run(t *testing.T, namespace string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := command.New(&out, io.Discard)
	c.SetArgs(append([]string{
		"migrate", "components", cmp.Or(d.kind, "Assembly") + "." + resources.GroupVersion.Group,
		"--kubeconfig", d.kubeConfig, "--namespace", namespace, "--from-name", oldName, "--prefix", newPrefix,
	}, args...))
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

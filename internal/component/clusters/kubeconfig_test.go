package clusters_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/clusters"

	"sigs.k8s.io/yaml"
)

type (
	user    map[string]any
	cluster map[string]any
)

// kubeConfig makes a kubeconfig of what differs from one of an anonymous user.
func kubeConfig(u user, c cluster) []byte {
	server := cluster{"server": "https://remote.example.com:6443"}
	maps.Copy(server, c)
	return encode(map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": "main",
		"contexts":        []any{map[string]any{"name": "main", "context": map[string]any{"cluster": "c", "user": "u"}}},
		"clusters":        []any{map[string]any{"name": "c", "cluster": server}},
		"users":           []any{map[string]any{"name": "u", "user": u}},
	})
}

func encode(config map[string]any) []byte {
	// It has nothing that could not be written.
	encoded, _ := yaml.Marshal(config)
	return encoded
}

// hidden is in all that must not be in an error.
const hidden = "hunter2"

// TestRefusedKubeConfigs: a kubeconfig neither runs a program nor reads a file of the operator, and no error shows what
// is in it.
func TestRefusedKubeConfigs(t *testing.T) {
	const url = "kubeconfig: cluster.server must be a URL that begins with https:// or http://"
	contexts := func(current string, context map[string]any) []byte {
		return encode(map[string]any{
			"current-context": current,
			"contexts":        []any{map[string]any{"name": hidden, "context": context}},
			"clusters":        []any{map[string]any{"name": "c" + hidden, "cluster": map[string]any{"server": "https://" + hidden}}},
		})
	}
	tests := map[string]struct {
		kubeconfig []byte
		want       string
	}{
		"exec": {kubeConfig(user{"exec": map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "command": hidden}}, nil),
			"kubeconfig: is not allowed: user.exec would run a program next to the operator, use token or client-certificate-data"},
		"auth-provider": {kubeConfig(user{"auth-provider": map[string]any{"name": hidden}}, nil),
			"kubeconfig: is not allowed: user.auth-provider is not supported, use token or client-certificate-data"},
		"tokenFile": {kubeConfig(user{"tokenFile": "/" + hidden}, nil),
			"kubeconfig: is not allowed: user.tokenFile would read a file of the operator, use token"},
		"tokenFile beside a token": {kubeConfig(user{"token": hidden, "tokenFile": "/" + hidden}, nil),
			"kubeconfig: is not allowed: user.tokenFile would read a file of the operator, use token"},
		"files": {kubeConfig(user{"client-certificate": hidden, "client-key": hidden}, cluster{"certificate-authority": hidden}),
			"kubeconfig: is not allowed: " +
				"user.client-certificate would read a file of the operator, use client-certificate-data; " +
				"user.client-key would read a file of the operator, use client-key-data; " +
				"cluster.certificate-authority would read a file of the operator, use certificate-authority-data"},
		"no YAML":            {[]byte("password: " + hidden + "\n- : :"), "kubeconfig: cannot be parsed"},
		"wrong types":        {[]byte("kind: Config\napiVersion: v1\nclusters: " + hidden), "kubeconfig: cannot be parsed"},
		"another kind":       {[]byte("kind: Secret\napiVersion: v1\ndata: {a: " + hidden + "}"), "kubeconfig: cannot be parsed"},
		"blank":              {[]byte(" \n"), "kubeconfig: has no current-context"},
		"no current context": {contexts("", nil), "kubeconfig: has no current-context"},
		"no such context":    {contexts("other"+hidden, nil), "kubeconfig: current-context is not the name of a context"},
		"no such cluster":    {contexts(hidden, map[string]any{"cluster": "x" + hidden}), "kubeconfig: context.cluster is not the name of a cluster"},
		"no such user":       {contexts(hidden, map[string]any{"cluster": "c" + hidden, "user": hidden}), "kubeconfig: context.user is not the name of a user"},
		"no server":          {kubeConfig(nil, cluster{"server": ""}), url},
		"no URL":             {kubeConfig(nil, cluster{"server": "https://%" + hidden}), url},
		"no scheme":          {kubeConfig(nil, cluster{"server": hidden + ":6443"}), url},
		"another scheme":     {kubeConfig(nil, cluster{"server": "file://host/" + hidden}), url},
		"credentials in it":  {kubeConfig(nil, cluster{"server": "https://admin:" + hidden + "@host"}), "kubeconfig: cluster.server must not contain credentials"},
		"credentials in clear": {kubeConfig(user{"token": hidden}, cluster{"server": "http://host"}),
			"kubeconfig: cluster.server must be an https URL, or the credentials of the user could be read on the way"},
		"another kind of proxy": {kubeConfig(nil, cluster{"proxy-url": "ftp://" + hidden}),
			"kubeconfig: cluster.proxy-url must be a URL that begins with http:// or https:// or socks5://"},
		"certificates that are none": {kubeConfig(nil, cluster{"certificate-authority-data": []byte(hidden)}),
			"kubeconfig: the certificates or the key cannot be used: unable to load root certificates: unable to parse bytes as PEM block"},
		"a key that is none": {kubeConfig(user{"client-certificate-data": []byte(hidden), "client-key-data": []byte(hidden)}, nil),
			"kubeconfig: the certificates or the key cannot be used: tls: failed to find any PEM data in certificate input"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := (&clusters.Pool{Home: home()}).Get(at(t, 0), clusters.Identity{KubeConfig: tc.kubeconfig})
			if err == nil {
				t.Fatal("there is no error")
			}
			if err.Error() != tc.want {
				t.Errorf("\nwant %s\ngot  %s", tc.want, err)
			}
			if strings.Contains(err.Error(), hidden) {
				t.Error("the error shows what is in the kubeconfig")
			}
		})
	}
}

func TestAcceptedKubeConfigs(t *testing.T) {
	pool := &clusters.Pool{Home: home()}
	t.Run("a path, without a query", func(t *testing.T) {
		config := get(t, at(t, 0), pool, clusters.Identity{KubeConfig: kubeConfig(nil, cluster{"server": "https://host/k8s/c1?a=b#c"})}).Config
		if want := "https://host/k8s/c1"; config.Host != want {
			t.Errorf("want %q, got %q", want, config.Host)
		}
	})
	t.Run("a proxy", func(t *testing.T) {
		config := get(t, at(t, 0), pool, clusters.Identity{KubeConfig: kubeConfig(nil, cluster{"proxy-url": "socks5://proxy:1080"})}).Config
		proxy, err := config.Proxy(nil)
		if err != nil || proxy.String() != "socks5://proxy:1080" {
			t.Errorf("got %v, %v", proxy, err)
		}
	})
	t.Run("without verification", func(t *testing.T) {
		config := get(t, at(t, 0), pool, clusters.Identity{KubeConfig: kubeConfig(nil, cluster{"insecure-skip-tls-verify": true})}).Config
		if !config.Insecure {
			t.Error("the server is verified")
		}
	})
	t.Run("impersonation of its own", func(t *testing.T) {
		config := get(t, at(t, 0), pool, clusters.Identity{KubeConfig: kubeConfig(user{"as": "ada", "as-groups": []string{"dev"}}, nil)}).Config
		if config.Impersonate.UserName != "ada" || len(config.Impersonate.Groups) != 1 {
			t.Errorf("got %+v", config.Impersonate)
		}
	})
	t.Run("what is not used may have anything", func(t *testing.T) {
		kubeconfig := encode(map[string]any{
			"current-context": "main",
			"contexts":        []any{map[string]any{"name": "main", "context": map[string]any{"cluster": "c"}}},
			"clusters": []any{
				map[string]any{"name": "c", "cluster": map[string]any{"server": "https://host"}},
				map[string]any{"name": "other", "cluster": map[string]any{"certificate-authority": "/x"}},
			},
			"users": []any{map[string]any{"name": "u", "user": map[string]any{"exec": map[string]any{"command": "x"}}}},
		})
		if config := get(t, at(t, 0), pool, clusters.Identity{KubeConfig: kubeconfig}).Config; config.ExecProvider != nil {
			t.Error("it would run a program")
		}
	})
}

// FuzzL7KubeConfig has anything for a kubeconfig: there is no panic, and what comes of it neither runs a program nor
// reads a file.
func FuzzL7KubeConfig(f *testing.F) {
	f.Add([]byte("{}"))
	f.Add(kubeConfig(user{"exec": map[string]any{"command": "x"}}, cluster{"certificate-authority": "/x"}))
	f.Add(kubeConfig(user{"tokenFile": "/x", "client-key": "/x", "client-certificate": "/x"}, nil))
	f.Add([]byte("clusters: [null]\nusers: [{name: u}]\ncontexts: [{name: a, context: null}]\ncurrent-context: a"))
	f.Fuzz(func(t *testing.T, kubeconfig []byte) {
		if len(kubeconfig) == 0 {
			return
		}
		made, err := (&clusters.Pool{}).Get(t.Context(), clusters.Identity{KubeConfig: kubeconfig})
		if err != nil {
			return
		}
		config := made.Config
		if config.ExecProvider != nil || config.AuthProvider != nil {
			t.Error("it would run a program")
		}
		if config.BearerTokenFile != "" || config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" {
			t.Error("it would read a file")
		}
	})
}

package clusters_test

import (
	"fmt"
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
	const aliases = "kubeconfig: is too large: aliases give a document more than 262144 values or 8388608 bytes"
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
		"no YAML":             {[]byte("password: " + hidden + "\n- : :"), "kubeconfig: cannot be parsed"},
		"wrong types":         {[]byte("kind: Config\napiVersion: v1\nclusters: " + hidden), "kubeconfig: cannot be parsed"},
		"another kind":        {[]byte("kind: Secret\napiVersion: v1\ndata: {a: " + hidden + "}"), "kubeconfig: cannot be parsed"},
		"huge":                {append(kubeConfig(nil, nil), strings.Repeat("# "+hidden+"\n", 200_000)...), "kubeconfig: is larger than 1048576 bytes"},
		"aliases without end": {aliasBomb(), aliases},
		"a text that grows":   {[]byte("a: &a " + strings.Repeat("A", 500_000) + "\nb: [" + strings.Repeat("*a,", 180_000) + "]\n"), aliases},
		"an alias of itself":  {[]byte("clusters: &a\n- name: " + hidden + "\n  cluster: *a"), "kubeconfig: is too large: an alias contains itself"},
		"deep":                {[]byte("extensions: " + strings.Repeat("[", 100_000) + hidden), "kubeconfig: cannot be parsed"},
		"another context has exec, the current one a file": {severalContexts(), "kubeconfig: is not allowed: user.tokenFile would read a file of the operator, use token"},
		"exec and a token": {kubeConfig(user{"token": hidden, "exec": map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "command": hidden}}, nil),
			"kubeconfig: is not allowed: user.exec would run a program next to the operator, use token or client-certificate-data"},
		"a password in clear": {kubeConfig(user{"username": "u", "password": hidden}, cluster{"server": "http://host"}),
			"kubeconfig: cluster.server must be an https URL, or the credentials of the user could be read on the way"},
		"a certificate without a key": {kubeConfig(user{"client-certificate-data": []byte(hidden)}, nil),
			"kubeconfig: user.client-certificate-data and user.client-key-data must be given together"},
		"a socket": {kubeConfig(nil, cluster{"server": "unix:///" + hidden}), url},
		"a proxy that is a file": {kubeConfig(nil, cluster{"proxy-url": "file:///" + hidden}),
			"kubeconfig: cluster.proxy-url must be a URL that begins with http:// or https:// or socks5://"},
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
				t.Fatalf("the kubeconfig has no error, want %s", tc.want)
			}
			if err.Error() != tc.want {
				t.Errorf("\nwant %s\ngot  %s", tc.want, err)
			}
			if strings.Contains(err.Error(), hidden) {
				t.Error("the error shows what is in the kubeconfig, want it hidden")
			}
		})
	}
}

// aliasBomb would become as long as all memory if its aliases were written out.
func aliasBomb() []byte {
	text := "a0: &a0 [" + hidden + "]\n"
	for i := range 40 {
		text += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9), i)
	}
	return []byte(text)
}

// severalContexts has a user for each context.
func severalContexts() []byte {
	return encode(map[string]any{
		"current-context": "second",
		"contexts": []any{
			map[string]any{"name": "first", "context": map[string]any{"cluster": "c", "user": "runs"}},
			map[string]any{"name": "second", "context": map[string]any{"cluster": "c", "user": "reads"}},
		},
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": "https://host"}}},
		"users": []any{
			map[string]any{"name": "runs", "user": map[string]any{"exec": map[string]any{"command": hidden}}},
			map[string]any{"name": "reads", "user": map[string]any{"tokenFile": "/" + hidden}},
		},
	})
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
			t.Errorf("the proxy is %v and the error %v, want socks5://proxy:1080 and none", proxy, err)
		}
	})
	t.Run("without verification", func(t *testing.T) {
		config := get(t, at(t, 0), pool, clusters.Identity{KubeConfig: kubeConfig(nil, cluster{"insecure-skip-tls-verify": true})}).Config
		if !config.Insecure {
			t.Error("the server is verified, want that it is not")
		}
	})
	t.Run("impersonation of its own", func(t *testing.T) {
		config := get(t, at(t, 0), pool, clusters.Identity{KubeConfig: kubeConfig(user{"as": "ada", "as-groups": []string{"dev"}}, nil)}).Config
		if config.Impersonate.UserName != "ada" || len(config.Impersonate.Groups) != 1 {
			t.Errorf("the configuration impersonates %+v, want ada with one group", config.Impersonate)
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
			t.Errorf("the configuration would run the program %v, want none", config.ExecProvider)
		}
	})
}

// refusals have the words of all errors. Any other word would be one of the kubeconfig.
const refusals = `kubeconfig cannot be parsed is larger than bytes has no current-context is not the name of a context
	cluster user is not allowed exec would run a program next to the operator use token or client-certificate-data
	auth-provider is not supported tokenFile would read a file client-certificate client-key client-key-data
	certificate-authority certificate-authority-data server must be a URL that begins with https http must not contain
	credentials an or the credentials of the user could be read on the way proxy-url socks5
	the certificates or the key cannot be used unable to load root certificates unable to parse bytes as PEM block
	must be given together the client already impersonates a user and cannot impersonate another one
	too large: aliases give a document more values or bytes an alias contains itself is nested deep`

// FuzzL7KubeConfig has anything for a kubeconfig: there is no panic, what comes of it neither runs a program nor reads
// a file, and an error shows nothing of it. Errors about certificates have words of crypto/tls, and are left out.
func FuzzL7KubeConfig(f *testing.F) {
	f.Add([]byte("{}"))
	f.Add(kubeConfig(user{"exec": map[string]any{"command": "x"}}, cluster{"certificate-authority": "/x"}))
	f.Add(kubeConfig(user{"tokenFile": "/x", "client-key": "/x", "client-certificate": "/x"}, nil))
	f.Add(aliasBomb())
	f.Add(severalContexts())
	f.Add(kubeConfig(user{"token": hidden}, cluster{"server": "http://" + hidden + "@host", "proxy-url": "socks5://" + hidden}))
	f.Add([]byte("clusters: [null]\nusers: [{name: u}]\ncontexts: [{name: a, context: null}]\ncurrent-context: a"))
	f.Fuzz(func(t *testing.T, kubeconfig []byte) {
		if len(kubeconfig) == 0 {
			return
		}
		made, err := (&clusters.Pool{}).Get(t.Context(), clusters.Identity{KubeConfig: kubeconfig})
		if err != nil {
			for _, word := range strings.FieldsFunc(string(kubeconfig), func(r rune) bool { return r <= ' ' || strings.ContainsRune(`:"'.,/;`, r) }) {
				about := strings.Contains(err.Error(), "cannot be used")
				if len(word) > 5 && !about && strings.Contains(err.Error(), word) && !strings.Contains(refusals, word) {
					t.Errorf("the error shows %q, want it hidden: %v", word, err)
				}
			}
			return
		}
		config := made.Config
		if config.ExecProvider != nil || config.AuthProvider != nil {
			t.Errorf("the configuration would run a program (%v, %v), want none", config.ExecProvider,
				config.AuthProvider)
		}
		if config.BearerTokenFile != "" || config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" {
			t.Errorf("the configuration would read files (%q, %q, %q, %q), want none", config.BearerTokenFile,
				config.CAFile, config.CertFile, config.KeyFile)
		}
	})
}

package oci_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/generator/helm/oci"
)

const (
	user     = "robot"
	password = "s3cret"
)

// pullSecret has credentials for a host, or for a repository of it.
func pullSecret(name, where string) *corev1.Secret {
	pair := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "north", Name: name},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{".dockerconfigjson": fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, where, pair)},
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string][2]bool{ // public only, internal too
		"140.82.121.33":          {true, true},
		"2606:50c0:8000::154":    {true, true},
		"64:ff9b::8c52:7921":     {true, true},
		"10.0.0.1":               {false, true},
		"172.16.0.1":             {false, true},
		"192.168.0.1":            {false, true},
		"100.64.0.1":             {false, true},
		"127.0.0.1":              {false, true},
		"::1":                    {false, true},
		"fd00::1":                {false, true},
		"::ffff:10.0.0.1":        {false, true},
		"64:ff9b::a00:1":         {false, true},
		"240.0.0.1":              {false, true},
		"169.254.169.254":        {false, false},
		"::ffff:169.254.169.254": {false, false},
		"64:ff9b::a9fe:a9fe":     {false, false},
		"2002:a9fe:a9fe::1":      {false, false},
		"::a9fe:a9fe":            {false, false},
		"100.100.100.200":        {false, false},
		"fd00:ec2::254":          {false, false},
		"fe80::1%eth0":           {false, false},
		"0.0.0.0":                {false, false},
		"0.1.2.3":                {false, false},
		"::":                     {false, false},
		"224.0.0.1":              {false, false},
		"ff02::1":                {false, false},
		"255.255.255.255":        {false, false},
	} {
		a := netip.MustParseAddr(address)
		if got := [2]bool{oci.Allowed(a, false), oci.Allowed(a, true)}; got != want {
			t.Errorf("%s: it is allowed as public and as internal: %v, want %v", address, got, want)
		}
	}
}

// A host that the operator lists is not reached if its address is not allowed.
func TestAddressesAreCheckedWhenConnecting(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	digest := r.push(chart("one"))
	_, port, _ := strings.Cut(r.host(), ":")
	for name, row := range map[string]struct {
		host     string
		internal bool
	}{
		"loopback":           {r.host(), false},
		"a name of loopback": {"localhost:" + port, false},
		"unspecified":        {"0.0.0.0:" + port, true},
		"metadata of clouds": {"169.254.169.254", true},
		"loopback as IPv6":   {"[::ffff:127.0.0.1]:" + port, false},
	} {
		t.Run(name, func(t *testing.T) {
			options := r.options()
			options.Registries[0].Host, options.Registries[0].Internal = row.host, row.internal
			url := "oci://" + row.host + "/charts/shop@" + digest
			_, err := fetch(t, options, url)
			want(t, err, "terminal", fmt.Sprintf("%s: the host %s or one of its others has an address that is not "+
				"allowed: for a private or loopback address, set Internal", url, row.host))
			if n := len(r.seen()); n != 0 {
				t.Errorf("there are %d requests, want none", n)
			}
		})
	}
}

// A registry cannot have the operator reach other hosts, nor send them credentials.
func TestHostileRegistries(t *testing.T) {
	t.Parallel()
	redirect := func(to func(other *registry, r *http.Request) string) func(*registry) answerFunc {
		return func(other *registry) answerFunc {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if !authorized(w, r) {
					return true
				}
				http.Redirect(w, r, to(other, r), http.StatusTemporaryRedirect)
				return true
			}
		}
	}
	realm := func(url func(other *registry) string) func(*registry) answerFunc {
		return func(other *registry) answerFunc {
			return func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="a"`, url(other)))
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
		}
	}
	for name, row := range map[string]struct {
		answer func(other *registry) answerFunc
		want   string
	}{
		"a redirect to another host": {
			redirect(func(o *registry, r *http.Request) string { return o.URL + r.URL.Path }),
			`the registry asks to reach the host "OTHER", which is not in BlobHosts of the operator`,
		},
		"a redirect to metadata of clouds": {
			redirect(func(*registry, *http.Request) string { return "https://169.254.169.254/latest" }),
			`the registry asks to reach the host "169.254.169.254", which is not in BlobHosts of the operator`,
		},
		"a redirect without HTTPS": {
			redirect(func(_ *registry, r *http.Request) string { return "http://" + r.Host + r.URL.Path }),
			`the registry asks to reach the host "HOST" without HTTPS`,
		},
		"a redirect to another port": {
			redirect(func(*registry, *http.Request) string { return "https://127.0.0.1:1/" }),
			`the registry asks to reach the host "127.0.0.1:1", which is not in BlobHosts of the operator`,
		},
		"a redirect without end": {
			redirect(func(_ *registry, r *http.Request) string { return r.URL.Path + "/" }),
			"the registry redirects too often",
		},
		"a redirect to a file": {
			redirect(func(*registry, *http.Request) string { return "file:///etc/passwd" }),
			`the registry asks to reach the host "" without HTTPS`,
		},
		"tokens of another host": {
			realm(func(o *registry) string { return o.URL + "/token" }),
			`the registry asks to reach the host "OTHER", which is not in TokenHosts of the operator`,
		},
		"tokens of a service in the cluster": {
			realm(func(*registry) string { return "https://kubernetes.default.svc/token" }),
			`the registry asks to reach the host "kubernetes.default.svc", which is not in TokenHosts of the operator`,
		},
		"tokens of metadata of clouds": {
			realm(func(*registry) string { return "https://169.254.169.254/token" }),
			"the registry asks for an authentication that is refused",
		},
		"tokens without HTTPS": {
			realm(func(*registry) string { return "http://auth.example.com/token" }),
			"the registry asks for an authentication that is refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, other := startRegistry(t), startRegistry(t)
			digest := r.push(chart("one"))
			r.answer = row.answer(other)
			ctx := contextOf(t.Context(), shop("shop", r.url(digest), "pull"), newReads(pullSecret("pull", r.host())))
			_, err := newSource(t, r.options()).Fetch(ctx)
			text := strings.ReplaceAll(strings.ReplaceAll(row.want, "OTHER", other.host()), "HOST", r.host())
			want(t, err, "terminal", r.url(digest)+": "+text)
			if n := len(other.seen()); n != 0 {
				t.Errorf("the other host has %d requests, want none", n)
			}
		})
	}
}

type answerFunc = func(w http.ResponseWriter, r *http.Request) bool

// authorized asks for credentials.
func authorized(w http.ResponseWriter, r *http.Request) bool {
	name, pass, _ := r.BasicAuth()
	if name == user && pass == password {
		return true
	}
	w.Header().Set("WWW-Authenticate", "Basic")
	w.WriteHeader(http.StatusUnauthorized)
	return false
}

// A host for blobs gets no credentials, also if it redirects to itself.
func TestBlobHostsGetNoCredentials(t *testing.T) {
	t.Parallel()
	r, blobs := startRegistry(t), startRegistry(t)
	archive := chart("one")
	digest := r.push(archive)
	blobs.pushBlob(archive)
	r.answer = func(w http.ResponseWriter, request *http.Request) bool {
		if !authorized(w, request) {
			return true
		}
		if strings.Contains(request.URL.Path, "/blobs/") {
			http.Redirect(w, request, blobs.URL+"/first"+request.URL.Path, http.StatusTemporaryRedirect)
			return true
		}
		return false
	}
	blobs.answer = func(w http.ResponseWriter, request *http.Request) bool {
		if rest, ok := strings.CutPrefix(request.URL.Path, "/first"); ok {
			http.Redirect(w, request, rest, http.StatusTemporaryRedirect)
			return true
		}
		return false
	}
	options := r.options()
	options.Registries[0].BlobHosts = []string{blobs.host()}
	ctx := contextOf(t.Context(), shop("shop", r.url(digest), "pull"), newReads(pullSecret("pull", r.host())))
	if _, err := newSource(t, options).Fetch(ctx); err != nil {
		t.Fatal(err)
	}
	seen := blobs.seen()
	if len(seen) != 2 {
		t.Errorf("the host for blobs has %d requests, want 2", len(seen))
	}
	for _, request := range seen {
		if got := request.Header.Get("Authorization"); got != "" {
			t.Errorf("the host for blobs gets the credentials %q for %s, want none", got, request.URL)
		}
	}
}

// Only a host for tokens gets the credentials, and the registry gets the token.
func TestTokens(t *testing.T) {
	t.Parallel()
	r, tokens := startRegistry(t), startRegistry(t)
	digest := r.push(chart("one"))
	r.answer = func(w http.ResponseWriter, request *http.Request) bool {
		if request.Header.Get("Authorization") == "Bearer t0ken" {
			return false
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="a"`, tokens.URL))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	tokens.answer = func(w http.ResponseWriter, request *http.Request) bool {
		if !authorized(w, request) {
			return true
		}
		if scope := request.FormValue("scope"); scope != "repository:charts/shop:pull" {
			t.Errorf("the scope is %s, want to pull the chart", scope)
		}
		_, _ = w.Write([]byte(`{"token":"t0ken"}`))
		return true
	}
	options := r.options()
	options.Registries[0].TokenHosts = []string{tokens.host()}
	local := newReads(pullSecret("pull", "https://"+r.host()+"/charts/"))
	ctx := contextOf(t.Context(), shop("shop", r.url(digest), "pull"), local)
	if _, err := newSource(t, options).Fetch(ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(tokens.seen()); n != 1 {
		t.Errorf("there are %d requests for tokens, want 1", n)
	}
	for _, request := range r.seen() {
		if got := request.Header.Get("Authorization"); got != "" && got != "Bearer t0ken" {
			t.Errorf("the registry gets %q, want the token", got)
		}
	}
}

// A registry that does not answer is waited for. The text has no ports and no times.
func TestRegistriesThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	status := func(code int) answerFunc {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, `{"errors":[{"code":"UNKNOWN","message":"`+time.Now().String()+`"}]}`)
			return true
		}
	}
	for name, row := range map[string]struct {
		change      func(*registry, *oci.Options)
		class, want string
	}{
		"not found":   {answers(status(404)), "waiting", "it does not exist in the registry"},
		"overloaded":  {answers(status(503)), "waiting", "the registry is not available: it answers with status 503"},
		"too often":   {answers(status(429)), "waiting", "the registry is not available: it answers with status 429"},
		"odd":         {answers(status(418)), "terminal", "the registry answers with status 418"},
		"forbidden":   {answers(status(403)), "back-off", "the registry denies access: name a pull secret whose credentials may read it"},
		"credentials": {answers(func(w http.ResponseWriter, r *http.Request) bool { return !authorized(w, r) }), "back-off", "the registry denies access: name a pull secret whose credentials may read it"},
		"closed":      {func(r *registry, _ *oci.Options) { r.Close() }, "waiting", "the registry cannot be reached"},
		"interrupted": {answers(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }), "waiting", "the registry cannot be reached"},
		"interrupted later": {answers(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
			panic(http.ErrAbortHandler)
		}), "waiting", "the registry cannot be reached"},
		"not trusted": {func(_ *registry, o *oci.Options) { o.Registries[0].RootCAs = nil }, "waiting", "the certificate of the registry is not trusted"},
		"slow": {func(r *registry, o *oci.Options) {
			o.Timeout = 100 * time.Millisecond
			r.answer = func(_ http.ResponseWriter, request *http.Request) bool {
				<-request.Context().Done()
				panic(http.ErrAbortHandler) // to return would be an answer, which the client may still read
			}
		}, "waiting", "the registry does not answer in time"},
		"dripping": {func(r *registry, o *oci.Options) {
			o.Timeout = 100 * time.Millisecond
			r.answer = func(w http.ResponseWriter, request *http.Request) bool {
				for request.Context().Err() == nil {
					_, _ = w.Write([]byte(" "))
					_ = http.NewResponseController(w).Flush()
					time.Sleep(time.Millisecond)
				}
				panic(http.ErrAbortHandler)
			}
		}, "waiting", "the registry does not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRegistry(t)
			digest, options := r.push(chart("one")), r.options()
			row.change(r, &options)
			_, err := fetch(t, options, r.url(digest))
			want(t, err, row.class, r.url(digest)+": "+row.want)
		})
	}
}

func answers(answer answerFunc) func(*registry, *oci.Options) {
	return func(r *registry, _ *oci.Options) { r.answer = answer }
}

// The content is bounded before it is in memory, and is what the digest says.
func TestContentsThatAreRefused(t *testing.T) {
	t.Parallel()
	file := func(name string) entry { return entry{name: name, content: "a"} }
	many := slices.Repeat([]entry{file("shop/a")}, 3000)
	for i := range many {
		many[i].name += fmt.Sprint(i)
	}
	for name, row := range map[string]struct {
		push func(r *registry) string
		want string
	}{
		"another manifest": {func(r *registry) string {
			digest := r.push(chart("one"))
			r.manifests[digest] = []byte("{}")
			return digest
		}, "the registry returns a manifest with another digest: " + digestOf([]byte("{}"))},
		"another blob": {func(r *registry) string {
			digest := r.push([]byte("one"))
			r.blobs[digestOf([]byte("one"))] = []byte("two")
			return digest
		}, "the registry returns a blob with another digest than " + digestOf([]byte("one"))},
		"a large manifest": {func(r *registry) string {
			return r.pushManifest("1", make([]byte, 1<<20+1))
		}, "the registry returns more than 1048576 bytes"},
		"a large archive": {func(r *registry) string { return r.push(make([]byte, 1<<20+1)) },
			"the registry returns more than 1048576 bytes"},
		"an archive without a stated size": {func(r *registry) string {
			digest := r.push(make([]byte, 2<<20))
			r.answer = func(w http.ResponseWriter, request *http.Request) bool {
				_ = http.NewResponseController(w).Flush()
				return false
			}
			return digest
		}, "the registry returns more than 1048576 bytes"},
		"an archive that is large when unpacked": {func(r *registry) string {
			return r.push(pack(entry{name: "shop/a", content: strings.Repeat("a", 1<<20)}))
		}, "the archive cannot be unpacked: it is too large when unpacked"},
		"many small files": {func(r *registry) string { return r.push(pack(many...)) },
			"the archive cannot be unpacked: it is too large when unpacked"},
		"many folders": {func(r *registry) string {
			return r.push(pack(slices.Repeat([]entry{{name: "shop/", kind: '5'}}, 10000)...))
		}, "the archive cannot be unpacked: it is too large when unpacked"},
		"no archive": {func(r *registry) string { return r.push([]byte("one")) }, "the archive cannot be unpacked: unexpected EOF"},
		"a path out of it": {func(r *registry) string { return r.push(pack(file("shop/../../a"))) },
			`the archive cannot be unpacked: "shop/../../a" is no path of a file in it`},
		"an absolute path": {func(r *registry) string { return r.push(pack(file("/shop/a"))) },
			`the archive cannot be unpacked: "/shop/a" is no path of a file in it`},
		"a backslash": {func(r *registry) string { return r.push(pack(file(`shop/..\..\a`))) },
			`the archive cannot be unpacked: "shop/..\\..\\a" is no path of a file in it`},
		"a symbolic link": {func(r *registry) string { return r.push(pack(entry{name: "shop/a", kind: '2'})) },
			`the archive cannot be unpacked: "shop/a" is neither a file nor a folder`},
		"a link": {func(r *registry) string { return r.push(pack(entry{name: "shop/a", kind: '1'})) },
			`the archive cannot be unpacked: "shop/a" is neither a file nor a folder`},
		"a file twice": {func(r *registry) string { return r.push(pack(file("shop/a"), file("shop/a"))) },
			`the archive cannot be unpacked: the file "a" is in it twice`},
		"a file in no folder": {func(r *registry) string { return r.push(pack(file("Chart.yaml"))) },
			`the archive cannot be unpacked: the file "Chart.yaml" is in no folder`},
		"no JSON": {func(r *registry) string { return r.pushManifest("1", []byte("a")) }, "the manifest is not valid JSON"},
		"an index": {func(r *registry) string { return r.pushManifest("1", []byte(`{"manifests":[]}`)) },
			"the manifest has 0 layers of the type " + oci.ChartMediaType + ", want 1"},
		"an image": {func(r *registry) string {
			return r.pushManifest("1", manifestOf(layer{oci.TarMediaType, r.pushBlob([]byte("a")), 1, nil}))
		}, "the manifest has 0 layers of the type " + oci.ChartMediaType + ", want 1"},
		"a path as the digest": {func(r *registry) string {
			return r.pushManifest("1", manifestOf(layer{oci.ChartMediaType, "sha256:../../../../token", 1, nil}))
		}, "the manifest has a digest that is not of sha256"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRegistry(t)
			options, digest := r.options(), row.push(r)
			options.MaxBytes = 1 << 20
			_, err := fetch(t, options, r.url(digest))
			want(t, err, "terminal", r.url(digest)+": "+row.want)
		})
	}
}

package oci_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/generator"
)

// A pull secret is read when a chart is fetched, and not again.
func TestPullSecretIsReadOnce(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	digest := r.push(chart("one"))
	r.answer = func(w http.ResponseWriter, request *http.Request) bool { return !authorized(w, request) }
	g := &generator.SourceGenerator{Source: newSource(t, r.options()), Parse: parser}
	local := newReads(pullSecret("pull", r.host()))
	ctx := contextOf(t.Context(), shop("a", r.url(digest), "pull"), local)
	for range 3 {
		objects, err := g.Generate(ctx, "north", "a", generator.UnstructurableMap{})
		if text := textOf(t, objects, err); text != "one" {
			t.Errorf("the text is %s, want one", text)
		}
	}
	if n := len(r.seen()); n != 3 || local.count != 1 {
		t.Errorf("there are %d requests and %d reads, want 3 with the one that was denied, and 1", n, local.count)
	}
	// A component that may not read the Secret does not get what another one has fetched.
	denied := newReads()
	for component, text := range map[string]string{
		"pull": `: the pull secret "pull" does not exist`,
		"":     ": the registry denies access: name a pull secret whose credentials may read it",
	} {
		ctx := contextOf(t.Context(), shop("b", r.url(digest), component), denied)
		if _, err := g.Generate(ctx, "north", "b", nil); err == nil || err.Error() != r.url(digest)+text {
			t.Errorf("the error is %v, want %s", err, text)
		}
	}
}

func TestPullSecretsThatAreRefused(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	digest := r.push(chart("one"))
	wrongType, wrongText := pullSecret("pull", r.host()), pullSecret("pull", r.host())
	wrongType.Type, wrongText.Data[".dockerconfigjson"] = "Opaque", []byte(`{"auths": "s3cret"`)
	elsewhere := pullSecret("pull", r.host())
	elsewhere.Namespace = "south"
	failing := newReads()
	failing.err = fmt.Errorf("secrets is forbidden")
	for name, row := range map[string]struct {
		local       *reads
		class, want string
	}{
		"another type":       {newReads(wrongType), "back-off", "is not of the type kubernetes.io/dockerconfigjson"},
		"no JSON":            {newReads(wrongText), "back-off", "has no credentials for HOST"},
		"another host":       {newReads(pullSecret("pull", "example.com")), "back-off", "has no credentials for HOST"},
		"a similar host":     {newReads(pullSecret("pull", strings.TrimSuffix(r.host(), "0")+"00")), "back-off", "has no credentials for HOST"},
		"another repository": {newReads(pullSecret("pull", r.host()+"/charts/sho")), "back-off", "has no credentials for HOST"},
		"another namespace":  {newReads(elsewhere), "waiting", "does not exist"},
		"no right":           {failing, "back-off", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := contextOf(t.Context(), shop("shop", r.url(digest), "pull"), row.local)
			_, err := newSource(t, r.options()).Fetch(ctx)
			text := `the pull secret "pull" ` + strings.ReplaceAll(row.want, "HOST", r.host())
			if name == "no right" {
				text = `unable to read the pull secret "pull": secrets is forbidden`
			}
			want(t, err, row.class, r.url(digest)+": "+text)
			if n := len(r.seen()); n != 0 {
				t.Errorf("there are %d requests, want none", n)
			}
		})
	}
}

// The entry for the longest part of a repository counts. A token is exchanged at the host for tokens only.
func TestEntriesOfPullSecrets(t *testing.T) {
	t.Parallel()
	right := map[string]any{"username": user, "password": password}
	wrong := map[string]any{"username": user, "password": "wrong"}
	for name, entries := range map[string]map[string]any{
		"the host":            {"HOST": right, "example.com": wrong},
		"a URL":               {"https://HOST/v1/": right},
		"a repository":        {"HOST": wrong, "HOST/charts": wrong, "HOST/charts/shop": right, "HOST/charts/shop/a": wrong},
		"another repository":  {"HOST": right, "HOST/charts/sh": wrong},
		"name and pair":       {"HOST": map[string]any{"username": user, "password": password, "email": "a@b"}},
		"a token of Registry": {"HOST": map[string]any{"registrytoken": "t0ken"}},
		"a token to exchange": {"HOST": map[string]any{"identitytoken": "refresh"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRegistry(t)
			digest := r.push(chart("one"))
			r.answer = func(w http.ResponseWriter, request *http.Request) bool {
				switch {
				case request.URL.Path == "/token" && request.FormValue("refresh_token") == "refresh":
					_, _ = w.Write([]byte(`{"access_token":"t0ken"}`))
					return true
				case request.Header.Get("Authorization") == "Bearer t0ken":
					return false
				case strings.Contains(name, "token"):
					w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="a"`, r.URL))
					w.WriteHeader(http.StatusUnauthorized)
					return true
				}
				return !authorized(w, request)
			}
			text, err := json.Marshal(map[string]any{"auths": entries})
			if err != nil {
				t.Fatal(err)
			}
			secret := pullSecret("pull", "")
			secret.Data[".dockerconfigjson"] = []byte(strings.ReplaceAll(string(text), "HOST", r.host()))
			ctx := contextOf(t.Context(), shop("shop", r.url(digest), "pull"), newReads(secret))
			if _, err := newSource(t, r.options()).Fetch(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// A token to exchange is not sent on by a redirect, also not to a host that the operator lists.
func TestTokensAreNotRedirected(t *testing.T) {
	t.Parallel()
	r, blobs := startRegistry(t), startRegistry(t)
	digest := r.push(chart("one"))
	r.answer = func(w http.ResponseWriter, request *http.Request) bool {
		if request.URL.Path == "/token" {
			http.Redirect(w, request, blobs.URL, http.StatusTemporaryRedirect)
			return true
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="a"`, r.URL))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	secret := pullSecret("pull", "")
	secret.Data[".dockerconfigjson"] = fmt.Appendf(nil, `{"auths":{%q:{"identitytoken":"refresh"}}}`, r.host())
	options := r.options()
	options.Registries[0].BlobHosts = []string{blobs.host()}
	ctx := contextOf(t.Context(), shop("shop", r.url(digest), "pull"), newReads(secret))
	_, err := newSource(t, options).Fetch(ctx)
	want(t, err, "terminal", fmt.Sprintf("%s: the registry redirects credentials to the host %q", r.url(digest),
		blobs.host()))
	if n := len(blobs.seen()); n != 0 {
		t.Errorf("the other host has %d requests, want none", n)
	}
}

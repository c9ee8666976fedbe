package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"strings"
)

//go:embed assets
var assets embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"lower": func(text string) string { return strings.ReplaceAll(strings.ToLower(text), " ", "-") },
}).ParseFS(assets, "assets/*.html"))

// show writes a page. Its script asks for a fragment, which is the content without what is around it.
func show(a *answer, name string, view any) {
	whole := "page"
	if a.value("fragment") != "" {
		whole = "fragment"
	}
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name+"-"+whole, view); err != nil {
		refuse(a, a.request, err)
		return
	}
	a.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = b.WriteTo(a) // it fails only if the client is gone
}

// asset is a file that does not change while the program runs.
type asset struct {
	content []byte
	tag     string
}

func assetOf(name string) asset {
	content, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // the file is part of the program
	}
	sum := sha256.Sum256(content)
	return asset{content: content, tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
}

var style, script = assetOf("style.css"), assetOf("script.js")

func (s asset) serve(a *answer, contentType string) {
	header := a.Header()
	header.Set("Content-Type", contentType)
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", s.tag)
	if a.request.Header.Get("If-None-Match") == s.tag {
		a.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = a.Write(s.content) // it fails only if the client is gone
}

func serveStyle(a *answer)  { style.serve(a, "text/css; charset=utf-8") }
func serveScript(a *answer) { script.serve(a, "text/javascript; charset=utf-8") }

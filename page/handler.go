package page

import (
	"errors"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// policy lets a browser load nothing but what the page itself serves, and run nothing that stands in a page.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// answer is the answer to one request of a viewer.
type answer struct {
	http.ResponseWriter
	request *http.Request
	viewer  Viewer
	now     time.Time
}

// ServeHTTP implements [http.Handler].
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	for name, value := range map[string]string{
		"Content-Security-Policy": policy,
		"X-Content-Type-Options":  "nosniff",
		"X-Frame-Options":         "DENY",
		// With no-referrer a browser would say null for the origin of a form.
		"Referrer-Policy":              "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-store",
	} {
		header.Set(name, value)
	}
	_, last := path.Split(r.URL.Path)
	serve, methods := p.route(last), []string{http.MethodGet, http.MethodHead}
	if last == pathOfPlan {
		serve, methods = p.servePlan, []string{http.MethodPost}
	}
	switch {
	case serve == nil:
		http.Error(w, "There is no such page. Its path ends with a slash.", http.StatusNotFound)
		return
	case !slices.Contains(methods, r.Method):
		header.Set("Allow", strings.Join(methods, ", "))
		http.Error(w, "This page does not answer "+r.Method+".", http.StatusMethodNotAllowed)
		return
	}
	if p.options.Access == nil {
		http.Error(w, "Nobody may see this page: page.Options has no Access.", http.StatusForbidden)
		return
	}
	viewer, err := p.options.Access.Viewer(r)
	if err != nil {
		refuse(w, r, err)
		return
	}
	serve(&answer{ResponseWriter: w, request: r, viewer: viewer, now: p.now()})
}

// route returns what serves the last part of a path. All that is served has the same depth, so that relative links work
// below any prefix.
func (p *Page) route(last string) func(*answer) {
	switch last {
	case "":
		return p.serveOverview
	case "root":
		return p.serveList
	case "resource":
		return p.serveResource
	case "component":
		return p.serveComponent
	case "events":
		return p.serveEvents
	case "dump":
		return p.serveDump
	case "style.css":
		return serveStyle
	case "script.js":
		return serveScript
	}
	return nil
}

// refuse answers a request with an error. Only errors of this package have texts that are sent.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, ErrUnauthenticated):
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "401: "+ErrUnauthenticated.Error()+".", http.StatusUnauthorized)
	case errors.Is(err, ErrRefused):
		http.Error(w, "403: "+ErrRefused.Error()+".", http.StatusForbidden)
	default:
		log.FromContext(r.Context()).Error(err, "unable to find out who may see the page")
		http.Error(w, "503: unable to find out what you may see.", http.StatusServiceUnavailable)
	}
}

func (a *answer) notFound(what string) {
	http.Error(a, "404: this replica knows no such "+what+".", http.StatusNotFound)
}

// value returns a parameter of the request: of a form that was sent, or of the URL.
func (a *answer) value(name string) string {
	if a.request.Method == http.MethodPost {
		return a.request.PostForm.Get(name)
	}
	return a.request.URL.Query().Get(name)
}

// number returns the part of a list that is asked for.
func (a *answer) number() int {
	n, err := strconv.Atoi(a.value("page"))
	if err != nil {
		return 1
	}
	return n
}

// resourceKey returns the resource that is asked for.
func (a *answer) resourceKey() types.NamespacedName {
	return types.NamespacedName{Namespace: a.value("namespace"), Name: a.value("name")}
}

// frame returns what is around the content of a page.
func (p *Page) frame(a *answer, title, events string, up ...link) frame {
	f := frame{
		Title: title, Replica: p.options.Replica, At: momentOf(a.now, a.now), Events: events,
		Usage: p.recorder.usage(), Up: up,
	}
	f.At.Text = a.now.UTC().Format("15:04:05 UTC")
	f.Leads, f.Leader = p.leadership(a)
	return f
}

// overviewLink leads to the page of all roots.
var overviewLink = link{URL: "./", Text: "All roots"}

func (p *Page) serveOverview(a *answer) {
	var roots []rootSnapshot
	for _, root := range p.recorder.allRoots() {
		roots = append(roots, p.recorder.snapshotOf(root))
	}
	show(a, "overview", overviewOf(p.frame(a, "Operator", "events"), p.watches.views(a.now), roots))
}

func (p *Page) serveList(a *answer) {
	root := p.recorder.rootByID(a.value("root"))
	if root == nil {
		a.notFound("root")
		return
	}
	resources := p.recorder.resourcesOf(root)
	all, running := make([]brief, 0, len(resources)), root.runningSince()
	for _, resource := range resources {
		b := resource.brief()
		b.running = running[resource]
		all = append(all, b)
	}
	snapshot := p.recorder.snapshotOf(root)
	s := sightOf(a.viewer, root.node.Resource)
	sees := func(namespace string) bool { return s.ofNamespace(a.request.Context(), namespace) }
	filter := listFilter{text: a.value("q"), state: a.value("state"), page: a.number()}
	f := p.frame(a, root.id, "events?"+a.eventQuery("root"), overviewLink)
	v := listOf(f, &snapshot, all, filter, sees, a.now)
	if s.err != nil {
		refuse(a, a.request, s.err)
		return
	}
	v.Unasked = s.unasked
	show(a, "list", v)
}

// resource finds the resource that is asked for, and whether the viewer sees it. It answers the request if there is no
// such root, or if the rights are not known.
func (p *Page) resource(a *answer) (root *rootRecord, known *resourceRecord, visible, ok bool) {
	if root = p.recorder.rootByID(a.value("root")); root == nil {
		a.notFound("root")
		return nil, nil, false, false
	}
	if known = p.recorder.known(root, a.resourceKey()); known == nil {
		// The rights to what is not known are of no interest.
		return root, nil, true, true
	}
	visible, err := known.allows(a, verbGet)
	if err != nil {
		refuse(a, a.request, err)
		return nil, nil, false, false
	}
	return root, known, visible, true
}

// allows reports whether the viewer may do to the resource what a verb says.
func (r *resourceRecord) allows(a *answer, verb string) (bool, error) {
	return a.viewer.May(a.request.Context(), verb, r.root.node.Resource, r.key.Namespace, r.key.Name)
}

func (p *Page) serveResource(a *answer) {
	root, known, visible, ok := p.resource(a)
	if !ok {
		return
	}
	key := a.resourceKey()
	f := p.frame(a, nameOf(key), a.eventsOf(known),
		overviewLink, link{URL: rootURL(root.id), Text: root.id})
	v := resourceView{frame: f, Kind: root.node.Resource.Kind, Name: nameOf(key), Visible: visible, Known: known != nil}
	if visible && known != nil {
		snapshot, state := p.recorder.snapshotOf(root), known.snapshot()
		v = resourceViewOf(f, &snapshot, &state, p.linkTo, a.now)
	}
	show(a, "resource", v)
}

func (p *Page) serveComponent(a *answer) {
	root, known, visible, ok := p.resource(a)
	if !ok {
		return
	}
	key, at := a.resourceKey(), a.value("component")
	f := p.frame(a, at, a.eventsOf(known), overviewLink,
		link{URL: rootURL(root.id), Text: root.id}, link{URL: resourceURL(root.id, key), Text: nameOf(key)})
	v := inventoryView{frame: f, Visible: visible}
	if visible && known != nil {
		if progress := known.component(at); progress != nil {
			filter := inventoryFilter{text: a.value("q"), phase: a.value("phase"), page: a.number()}
			v = inventoryViewOf(f, root.id, key, progress, filter, a.now)
			v.Plan, v.Fresh = p.planFormOf(a, known, progress), p.freshPlanOf(a, planOf{root.id, key, at})
		}
	}
	show(a, "component", v)
}

// linkTo returns the URL of an object that is a resource of a root, or nothing.
func (p *Page) linkTo(object reconcilers.ObjectRef) string {
	key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	for _, root := range p.recorder.allRoots() {
		if root.node.Resource.GroupKind() == object.GroupKind() && p.recorder.known(root, key) != nil {
			return resourceURL(root.id, key)
		}
	}
	return ""
}
